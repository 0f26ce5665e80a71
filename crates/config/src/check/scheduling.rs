//! The dynamic batcher (C-50 to C-55), and which scheduler a model gets.

use std::{collections::BTreeMap, time::Duration};

use galatea_proto::inference::{
    ModelDynamicBatching, ModelQueuePolicy, model_config::SchedulingChoice, model_queue_policy,
};
use galatea_types::Result;

use super::{ensemble, refuse, sequence};
use crate::{
    DynamicBatching, QueuePolicy, RawModelConfig, Scheduling, TimeoutAction,
    backend_table::ENSEMBLE_PLATFORM,
};

pub(super) fn check(raw: &RawModelConfig) -> Result<Scheduling> {
    match &raw.scheduling_choice {
        Some(SchedulingChoice::EnsembleScheduling(ensembling)) => {
            ensemble::check(ensembling, raw).map(Scheduling::Ensemble)
        }
        _ if raw.platform == ENSEMBLE_PLATFORM => refuse(format!(
            "ensemble scheduling must be set for ensemble {} whose platform is ensemble",
            raw.name
        )),
        Some(SchedulingChoice::DynamicBatching(dynamic)) => {
            check_dynamic(dynamic, raw).map(Scheduling::Dynamic)
        }
        Some(SchedulingChoice::SequenceBatching(batcher)) => {
            sequence::check(batcher, raw).map(Scheduling::Sequence)
        }
        None => Ok(Scheduling::Direct),
    }
}

pub(super) fn is_ensemble(raw: &RawModelConfig) -> bool {
    matches!(raw.scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_)))
}

/// Preferred sizes in ascending order, each once.
pub(super) fn check_preferred(sizes: &[i32], what: &str, raw: &RawModelConfig) -> Result<Vec<u32>> {
    let mut preferred = Vec::with_capacity(sizes.len());
    for &size in sizes {
        if size <= 0 {
            return refuse(format!("{what} size must be positive for {}", raw.name));
        }
        if size > raw.max_batch_size {
            return refuse(format!("{what} size must be <= max batch size for {}", raw.name));
        }
        preferred.push(size.unsigned_abs());
    }
    preferred.sort_unstable();
    preferred.dedup();
    Ok(preferred)
}

fn check_dynamic(dynamic: &ModelDynamicBatching, raw: &RawModelConfig) -> Result<DynamicBatching> {
    let sizes = &dynamic.preferred_batch_size;
    let preferred_batch_sizes = check_preferred(sizes, "dynamic batching preferred", raw)?;
    check_priorities(dynamic, &raw.name)?;
    if dynamic.preserve_ordering {
        check_ordering(dynamic, &raw.name)?;
    }
    Ok(DynamicBatching {
        preferred_batch_sizes,
        max_queue_delay: Duration::from_micros(dynamic.max_queue_delay_microseconds),
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

fn check_priorities(dynamic: &ModelDynamicBatching, model: &str) -> Result<()> {
    let levels = dynamic.priority_levels;
    if levels == 0 {
        return Ok(());
    }
    let is_level = |level: u64| (1..=levels).contains(&level);
    if !is_level(dynamic.default_priority_level) {
        return refuse(format!(
            "default priority level must be in range [1, {levels}] for {model}"
        ));
    }
    if !dynamic.priority_queue_policy.keys().all(|&level| is_level(level)) {
        return refuse(format!(
            "priority queue policy must have priority level in range [1, {levels}] for {model}"
        ));
    }
    Ok(())
}

/// Replies in the order of arrival rule out anything that lets one request pass another.
fn check_ordering(dynamic: &ModelDynamicBatching, model: &str) -> Result<()> {
    if dynamic.priority_levels > 1 {
        return refuse(format!(
            "Only one priority level is allowed when 'preserve_ordering' is true for {model}"
        ));
    }
    let delays = |policy: &ModelQueuePolicy| {
        policy.default_timeout_microseconds != 0
            && policy.timeout_action() == model_queue_policy::TimeoutAction::Delay
    };
    let levels = dynamic.priority_queue_policy.values();
    if dynamic.default_queue_policy.iter().chain(levels).any(delays) {
        return refuse(format!(
            "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for \
             {model}"
        ));
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
