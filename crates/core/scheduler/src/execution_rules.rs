//! Rules that all models of a server share: the rate limiter, thread placement, and the memory for sequence states.

use std::sync::Arc;

use galatea_backend::InstanceSpec;
use galatea_config::{InstanceGroup, InstanceKind, ModelConfig, ModelPriority};
use galatea_thread_placement::{HostPolicies, Placement};
use galatea_types::DebugEvents;

use crate::{rate_limiter::RateLimiter, sequence_memory::SequenceMemory};

/// Added to the nice value of threads of models with `PRIORITY_MAX`.
const NICENESS_OF_MAX: i32 = -5;
/// The same for `PRIORITY_MIN`: the largest that Linux has.
const NICENESS_OF_MIN: i32 = 19;

/// Execution rules that all models of a server share. The default limits nothing.
#[derive(Clone, Debug, Default)]
pub struct ExecutionRules {
    /// The rate limiter; without one, instances execute as soon as they have work.
    pub rate_limiter: Option<Arc<RateLimiter>>,
    /// The host policies that instance groups name.
    pub host_policies: Arc<HostPolicies>,
    /// Counts the states of sequences.
    pub sequence_memory: Arc<SequenceMemory>,
    /// Receives events of executions, batches and restarts, for tests.
    pub events: DebugEvents,
}

impl ExecutionRules {
    /// Returns the placement of an instance's thread, which threads started by its backend inherit.
    pub fn placement(&self, config: &ModelConfig, spec: &InstanceSpec) -> Placement {
        let name = policy_name(&spec.group, spec.device_id);
        Placement {
            policy: self.host_policies.get(&name).cloned().unwrap_or_default(),
            niceness: match config.optimization().priority {
                ModelPriority::Default => 0,
                ModelPriority::Max => NICENESS_OF_MAX,
                ModelPriority::Min => NICENESS_OF_MIN,
            },
        }
    }

    /// Returns the placement of the thread that loads shared data: that of all instances if they agree, else the default.
    pub fn shared_placement(&self, config: &ModelConfig, specs: &[InstanceSpec]) -> Placement {
        let mut placements = specs.iter().map(|spec| self.placement(config, spec));
        let first = placements.next().unwrap_or_default();
        if placements.all(|placement| placement == first) { first } else { Placement::default() }
    }

    /// Logs a warning for each setting in the model's configuration that needs a command line option that was not given.
    pub(crate) fn warn_of_missing(&self, config: &ModelConfig) {
        let model = config.name();
        let groups = config.instance_groups();
        if self.rate_limiter.is_none() && groups.iter().any(|g| g.rate_limiter.is_some()) {
            log::warn!(
                "instance_group.rate_limiter of model '{model}' has no effect: start the server with \
                 --rate-limit=execution_count"
            );
        }
        let is_missing = |name: &&str| !name.is_empty() && self.host_policies.get(name).is_none();
        for name in groups.iter().map(|group| group.host_policy.as_str()).filter(is_missing) {
            log::warn!(
                "instance_group.host_policy '{name}' of model '{model}' has no effect: define it with \
                 --host-policy={name},cpu-cores=<first>-<last> or --host-policy={name},numa-node=<node>"
            );
        }
    }
}

/// Returns the name of the policy of a group: the one it names, or that of its device.
fn policy_name(group: &InstanceGroup, device: u32) -> String {
    match group.kind {
        _ if !group.host_policy.is_empty() => group.host_policy.clone(),
        InstanceKind::Cpu => "cpu".to_owned(),
        InstanceKind::Gpu => format!("gpu_{device}"),
        InstanceKind::Model => "model".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use galatea_backend::{InstanceAlarm, testing::model_config};

    use super::*;

    fn specs(groups: &str) -> (ModelConfig, Vec<InstanceSpec>) {
        let config = model_config(&format!("name: 'm' backend: 'm' {groups}"));
        let spec = |group: &InstanceGroup| InstanceSpec {
            name: group.name.clone(),
            group: Arc::new(group.clone()),
            kind: group.kind,
            device_id: 0,
            index: 0,
            alarm: InstanceAlarm::default(),
        };
        let specs = config.instance_groups().iter().map(spec).collect();
        (config, specs)
    }

    fn rules() -> ExecutionRules {
        let mut policies = HostPolicies::default();
        policies.set("cpu", "cpu-cores", "0-1023").expect("valid");
        policies.set("mine", "cpu-cores", "0-1022").expect("valid");
        ExecutionRules { host_policies: Arc::new(policies), ..ExecutionRules::default() }
    }

    #[test]
    fn groups_use_their_named_policy_or_that_of_their_device() {
        let rules = rules();
        let (config, specs) = specs(
            "instance_group [ { kind: KIND_CPU }, { kind: KIND_CPU host_policy: 'mine' }, { kind: KIND_MODEL },
                              { kind: KIND_CPU host_policy: 'unknown' } ]",
        );
        let of = |name| rules.host_policies.get(name).cloned().expect("defined");
        let found = specs.iter().map(|spec| rules.placement(&config, spec).policy);
        let none = galatea_thread_placement::HostPolicy::default();
        assert_eq!(found.collect::<Vec<_>>(), [of("cpu"), of("mine"), none.clone(), none]);
        assert!(rules.shared_placement(&config, &specs).is_default(), "they differ");
        let alike = rules.shared_placement(&config, &[specs[0].clone(), specs[0].clone()]);
        assert_eq!(alike.policy, of("cpu"));
    }

    #[test]
    fn the_priority_of_a_model_applies_to_its_threads() {
        for (priority, niceness) in [("DEFAULT", 0), ("MAX", -5), ("MIN", 19)] {
            let (config, specs) =
                specs(&format!("optimization {{ priority: PRIORITY_{priority} }}"));
            let placement = ExecutionRules::default().placement(&config, &specs[0]);
            assert_eq!(placement.niceness, niceness, "{priority}");
        }
    }
}
