//! Refuses the response cache for models whose responses cannot be cached.

use galatea_proto::inference::model_config::SchedulingChoice;

use super::mistake::{Result, refuse};
use crate::{ModelConfig, RawModelConfig};

/// Checks an ensemble. This needs the models of its steps: only they show whether it is decoupled.
pub(super) fn check_ensemble(ensemble: &ModelConfig, is_decoupled: bool) -> Result<()> {
    match ensemble.caches_responses() && is_decoupled {
        true => decoupled(ensemble.name()),
        false => Ok(()),
    }
}

pub(super) fn check(raw: &RawModelConfig) -> Result<()> {
    let model = &raw.name;
    if !raw.response_cache.is_some_and(|c| c.enable) {
        return Ok(());
    }
    // Responses depend on earlier requests.
    if matches!(raw.scheduling_choice, Some(SchedulingChoice::SequenceBatching(_))) {
        let text = format!(
            "Response Cache does not currently support model {model} with sequence batching scheduler. Please disable the \
             response cache."
        );
        return refuse("response_cache.enable", text, "");
    }
    match raw.model_transaction_policy.is_some_and(|p| p.decoupled) {
        true => decoupled(model),
        false => Ok(()),
    }
}

/// Refuses a decoupled model: it has any number of responses.
fn decoupled(model: &str) -> Result<()> {
    let text = format!(
        "Response Cache does not currently support model {model} with 'decoupled' transaction policy. Please disable the \
         response cache."
    );
    refuse("response_cache.enable", text, "")
}
