//! Why an ensemble cannot run on the models of its steps.

use galatea_config::{Diagnostic, FieldPath};
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

impl DependencyError {
    /// The error with the step of the ensemble that it is about, for its place, unless another model's is the one to
    /// look at.
    pub fn of_step(self, index: usize, advice: Option<String>) -> Error {
        let field = match self {
            Self::Unavailable { .. } => "model_name",
            Self::VersionNotLoaded { .. } => "model_version",
            Self::Invalid { .. } | Self::NotLoaded { .. } | Self::Cycle { .. } => {
                return self.into();
            }
        };
        let step = FieldPath::from("ensemble_scheduling.step").index(index);
        let mut found = Diagnostic::error(self.to_string()).about(step.field(field));
        found.advice = advice;
        Error::invalid_arg(found.text.as_str()).with_source(found)
    }
}

impl From<DependencyError> for Error {
    fn from(error: DependencyError) -> Self {
        Self::invalid_arg(error.to_string())
    }
}
