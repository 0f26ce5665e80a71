//! Limits on counts for which the server creates something, such as a thread.

use galatea_proto::inference::model_config::SchedulingChoice;

use super::mistake::{Result, element_of, refuse};
use crate::{FieldPath, RawModelConfig};

/// Most instances of a model, over all groups and GPUs. Each has a thread; those of Python models have a process.
pub(crate) const MAX_INSTANCES: u64 = 1024;

/// Most steps of an ensemble. The time to check how they fit together grows with the square of their number.
pub(crate) const MAX_STEPS: u64 = 1024;

/// Most executions of a warm-up sample: nothing ends a load before its last execution.
pub(crate) const MAX_WARMUP_COUNT: u64 = 100_000;

/// Most requests of a warm-up sample. All are held until they were executed together.
pub(crate) const MAX_WARMUP_BATCH: u64 = 65_536;

/// A limit on a field of a configuration.
struct Limit {
    field: &'static str,
    most: u64,
    fix: &'static str,
}

/// Checks the numbers of instances, and of executions and requests of warm-up samples.
pub(super) fn check(raw: &RawModelConfig) -> Result<()> {
    let instances = instance_count(raw);
    if instances > MAX_INSTANCES {
        let limit = Limit {
            field: "instance_group.count",
            most: MAX_INSTANCES,
            fix: "all groups together must not have more instances",
        };
        let path = element_of("instance_group", largest_group(raw)).field("count");
        return exceeded(path, raw, instances, &limit);
    }
    for (index, sample) in raw.model_warmup.iter().enumerate() {
        let within = element_of("model_warmup", index);
        let (count, batch_size) = (u64::from(sample.count), u64::from(sample.batch_size));
        if count > MAX_WARMUP_COUNT {
            let (field, fix) = ("model_warmup.count", "few executions warm a model up");
            let limit = Limit { field, most: MAX_WARMUP_COUNT, fix };
            return exceeded(within.field("count"), raw, count, &limit);
        }
        if batch_size > MAX_WARMUP_BATCH {
            let (field, fix) = ("model_warmup.batch_size", "use a smaller batch");
            let limit = Limit { field, most: MAX_WARMUP_BATCH, fix };
            return exceeded(within.field("batch_size"), raw, batch_size, &limit);
        }
    }
    Ok(())
}

fn largest_group(raw: &RawModelConfig) -> usize {
    let groups = raw.instance_group.iter().enumerate();
    groups.max_by_key(|(_, group)| group.count).map_or(0, |(index, _)| index)
}

/// Checks the number of steps. It runs before any other use of the steps.
pub(super) fn check_steps(raw: &RawModelConfig) -> Result<()> {
    let Some(SchedulingChoice::EnsembleScheduling(ensemble)) = &raw.scheduling_choice else {
        return Ok(());
    };
    let steps = ensemble.step.len() as u64;
    if steps <= MAX_STEPS {
        return Ok(());
    }
    let (field, fix) =
        ("ensemble_scheduling.step", "make ensembles of its parts, and one of these");
    exceeded(field, raw, steps, &Limit { field, most: MAX_STEPS, fix })
}

fn exceeded(
    path: impl Into<FieldPath>,
    raw: &RawModelConfig,
    value: u64,
    Limit { field, most, fix }: &Limit,
) -> Result<()> {
    let model = &raw.name;
    refuse(path, format!("{field} of model '{model}' is {value}, the limit is {most}: {fix}"), "")
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
    fn steps_of_an_ensemble_are_limited() {
        let step = "step { model_name: 'a' }";
        let text = format!("ensemble_scheduling {{ {} }}", step.repeat(1025));
        let raw = parse_text(&format!("name: 'm' platform: 'ensemble' {text}")).expect("text");
        let error = Host::default().check(raw).expect_err("too many");
        let expected = "ensemble_scheduling.step of model 'm' is 1025, the limit is 1024: make ensembles of its parts, \
                        and one of these";
        assert_eq!(error.message(), expected);
    }

    #[test]
    fn executions_and_requests_of_a_warm_up_sample_are_limited() {
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
    fn priority_levels_have_no_limit() {
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
