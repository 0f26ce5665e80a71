//! All mistakes of a configuration, where the checks of a load end at the first.

use galatea_proto::inference::model_config::SchedulingChoice;

use super::{
    ConfigError, TensorError, TensorProblem, advice, at::At, batch_io, context::CheckContext,
    ensemble, instance_groups, limits, max_batch_size, metrics, names, response_cache, scheduling,
    states, tensors, version_policy, warmup,
};
use crate::{Diagnostic, NormalizedConfig};

impl NormalizedConfig {
    /// All that [`ModelConfig::check`](crate::ModelConfig::check) would refuse, one after the other: at most one mistake per
    /// input, output, group or section. Their places are found by [`ConfigSource`](crate::ConfigSource).
    ///
    /// `is_complete`: no backend completes it any more, so that what is left out counts too.
    pub fn mistakes(&self, context: &CheckContext<'_>, is_complete: bool) -> Vec<Diagnostic> {
        let raw = &self.raw;
        let mut found = Vec::new();
        found.extend(names::check(raw, context).err().map(At::widen));
        found.extend(limits::check_steps(raw).err().map(At::widen));
        found.extend(version_policy(raw.version_policy.as_ref(), &raw.name).err());
        found.extend(max_batch_size(raw).err());
        self.find_in_scheduling(&mut found);
        found.extend(response_cache::check(raw).err().map(At::widen));
        found.extend(metrics::check(raw.model_metrics.as_ref()).err().map(At::widen));
        found.extend(limits::check(raw).err().map(At::widen));
        if !matches!(raw.scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_))) {
            found.extend(instance_groups::check(self, context).err().map(At::widen));
        }
        self.find_in_tensors(is_complete, &mut found);
        found.extend(warmup::check(raw).err().map(At::widen));
        found.into_iter().map(|error| advice::into_diagnostic(error, raw)).collect()
    }

    fn find_in_scheduling(&self, found: &mut Vec<At<ConfigError>>) {
        match &self.raw.scheduling_choice {
            Some(SchedulingChoice::EnsembleScheduling(ensembling)) => {
                let of_ensemble = ensemble::mistakes(ensembling, &self.raw).into_iter();
                found.extend(of_ensemble.map(At::widen));
            }
            _ => found.extend(scheduling(&self.raw).err()),
        }
    }

    fn find_in_tensors(&self, is_complete: bool, found: &mut Vec<At<ConfigError>>) {
        let model = || self.raw.name.clone();
        let counts = |at: &At<TensorError>| is_complete || !is_completed(&at.problem);
        let of_tensors = tensors::mistakes(&self.raw).into_iter().filter(counts);
        found.extend(
            of_tensors.map(|at| at.map(|error| ConfigError::Tensor { model: model(), error })),
        );
        if !is_complete {
            return;
        }
        let of_batches = batch_io::check(&self.raw).err();
        found.extend(
            of_batches.map(|at| at.map(|error| ConfigError::BatchIo { model: model(), error })),
        );
        found.extend(states(&self.raw).err());
    }
}

/// Whether a backend could still make it right, by what only the model's file says.
fn is_completed(error: &TensorError) -> bool {
    let TensorError::Tensor { problem, .. } = error else { return false };
    matches!(
        problem,
        TensorProblem::NoDataType | TensorProblem::NoDims | TensorProblem::ScalarWithoutBatching
    )
}
