//! Counts for which the server makes something, as a thread: each has a limit.

use galatea_proto::inference::model_config::SchedulingChoice;

use super::at::{About, At};
use crate::{FieldPath, RawModelConfig};

/// Instances of a model, over all groups and GPUs. Each has a thread, those of Python models a process.
pub(crate) const MAX_INSTANCES: u64 = 1024;

/// Steps of an ensemble. How they fit together takes a time that grows with the square of their number.
pub(crate) const MAX_STEPS: u64 = 1024;

/// How often a warm-up sample is executed: nothing ends a load but its last execution.
pub(crate) const MAX_WARMUP_COUNT: u64 = 100_000;

/// Requests of one warm-up sample. Each is held until all were executed together.
pub(crate) const MAX_WARMUP_BATCH: u64 = 65_536;

/// A count beyond what the server makes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} of model '{model}' is {value}, the limit is {limit}: {fix}")]
pub struct LimitError {
    /// The path of the field.
    field: &'static str,
    /// The model.
    model: String,
    /// As given.
    value: u64,
    /// The largest that works.
    limit: u64,
    /// What to do.
    fix: &'static str,
}

/// What each instance of a model costs.
pub(super) fn check(raw: &RawModelConfig) -> Result<(), At<LimitError>> {
    let instances = instance_count(raw);
    if instances > MAX_INSTANCES {
        let fix = "all groups together must not have more instances";
        return refuse(raw, INSTANCES, instances, MAX_INSTANCES, fix);
    }
    check_warmup(raw)
}

fn check_warmup(raw: &RawModelConfig) -> Result<(), At<LimitError>> {
    for (index, sample) in raw.model_warmup.iter().enumerate() {
        let within = FieldPath::from("model_warmup").index(index);
        for (field, name, value, limit, fix) in [
            (
                WARMUP_COUNT,
                "count",
                sample.count,
                MAX_WARMUP_COUNT,
                "few executions warm a model up",
            ),
            (
                WARMUP_BATCH,
                "batch_size",
                sample.batch_size,
                MAX_WARMUP_BATCH,
                "use a smaller batch",
            ),
        ] {
            let value = u64::from(value);
            if value > limit {
                return refuse_at(within.field(name), raw, field, (value, limit), fix);
            }
        }
    }
    Ok(())
}

const WARMUP_COUNT: &str = "model_warmup.count";
const WARMUP_BATCH: &str = "model_warmup.batch_size";
const INSTANCES: &str = "instance_group.count";

fn largest_group(raw: &RawModelConfig) -> usize {
    let groups = raw.instance_group.iter().enumerate();
    groups.max_by_key(|(_, group)| group.count).map_or(0, |(index, _)| index)
}

/// Before anything else is done with the steps.
pub(super) fn check_steps(raw: &RawModelConfig) -> Result<(), At<LimitError>> {
    let Some(SchedulingChoice::EnsembleScheduling(ensemble)) = &raw.scheduling_choice else {
        return Ok(());
    };
    let steps = ensemble.step.len() as u64;
    if steps <= MAX_STEPS {
        return Ok(());
    }
    let fix = "make ensembles of its parts, and one of these";
    refuse(raw, "ensemble_scheduling.step", steps, MAX_STEPS, fix)
}

fn refuse(
    raw: &RawModelConfig,
    field: &'static str,
    value: u64,
    limit: u64,
    fix: &'static str,
) -> Result<(), At<LimitError>> {
    let path = match field {
        INSTANCES => FieldPath::from("instance_group").index(largest_group(raw)).field("count"),
        _ => FieldPath::from(field),
    };
    refuse_at(path, raw, field, (value, limit), fix)
}

fn refuse_at(
    path: FieldPath,
    raw: &RawModelConfig,
    field: &'static str,
    (value, limit): (u64, u64),
    fix: &'static str,
) -> Result<(), At<LimitError>> {
    Err(LimitError { field, model: raw.name.clone(), value, limit, fix }.at(path))
}

fn instance_count(raw: &RawModelConfig) -> u64 {
    let of_group = |count: i32, gpus: usize| {
        let count = u64::try_from(count).unwrap_or(0).max(1);
        count.saturating_mul(u64::try_from(gpus.max(1)).unwrap_or(u64::MAX))
    };
    let groups = raw.instance_group.iter().map(|group| of_group(group.count, group.gpus.len()));
    groups.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use crate::{parse_text, testing::Host};

    #[track_caller]
    fn checked(text: &str) -> Result<(), String> {
        let tensors = "input { name: 'x' data_type: TYPE_FP32 dims: 1 } \
                       output { name: 'y' data_type: TYPE_FP32 dims: 1 }";
        let raw = parse_text(&format!("name: 'm' backend: 'b' {tensors} {text}")).expect("text");
        let checked = Host { gpus: &[0, 1], ..Host::default() }.check(raw);
        checked.map(drop).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn instances_are_counted_over_groups_and_gpus() {
        assert_eq!(checked("instance_group { count: 1024 kind: KIND_CPU }"), Ok(()));
        let text = |value| {
            Err(format!(
                "instance_group.count of model 'm' is {value}, the limit is 1024: all groups together must not have \
                 more instances"
            ))
        };
        assert_eq!(
            checked("instance_group { count: 2000000000 kind: KIND_CPU }"),
            text("2000000000")
        );
        let two = "instance_group { count: 1000 kind: KIND_CPU } instance_group { count: 25 kind: KIND_CPU }";
        assert_eq!(checked(two), text("1025"));
        let gpus = "instance_group { count: 513 kind: KIND_GPU gpus: [ 0, 1 ] }";
        assert_eq!(checked(gpus), text("1026"));
    }

    #[test]
    fn steps_of_an_ensemble() {
        let step = "step { model_name: 'a' }";
        let text = format!("ensemble_scheduling {{ {} }}", step.repeat(1025));
        let raw = parse_text(&format!("name: 'm' platform: 'ensemble' {text}")).expect("text");
        let error = Host::default().check(raw).expect_err("too many");
        let expected = "ensemble_scheduling.step of model 'm' is 1025, the limit is 1024: make ensembles of its parts, \
                        and one of these";
        assert_eq!(error.message(), expected);
    }

    #[test]
    fn executions_and_requests_of_a_warm_up_sample() {
        let sample = |fields: &str| format!("model_warmup {{ name: 'w' {fields} }}");
        assert_eq!(checked(&sample("count: 100000 batch_size: 65536")), Ok(()));
        for (fields, text) in [
            (
                "count: 4294967295 batch_size: 1",
                "model_warmup.count of model 'm' is 4294967295, the limit is 100000: few executions warm a model up",
            ),
            (
                "batch_size: 65537",
                "model_warmup.batch_size of model 'm' is 65537, the limit is 65536: use a smaller batch",
            ),
        ] {
            assert_eq!(checked(&sample(fields)), Err(text.to_owned()));
        }
    }

    #[test]
    fn levels_of_priority_have_no_limit() {
        let levels = |n: u64, policy: u64| {
            format!(
                "max_batch_size: 1 dynamic_batching {{ priority_levels: {n} default_priority_level: {n}
                   priority_queue_policy {{ key: {policy} value {{ max_queue_size: 1 }} }} }}"
            )
        };
        for n in [1024, 1_000_000_000_000, u64::MAX] {
            assert_eq!(checked(&levels(n, n)), Ok(()));
        }
        assert!(checked(&levels(1024, 1025)).is_err());
    }
}
