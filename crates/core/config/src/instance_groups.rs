//! Instance groups before their check: those that a backend prefers, and configurations that differ only in them, which can change
//! while a model runs.

use galatea_proto::inference::{ModelInstanceGroup, model_instance_group::Kind};

use crate::{InstanceKind, RawModelConfig};

/// An instance group that a backend prefers for models whose configuration has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreferredGroup {
    /// The device of its instances; `None` is AUTO, a GPU where there is one.
    pub kind: Option<InstanceKind>,
    /// The number of instances; 0 leaves it to the default.
    pub count: u64,
    /// Indices of the GPUs; empty for all.
    pub gpus: Vec<u32>,
}

/// Gives a configuration without instance groups the first of `preferred` that this server can run, as Triton does: those for GPUs
/// are left out where none is available, and keep only available ones.
pub fn with_preferred_group(
    mut config: RawModelConfig,
    preferred: &[PreferredGroup],
    available_gpus: &[u32],
) -> RawModelConfig {
    let can_run = |group: &&PreferredGroup| {
        group.kind != Some(InstanceKind::Gpu) || !available_gpus.is_empty()
    };
    if !config.instance_group.is_empty() {
        return config;
    }
    let Some(preferred) = preferred.iter().find(can_run) else { return config };
    let has_gpu = |gpu: &&u32| match preferred.kind {
        Some(InstanceKind::Gpu) => available_gpus.contains(gpu),
        kind => kind.is_none(),
    };
    let gpus = preferred.gpus.iter().filter(has_gpu);
    let mut group = ModelInstanceGroup {
        name: config.name.clone(),
        count: i32::try_from(preferred.count).unwrap_or(i32::MAX),
        gpus: gpus.filter_map(|&gpu| i32::try_from(gpu).ok()).collect(),
        ..ModelInstanceGroup::default()
    };
    group.set_kind(match preferred.kind {
        None => Kind::Auto,
        Some(InstanceKind::Cpu) => Kind::Cpu,
        Some(InstanceKind::Gpu) => Kind::Gpu,
        Some(InstanceKind::Model) => Kind::Model,
    });
    config.instance_group.push(group);
    config
}

/// Returns whether the two differ at most in their instance groups.
pub fn differ_in_instances_only(one: &RawModelConfig, other: &RawModelConfig) -> bool {
    with_instances_of(one, other) == *other
}

/// Returns `config` with the instance groups of `other`.
pub fn with_instances_of(config: &RawModelConfig, other: &RawModelConfig) -> RawModelConfig {
    RawModelConfig { instance_group: other.instance_group.clone(), ..config.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preferred(kind: Option<InstanceKind>, count: u64, gpus: &[u32]) -> PreferredGroup {
        PreferredGroup { kind, count, gpus: gpus.to_vec() }
    }

    #[track_caller]
    fn check_choice(groups: &[PreferredGroup], available: &[u32], expected: &str) {
        let config = crate::parse_text("name: 'm'").expect("valid");
        let expected = crate::parse_text(&format!("name: 'm' {expected}")).expect("valid");
        assert_eq!(with_preferred_group(config, groups, available), expected);
    }

    #[test]
    fn the_first_preferred_group_that_can_run_is_taken() {
        let (gpu, cpu) = (Some(InstanceKind::Gpu), Some(InstanceKind::Cpu));
        let groups = [preferred(gpu, 1, &[1, 7]), preferred(cpu, 3, &[1]), preferred(cpu, 5, &[])];
        check_choice(&groups, &[], "instance_group { name: 'm' kind: KIND_CPU count: 3 }");
        check_choice(
            &groups,
            &[0, 1],
            "instance_group { name: 'm' kind: KIND_GPU count: 1 gpus: [1] }",
        );
        check_choice(&[], &[0], "");
        check_choice(&groups[..1], &[], "");
        let automatic = [preferred(None, u64::MAX, &[4])];
        check_choice(
            &automatic,
            &[],
            "instance_group { name: 'm' kind: KIND_AUTO count: 2147483647 gpus: [4] }",
        );
        let model = [preferred(Some(InstanceKind::Model), 0, &[2])];
        check_choice(&model, &[2], "instance_group { name: 'm' kind: KIND_MODEL }");
    }

    #[test]
    fn groups_of_the_configuration_win() {
        let config = crate::parse_text("name: 'm' instance_group { count: 2 }").expect("valid");
        let groups = [preferred(Some(InstanceKind::Cpu), 3, &[])];
        assert_eq!(with_preferred_group(config.clone(), &groups, &[]), config);
    }

    #[test]
    fn instance_groups_are_compared_separately() {
        let parse = |more: &str| crate::parse_text(&format!("name: 'm' {more}")).expect("valid");
        let (one, two) =
            (parse("instance_group { count: 1 }"), parse("instance_group { count: 2 }"));
        assert!(differ_in_instances_only(&one, &two) && differ_in_instances_only(&one, &parse("")));
        let other = parse("max_batch_size: 4 instance_group { count: 1 }");
        assert!(!differ_in_instances_only(&one, &other));
        assert_eq!(with_instances_of(&one, &two), two);
    }
}
