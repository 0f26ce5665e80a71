//! Why an ensemble cannot run on the models of its steps.

use std::collections::BTreeSet;

use galatea_config::{ConfigDraft, Diagnostic, FieldPath};
use galatea_types::{Error, suggest};

use super::cycle::Cycle;
use crate::model_id::ModelId;

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

/// What to do where an ensemble names a model that no repository holds. `models`: those that one does.
pub(crate) fn missing_model_advice(wanted: &str, models: &BTreeSet<ModelId>) -> Option<String> {
    if models.iter().any(|model| &*model.name == wanted) {
        return None;
    }
    let near = suggest::nearest(wanted, models.iter().map(|model| &*model.name));
    Some(match near.first() {
        Some(near) => format!("the repository has no model `{wanted}`: did you mean `{near}`?"),
        None => format!("the repository has no model `{wanted}`: add its folder, or name another"),
    })
}

/// What to do where an ensemble names a version of a model that is not loaded.
pub(crate) fn version_advice(loaded: &[i64]) -> String {
    let listed: Vec<_> = loaded.iter().rev().take(5).map(i64::to_string).collect();
    format!(
        "write `model_version: -1` for the newest, or one that is loaded: {}; the model's `version_policy` decides which \
         versions are",
        listed.join(", ")
    )
}

/// The error of an ensemble that needs itself. `draft`: its configuration, for the step that leads back to it.
pub(crate) fn cycle_error(ensemble: &ModelId, cycle: &Cycle<'_>, draft: &ConfigDraft) -> Error {
    let (last, ensemble) = (cycle.last.to_string(), ensemble.to_string());
    let text = DependencyError::Cycle { ensemble, last }.to_string();
    let found = Diagnostic::error(text.as_str())
        .about(draft.step_field(&cycle.first.name).unwrap_or_default())
        .with_advice(
            "an ensemble cannot be a step of itself, nor of its own steps: name another model here, or take this step \
             out",
        );
    Error::invalid_arg(text).with_source(found)
}

impl From<DependencyError> for Error {
    fn from(error: DependencyError) -> Self {
        Self::invalid_arg(error.to_string())
    }
}
