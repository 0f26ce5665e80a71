//! Finds all mistakes of a configuration; the checks of a load stop at the first.

use galatea_proto::inference::model_config::SchedulingChoice;

use super::{
    batch_io, context::CheckContext, ensemble, instance_groups, limits, max_batch_size, metrics,
    mistake::Mistake, names, response_cache, scheduling, states, tensors, version_policy, warmup,
};
use crate::{Diagnostic, NormalizedConfig};

impl NormalizedConfig {
    /// Returns all that [`ModelConfig::check`](crate::ModelConfig::check) would refuse: at most one mistake per input, output,
    /// group or section. [`ConfigSource`](crate::ConfigSource) finds their places.
    ///
    /// With `is_complete`, no backend will complete the configuration, so missing parts are mistakes too.
    pub fn mistakes(&self, context: &CheckContext<'_>, is_complete: bool) -> Vec<Diagnostic> {
        let raw = &self.raw;
        let mut found: Vec<Mistake> = Vec::new();
        found.extend(names::check(raw, context).err());
        found.extend(limits::check_steps(raw).err());
        found.extend(version_policy(raw).err());
        found.extend(max_batch_size(raw).err());
        let ensembling = match &raw.scheduling_choice {
            Some(SchedulingChoice::EnsembleScheduling(ensembling)) => Some(ensembling),
            _ => None,
        };
        match ensembling {
            Some(ensembling) => found.extend(ensemble::mistakes(ensembling, raw)),
            None => found.extend(scheduling(raw).err()),
        }
        found.extend(response_cache::check(raw).err());
        found.extend(metrics::check(raw.model_metrics.as_ref()).err());
        found.extend(limits::check(raw).err());
        if ensembling.is_none() {
            found.extend(instance_groups::check(self, context).err());
        }
        found.extend(tensors::mistakes(raw, is_complete));
        if is_complete {
            found.extend(batch_io::check(raw).err());
            found.extend(states::check(raw).err());
        }
        found.extend(warmup::check(raw).err());
        found.into_iter().map(|found| *found).collect()
    }
}
