//! Checks the dynamic batcher.

use std::time::Duration;

use galatea_proto::inference::{ModelDynamicBatching, ModelQueuePolicy, model_queue_policy};

use super::mistake::{Result, element_of, refuse};
use crate::{DynamicBatching, FieldPath, QueuePolicy, RawModelConfig, TimeoutAction};

/// Returns preferred sizes in ascending order, each once. `what` names the field in words.
pub(super) fn check_preferred(sizes: &[i32], what: &str, raw: &RawModelConfig) -> Result<Vec<u32>> {
    let RawModelConfig { name: model, max_batch_size: most, .. } = raw;
    let mut preferred = Vec::with_capacity(sizes.len());
    for (index, &size) in sizes.iter().enumerate() {
        let field = || element_of("preferred_batch_size", index);
        if size <= 0 {
            let text = format!("{what} size must be positive for {model}");
            let advice = "remove it: batches are as large as `max_batch_size` allows without it";
            return refuse(field(), text, advice);
        }
        if size > *most {
            let advice = match most {
                0 => "`max_batch_size` is 0, so there are no batches: set it to the largest batch of the model"
                    .to_owned(),
                most => format!("`max_batch_size` is {most}: raise it, or prefer smaller batches"),
            };
            let text = format!("{what} size must be <= max batch size for {model}");
            return refuse(field(), text, advice);
        }
        preferred.push(size.unsigned_abs());
    }
    preferred.sort_unstable();
    preferred.dedup();
    Ok(preferred)
}

pub(super) fn check_dynamic(
    dynamic: &ModelDynamicBatching,
    raw: &RawModelConfig,
) -> Result<DynamicBatching> {
    let sizes = &dynamic.preferred_batch_size;
    let preferred_batch_sizes = check_preferred(sizes, "dynamic batching preferred", raw)?;
    check_priorities(dynamic, &raw.name)?;
    if dynamic.preserve_ordering {
        check_ordering(dynamic, &raw.name)?;
    }
    let policies = dynamic.priority_queue_policy.iter();
    Ok(DynamicBatching {
        preferred_batch_sizes,
        max_queue_delay: Duration::from_micros(dynamic.max_queue_delay_microseconds),
        learns_delay: false,
        preserves_ordering: dynamic.preserve_ordering,
        priority_levels: dynamic.priority_levels,
        default_priority_level: dynamic.default_priority_level,
        default_queue_policy: dynamic.default_queue_policy.map(queue_policy).unwrap_or_default(),
        priority_queue_policies: policies.map(|(&n, &policy)| (n, queue_policy(policy))).collect(),
    })
}

fn check_priorities(dynamic: &ModelDynamicBatching, model: &str) -> Result<()> {
    let levels = dynamic.priority_levels;
    if levels == 0 {
        return Ok(());
    }
    let is_level = |level: u64| (1..=levels).contains(&level);
    if !is_level(dynamic.default_priority_level) {
        let text = format!("default priority level must be in range [1, {levels}] for {model}");
        let advice =
            "write `default_priority_level: 1` for the highest, or remove `priority_levels`";
        return refuse("default_priority_level", text, advice);
    }
    match dynamic.priority_queue_policy.keys().find(|&&level| !is_level(level)) {
        None => Ok(()),
        Some(level) => {
            let field = FieldPath::from("priority_queue_policy").named(level.to_string());
            let text = format!(
                "priority queue policy must have priority level in range [1, {levels}] for {model}"
            );
            refuse(field, text, "raise `priority_levels`, or remove the policy of that level")
        }
    }
}

/// Checks `preserve_ordering`: it rules out anything that lets one request overtake another.
fn check_ordering(dynamic: &ModelDynamicBatching, model: &str) -> Result<()> {
    if dynamic.priority_levels > 1 {
        let text = format!(
            "Only one priority level is allowed when 'preserve_ordering' is true for {model}"
        );
        return refuse(
            "preserve_ordering",
            text,
            "remove `preserve_ordering` or `priority_levels`",
        );
    }
    let delays = |policy: &ModelQueuePolicy| {
        policy.default_timeout_microseconds != 0
            && policy.timeout_action() == model_queue_policy::TimeoutAction::Delay
    };
    let levels = dynamic.priority_queue_policy.values();
    if dynamic.default_queue_policy.iter().chain(levels).any(delays) {
        let text = format!(
            "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for {model}"
        );
        let advice = "remove `preserve_ordering`, or write `timeout_action: REJECT`";
        return refuse("preserve_ordering", text, advice);
    }
    Ok(())
}

fn queue_policy(policy: ModelQueuePolicy) -> QueuePolicy {
    let timeout = policy.default_timeout_microseconds;
    QueuePolicy {
        timeout_action: match policy.timeout_action() {
            model_queue_policy::TimeoutAction::Reject => TimeoutAction::Reject,
            model_queue_policy::TimeoutAction::Delay => TimeoutAction::Delay,
        },
        default_timeout: (timeout > 0).then(|| Duration::from_micros(timeout)),
        allows_timeout_override: policy.allow_timeout_override,
        max_queue_size: policy.max_queue_size,
    }
}
