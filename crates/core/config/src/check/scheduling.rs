//! The dynamic batcher.

use std::{collections::BTreeMap, time::Duration};

use galatea_proto::inference::{ModelDynamicBatching, ModelQueuePolicy, model_queue_policy};

use super::at::{About, At};
use crate::{DynamicBatching, FieldPath, QueuePolicy, TimeoutAction};

type Result<T> = std::result::Result<T, At<BatchingError>>;

/// What is wrong with the settings of a batcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchingError {
    /// A preferred batch size of 0 or less.
    #[error("{what} size must be positive")]
    PreferredNotPositive {
        /// The field, in words.
        what: &'static str,
    },
    /// A preferred batch size above `max_batch_size`.
    #[error("{what} size must be <= max batch size")]
    PreferredTooLarge {
        /// The field, in words.
        what: &'static str,
    },
    /// The default level is none of the levels.
    #[error("default priority level must be in range [1, {levels}]")]
    DefaultPriority {
        /// How many levels there are.
        levels: u64,
    },
    /// A policy for a level there is not.
    #[error("priority queue policy must have priority level in range [1, {levels}]")]
    PolicyPriority {
        /// How many levels there are.
        levels: u64,
    },
    /// Responses in order, and requests that go before others.
    #[error("Only one priority level is allowed when 'preserve_ordering' is true")]
    OrderWithPriorities,
    /// Responses in order, and requests that others may overtake.
    #[error("Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true")]
    OrderWithDelay,
}

/// Preferred sizes in ascending order, each once.
pub(super) fn check_preferred(
    sizes: &[i32],
    what: &'static str,
    max_batch_size: i32,
) -> Result<Vec<u32>> {
    let mut preferred = Vec::with_capacity(sizes.len());
    for (index, &size) in sizes.iter().enumerate() {
        let field = || FieldPath::from("preferred_batch_size").index(index);
        if size <= 0 {
            return Err(BatchingError::PreferredNotPositive { what }.at(field()));
        }
        if size > max_batch_size {
            return Err(BatchingError::PreferredTooLarge { what }.at(field()));
        }
        preferred.push(size.unsigned_abs());
    }
    preferred.sort_unstable();
    preferred.dedup();
    Ok(preferred)
}

pub(super) fn check_dynamic(
    dynamic: &ModelDynamicBatching,
    max_batch_size: i32,
) -> Result<DynamicBatching> {
    let sizes = &dynamic.preferred_batch_size;
    let preferred_batch_sizes =
        check_preferred(sizes, "dynamic batching preferred", max_batch_size)?;
    check_priorities(dynamic)?;
    if dynamic.preserve_ordering {
        check_ordering(dynamic)?;
    }
    Ok(DynamicBatching {
        preferred_batch_sizes,
        max_queue_delay: Duration::from_micros(dynamic.max_queue_delay_microseconds),
        learns_delay: false,
        preserves_ordering: dynamic.preserve_ordering,
        priority_levels: dynamic.priority_levels,
        default_priority_level: dynamic.default_priority_level,
        default_queue_policy: dynamic.default_queue_policy.map(queue_policy).unwrap_or_default(),
        priority_queue_policies: dynamic
            .priority_queue_policy
            .iter()
            .map(|(&level, &policy)| (level, queue_policy(policy)))
            .collect::<BTreeMap<_, _>>(),
    })
}

fn check_priorities(dynamic: &ModelDynamicBatching) -> Result<()> {
    let levels = dynamic.priority_levels;
    if levels == 0 {
        return Ok(());
    }
    let is_level = |level: u64| (1..=levels).contains(&level);
    if !is_level(dynamic.default_priority_level) {
        return Err(BatchingError::DefaultPriority { levels }.at("default_priority_level"));
    }
    match dynamic.priority_queue_policy.keys().find(|&&level| !is_level(level)) {
        None => Ok(()),
        Some(level) => {
            let field = FieldPath::from("priority_queue_policy").named(level.to_string());
            Err(BatchingError::PolicyPriority { levels }.at(field))
        }
    }
}

/// Responses in the order of the requests rule out anything that lets one request overtake another.
fn check_ordering(dynamic: &ModelDynamicBatching) -> Result<()> {
    if dynamic.priority_levels > 1 {
        return Err(BatchingError::OrderWithPriorities.at("preserve_ordering"));
    }
    let delays = |policy: &ModelQueuePolicy| {
        policy.default_timeout_microseconds != 0
            && policy.timeout_action() == model_queue_policy::TimeoutAction::Delay
    };
    let levels = dynamic.priority_queue_policy.values();
    if dynamic.default_queue_policy.iter().chain(levels).any(delays) {
        return Err(BatchingError::OrderWithDelay.at("preserve_ordering"));
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
