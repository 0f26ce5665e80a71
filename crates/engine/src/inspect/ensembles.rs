//! Ensembles against the models of their steps.

use std::{collections::BTreeMap, sync::Arc};

use galatea_config::{ModelConfig, Scheduling};
use galatea_types::{Error, Result};

use super::{Finding, Inspected};
use crate::{manager::DependencyError, model_id::ModelId, repository::Repository};

type Models = BTreeMap<ModelId, Inspected>;

/// What became of one ensemble.
enum Outcome {
    Fits(Arc<ModelConfig>),
    /// One of its models is not known well enough.
    Unknown,
    /// It waits for another ensemble.
    Waits,
}

/// Checks each ensemble as soon as those it consists of are checked.
pub(super) fn inspect(repository: &Repository, models: &mut Models, findings: &mut Vec<Finding>) {
    let is_ensemble = |(id, model): (&ModelId, &Inspected)| {
        (model.plan.is_ensemble() && model.config.is_some()).then(|| id.clone())
    };
    let mut waiting: Vec<ModelId> = models.iter().filter_map(is_ensemble).collect();
    loop {
        let mut left = Vec::new();
        for id in &waiting {
            let file = format!("{}/config.pbtxt", id.name);
            match check(repository, models, &waiting, id) {
                Ok(Outcome::Fits(config)) => set(models, id, Some(config)),
                Ok(Outcome::Unknown) => set(models, id, None),
                Ok(Outcome::Waits) => left.push(id.clone()),
                Err(error) => {
                    let located =
                        models.get(id).map(|model| model.plan.source.locate(error.clone()));
                    let error = located.unwrap_or(error);
                    findings.push(Finding::of_error(&id.name, &file, &error));
                    models.remove(id);
                }
            }
        }
        if left.is_empty() {
            return;
        }
        if left.len() == waiting.len() {
            return findings.extend(left.iter().map(cycle));
        }
        waiting = left;
    }
}

fn set(models: &mut Models, id: &ModelId, config: Option<Arc<ModelConfig>>) {
    if let Some(model) = models.get_mut(id) {
        model.config = config;
    }
}

fn cycle(id: &ModelId) -> Finding {
    let (ensemble, last) = (id.to_string(), id.to_string());
    let error = Error::from(DependencyError::Cycle { ensemble, last });
    let file = format!("{}/config.pbtxt", id.name);
    Finding::of_error(&id.name, &file, &error)
}

fn check(
    repository: &Repository,
    models: &Models,
    waiting: &[ModelId],
    id: &ModelId,
) -> Result<Outcome> {
    let config = models.get(id).and_then(|model| model.config.clone());
    let Some(config) = config else { return Ok(Outcome::Unknown) };
    let Scheduling::Ensemble(ensembling) = config.scheduling() else {
        return Ok(Outcome::Unknown);
    };
    let mut of_steps = Vec::new();
    for step in &ensembling.steps {
        let named = repository.named(&step.model_name);
        let own = named.iter().find(|named| named.namespace == id.namespace).or(named.first());
        let held = own.filter(|own| matches!(repository.find(own), Ok(Some(_))));
        let Some(own) = held else {
            let (ensemble, model) = (id.to_string(), step.model_name.to_string());
            return Err(DependencyError::Unavailable { ensemble, model }.into());
        };
        if waiting.contains(own) {
            return Ok(Outcome::Waits);
        }
        // One with a mistake is a finding of its own.
        let Some(model) = models.get(own) else { return Ok(Outcome::Unknown) };
        if let Some(version) = step.model_version.filter(|v| !model.plan.versions.contains(v)) {
            let (ensemble, model) = (id.to_string(), own.to_string());
            return Err(DependencyError::VersionNotLoaded { ensemble, model, version }.into());
        }
        let Some(config) = &model.config else { return Ok(Outcome::Unknown) };
        of_steps.push(config.clone());
    }
    Ok(Outcome::Fits(Arc::new(config.with_step_models(&of_steps)?)))
}
