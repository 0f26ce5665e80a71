//! Why an ensemble cannot run on the models of its steps.

use galatea_types::Error;

/// In Triton's words, which name the ensemble and the model it depends on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DependencyError {
    #[error("ensemble {ensemble} contains models that are not available or ambiguous: {model}")]
    Unavailable { ensemble: String, model: String },
    #[error(
        "ensemble '{ensemble}' depends on '{model}' whose required version {version} is not loaded."
    )]
    VersionNotLoaded { ensemble: String, model: String, version: i64 },
    #[error(
        "ensemble '{ensemble}' depends on '{model}' which is not valid. Model '{model}' failed with error: \
         {reason}"
    )]
    Invalid { ensemble: String, model: String, reason: String },
    #[error(
        "ensemble '{ensemble}' depends on '{model}' which has no loaded version. Model '{model}' loading failed \
         with error: {reason}"
    )]
    NotLoaded { ensemble: String, model: String, reason: String },
    #[error("circular dependency between ensembles: {ensemble} -> ... -> {last} -> {ensemble}")]
    Cycle { ensemble: String, last: String },
}

impl From<DependencyError> for Error {
    fn from(error: DependencyError) -> Self {
        Self::invalid_arg(error.to_string())
    }
}
