//! Derives the instances of a version from its configuration, and the changes between two configurations.

use std::{collections::BTreeSet, sync::Arc};

use galatea_backend::{InstanceAlarm, InstanceSpec};
use galatea_config::{InstanceGroup, InstanceKind};

/// Returns the instances, named `{group}_{i}` on the CPU and `{group}_{i}_gpu{n}` for each GPU of a GPU group.
pub(crate) fn instance_specs(groups: &[InstanceGroup]) -> Vec<InstanceSpec> {
    let mut specs = Vec::new();
    for group in groups {
        let shared = Arc::new(group.clone());
        let mut add = |name, device_id| {
            specs.push(InstanceSpec {
                name,
                group: shared.clone(),
                kind: group.kind,
                device_id,
                index: specs.len(),
                alarm: InstanceAlarm::default(),
            });
        };
        for i in 0..group.count {
            let base = format!("{}_{i}", group.name);
            match group.kind {
                InstanceKind::Gpu => {
                    group.gpus.iter().for_each(|&gpu| add(format!("{base}_gpu{gpu}"), gpu));
                }
                InstanceKind::Cpu | InstanceKind::Model => add(base, 0),
            }
        }
    }
    specs
}

/// The change from the present instances to the wanted ones.
pub(crate) struct InstanceChange {
    pub added: Vec<InstanceSpec>,
    /// The numbers of the instances to remove.
    pub removed: Vec<usize>,
}

impl InstanceChange {
    /// Keeps an instance that equals a wanted one, whatever its name. Of several equal ones, those with the same name are kept.
    pub fn between(now: Vec<InstanceSpec>, wanted: Vec<InstanceSpec>) -> Self {
        let used: BTreeSet<usize> = now.iter().map(|spec| spec.index).collect();
        let free = (0..).filter(|index| !used.contains(index));
        let (missing, left) = keep(now, wanted, |one, other| one.name == other.name);
        let (mut added, left) = keep(left, missing, |_, _| true);
        added.iter_mut().zip(free).for_each(|(spec, index)| spec.index = index);
        Self { added, removed: left.into_iter().map(|spec| spec.index).collect() }
    }
}

/// Removes the instances that can stay from both lists. Returns the missing and the remaining ones.
fn keep(
    mut now: Vec<InstanceSpec>,
    mut wanted: Vec<InstanceSpec>,
    condition: impl Fn(&InstanceSpec, &InstanceSpec) -> bool,
) -> (Vec<InstanceSpec>, Vec<InstanceSpec>) {
    wanted.retain(|wanted| {
        let found = now.iter().position(|spec| are_alike(spec, wanted) && condition(spec, wanted));
        found.map(|position| now.remove(position)).is_none()
    });
    (wanted, now)
}

fn are_alike(one: &InstanceSpec, other: &InstanceSpec) -> bool {
    one.device_id == other.device_id && one.group.has_like_instances(&other.group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, kind: InstanceKind, count: u32) -> InstanceGroup {
        let mut group = InstanceGroup::of_cpu(name);
        (group.kind, group.count) = (kind, count);
        if kind == InstanceKind::Gpu {
            group.gpus = vec![0, 2];
        }
        group
    }

    fn cpu(name: &str, count: u32) -> InstanceGroup {
        group(name, InstanceKind::Cpu, count)
    }

    /// Names and numbers of what is added, and numbers of what is removed.
    fn change(now: &[InstanceGroup], then: &[InstanceGroup]) -> (Vec<(String, usize)>, Vec<usize>) {
        let change = InstanceChange::between(instance_specs(now), instance_specs(then));
        let added = change.added.into_iter().map(|spec| (spec.name, spec.index)).collect();
        (added, change.removed)
    }

    fn added(specs: &[(&str, usize)]) -> Vec<(String, usize)> {
        specs.iter().map(|(name, index)| ((*name).to_owned(), *index)).collect()
    }

    #[test]
    fn the_last_instances_are_added_or_removed() {
        assert_eq!(
            change(&[cpu("m", 2)], &[cpu("m", 4)]),
            (added(&[("m_2", 2), ("m_3", 3)]), vec![])
        );
        assert_eq!(change(&[cpu("m", 4)], &[cpu("m", 1)]), (vec![], vec![1, 2, 3]));
        assert_eq!(change(&[cpu("m", 3)], &[cpu("m", 3)]), (vec![], vec![]));
    }

    #[test]
    fn names_of_instance_groups_do_not_matter() {
        let flat = [cpu("a", 1), cpu("b", 1), cpu("c", 1)];
        assert_eq!(change(&[cpu("m", 3)], &flat), (vec![], vec![]));
        assert_eq!(change(&flat, &[cpu("b", 2)]), (vec![], vec![2]));
        // Of the same name first.
        assert_eq!(change(&flat, &[cpu("x", 1), cpu("a", 1)]), (vec![], vec![2]));
    }

    #[test]
    fn changed_instances_are_recreated() {
        let model = group("m", InstanceKind::Model, 1);
        assert_eq!(change(&[cpu("m", 2)], &[model]), (added(&[("m_0", 2)]), vec![0, 1]));
        let mut policy = cpu("m", 1);
        policy.host_policy = "p".to_owned();
        assert_eq!(change(&[cpu("m", 1)], &[policy]), (added(&[("m_0", 1)]), vec![0]));
        let gpus = group("m", InstanceKind::Gpu, 1);
        let both = [("m_0_gpu0", 1), ("m_0_gpu2", 2)];
        let mixed = [cpu("m", 1), gpus];
        assert_eq!(change(&mixed[..1], &mixed[1..]), (added(&both), vec![0]));
        assert_eq!(change(&mixed[1..], &mixed), (added(&[("m_0", 2)]), vec![]));
    }
}
