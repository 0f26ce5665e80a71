//! Models whose responses cannot be cached.

use galatea_proto::inference::model_config::SchedulingChoice;

use super::at::{About, At};
use crate::{ModelConfig, RawModelConfig};

/// Why responses of a model cannot be cached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseCacheError {
    /// They depend on earlier requests.
    #[error(
        "Response Cache does not currently support model {model} with sequence batching scheduler. Please \
         disable the response cache."
    )]
    SequenceBatching {
        /// The model.
        model: String,
    },
    /// There is any number of them.
    #[error(
        "Response Cache does not currently support model {model} with 'decoupled' transaction policy. \
         Please disable the response cache."
    )]
    Decoupled {
        /// The model.
        model: String,
    },
}

/// Of an ensemble whose steps' models are known: whether it can be cached is known only then.
pub(super) fn check_ensemble(
    ensemble: &ModelConfig,
    is_decoupled: bool,
) -> Result<(), At<ResponseCacheError>> {
    if !(ensemble.caches_responses() && is_decoupled) {
        return Ok(());
    }
    let model = ensemble.name().to_string();
    Err(ResponseCacheError::Decoupled { model }.at("response_cache.enable"))
}

pub(super) fn check(raw: &RawModelConfig) -> Result<(), At<ResponseCacheError>> {
    if !raw.response_cache.is_some_and(|c| c.enable) {
        return Ok(());
    }
    let model = raw.name.clone();
    if matches!(raw.scheduling_choice, Some(SchedulingChoice::SequenceBatching(_))) {
        return Err(ResponseCacheError::SequenceBatching { model }.at("response_cache.enable"));
    }
    if raw.model_transaction_policy.is_some_and(|p| p.decoupled) {
        return Err(ResponseCacheError::Decoupled { model }.at("response_cache.enable"));
    }
    Ok(())
}
