//! What is checked as configuration but not built yet: refused by name, never half-done.

use galatea_config::{ModelConfig, Scheduling};
use galatea_types::{Error, Result};

/// # Errors
/// `Unsupported` when answers would differ from what the configuration asks for.
pub(super) fn refuse(config: &ModelConfig) -> Result<()> {
    match config.scheduling() {
        Scheduling::Sequence => Err(Error::unsupported(format!(
            "sequence_batching of model '{}' is not supported by this version of the server",
            config.name()
        ))),
        Scheduling::Direct | Scheduling::Dynamic(_) | Scheduling::Ensemble(_) => Ok(()),
    }
}

/// Settings that change speed, not answers, are reported and ignored.
pub(super) fn warn(config: &ModelConfig) {
    if !config.raw().model_warmup.is_empty() {
        log::warn!(
            "model_warmup of model '{}' is not supported yet: its first requests run cold",
            config.name()
        );
    }
    if config.raw().response_cache.as_ref().is_some_and(|c| c.enable) {
        log::warn!(
            "response_cache of model '{}' is not supported yet: every request is executed",
            config.name()
        );
    }
}
