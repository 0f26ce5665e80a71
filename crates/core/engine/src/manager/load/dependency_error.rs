//! The reasons why an ensemble cannot run on the models of its steps.

use std::collections::BTreeSet;

use galatea_config::{ConfigDraft, Diagnostic, FieldPath};
use galatea_types::{Code, Error, suggest};

use crate::{manager::plan::DependencyCycle, model_id::ModelId};

/// A step of an ensemble that cannot run. The errors have Triton's texts, which name the ensemble and the model it depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BrokenStep<'a> {
    pub ensemble: &'a ModelId,
    pub index: usize,
}

impl BrokenStep<'_> {
    /// Returns the error of a missing model. `models` are those in the repositories.
    pub fn unavailable(&self, model: &str, models: &BTreeSet<ModelId>) -> Error {
        let text = format!(
            "ensemble {} contains models that are not available or ambiguous: {model}",
            self.ensemble
        );
        self.error(text, "model_name", missing_model_advice(model, models))
    }

    /// Returns the error of a model that lacks the version. `loaded` are its loaded versions.
    pub fn version_not_loaded(&self, model: &ModelId, version: i64, loaded: &[i64]) -> Error {
        let text = format!(
            "ensemble '{}' depends on '{model}' whose required version {version} is not loaded.",
            self.ensemble
        );
        self.error(text, "model_version", Some(version_advice(loaded)))
    }

    fn error(&self, text: String, field: &'static str, advice: Option<String>) -> Error {
        let step = FieldPath::from("ensemble_scheduling.step").index(self.index);
        let mut found = Diagnostic::error(text).about(step.field(field));
        found.advice = advice;
        found.into_unplaced_error(Code::InvalidArg)
    }
}

/// Returns advice on an ensemble that names a model in no repository. `models` are those in the repositories.
fn missing_model_advice(wanted: &str, models: &BTreeSet<ModelId>) -> Option<String> {
    if models.iter().any(|model| &*model.name == wanted) {
        return None;
    }
    let near = suggest::nearest(wanted, models.iter().map(|model| &*model.name));
    Some(match near.first() {
        Some(near) => format!("the repository has no model `{wanted}`: did you mean `{near}`?"),
        None => format!("the repository has no model `{wanted}`: add its folder, or name another"),
    })
}

/// Returns advice on an ensemble that names a version of a model that is not loaded.
fn version_advice(loaded: &[i64]) -> String {
    let listed: Vec<_> = loaded.iter().rev().take(5).map(i64::to_string).collect();
    format!(
        "write `model_version: -1` for the newest, or one that is loaded: {}; the model's `version_policy` decides which \
         versions are",
        listed.join(", ")
    )
}

/// Returns the error of an ensemble that needs itself. `draft` is its configuration, for the step that leads back to it.
pub(crate) fn cycle_error(
    ensemble: &ModelId,
    cycle: &DependencyCycle,
    draft: &ConfigDraft,
) -> Error {
    let last = &cycle.last;
    let text =
        format!("circular dependency between ensembles: {ensemble} -> ... -> {last} -> {ensemble}");
    let found = Diagnostic::error(text)
        .about(draft.step_field(&cycle.first.name).unwrap_or_default())
        .with_advice(
            "an ensemble cannot be a step of itself, nor of its own steps: name another model here, or take this step \
             out",
        );
    found.into_unplaced_error(Code::InvalidArg)
}
