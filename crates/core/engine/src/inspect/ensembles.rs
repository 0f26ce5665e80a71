//! Checks ensembles against the models of their steps.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use galatea_config::{ConfigDraft, EnsembleStep, ModelConfig, RawModelConfig, Scheduling};
use galatea_types::Error;

use super::{Finding, Inspected, MOST_MISTAKES, add_mistakes};
use crate::{
    manager::{BrokenStep, DependencyCycle, cycle_error, cycles},
    model_id::ModelId,
    repository::Repository,
};

type Models = BTreeMap<ModelId, Inspected>;

/// The ensembles of the repositories. Each is checked after the models that it consists of.
pub(super) struct Ensembles<'a> {
    pub repository: &'a Repository,
    /// All models, including those with mistakes.
    pub ids: &'a BTreeSet<ModelId>,
}

/// The inspection result of a step's model.
enum Step {
    Known(Arc<ModelConfig>),
    /// It has its own mistake, or its files do not contain its configuration.
    Unknown,
    Wrong(Error),
}

impl Ensembles<'_> {
    /// Inspects each ensemble after those that it consists of.
    pub fn inspect(&self, models: &mut Models, findings: &mut Vec<Finding>) {
        let needs = self.needs(models);
        let mut users: BTreeMap<&ModelId, Vec<&ModelId>> = BTreeMap::new();
        for (id, needed) in &needs {
            needed.iter().for_each(|needed| users.entry(needed).or_default().push(id));
        }
        let mut open: BTreeMap<_, _> = needs.iter().map(|(id, n)| (id, n.len())).collect();
        let mut free: Vec<&ModelId> =
            needs.iter().filter(|(_, needed)| needed.is_empty()).map(|(id, _)| id).collect();
        while let Some(id) = free.pop() {
            open.remove(id);
            conclude(models, id, &self.steps(models, id), findings);
            for user in users.get(id).into_iter().flatten() {
                if let Some(count) = open.get_mut(user) {
                    *count -= 1;
                    if *count == 0 {
                        free.push(user);
                    }
                }
            }
        }
        findings.extend(rejected(models, &needs, &open));
    }

    /// Returns the ensembles, each with the ensembles that it needs.
    fn needs(&self, models: &Models) -> BTreeMap<ModelId, BTreeSet<ModelId>> {
        let of_model = |(id, model): (&ModelId, &Inspected)| {
            let Scheduling::Ensemble(ensembling) = model.config.as_ref()?.scheduling() else {
                return None;
            };
            let named = ensembling.steps.iter().filter_map(|step| self.find(id, &step.model_name));
            let is_ensemble = |id: &ModelId| {
                let model = models.get(id);
                model.is_some_and(|model| model.polled.is_ensemble() && model.config.is_some())
            };
            Some((id.clone(), named.filter(is_ensemble).collect()))
        };
        models.iter().filter_map(of_model).collect()
    }

    fn steps(&self, models: &Models, id: &ModelId) -> Vec<Step> {
        let config = models.get(id).and_then(|model| model.config.as_deref());
        let Some(Scheduling::Ensemble(ensembling)) = config.map(ModelConfig::scheduling) else {
            return Vec::new();
        };
        let of_step = |(index, step): (usize, &EnsembleStep)| {
            let broken = BrokenStep { ensemble: id, index };
            let Some(own) = self.find(id, &step.model_name) else {
                return Step::Wrong(broken.unavailable(&step.model_name, self.ids));
            };
            let Some(model) = models.get(&own) else { return Step::Unknown };
            let loaded = &model.polled.versions;
            if let Some(version) = step.model_version.filter(|v| !loaded.contains(v)) {
                return Step::Wrong(broken.version_not_loaded(&own, version, loaded));
            }
            model.config.clone().map_or(Step::Unknown, Step::Known)
        };
        ensembling.steps.iter().enumerate().map(of_step).collect()
    }

    /// Returns the model that a step names, if exactly one repository has it.
    fn find(&self, ensemble: &ModelId, name: &str) -> Option<ModelId> {
        let named = self.repository.named(name);
        let own = named.iter().find(|named| named.namespace == ensemble.namespace);
        let own = own.or(named.first())?;
        matches!(self.repository.find(own), Ok(Some(_))).then(|| own.clone())
    }
}

impl Step {
    fn config(&self) -> Option<Arc<ModelConfig>> {
        match self {
            Self::Known(config) => Some(config.clone()),
            _ => None,
        }
    }
}

/// Reports mistakes of an ensemble, and keeps its configuration for ensembles with it as a step.
fn conclude(models: &mut Models, id: &ModelId, steps: &[Step], findings: &mut Vec<Finding>) {
    let Some(model) = models.get_mut(id) else { return };
    let Some(config) = model.config.take() else { return };
    let before = findings.len();
    let wrong = steps.iter().filter_map(|step| match step {
        Step::Wrong(error) => Some(error),
        _ => None,
    });
    findings.extend(wrong.take(MOST_MISTAKES).map(|error| finding(model, error.clone())));
    let known: Vec<_> = steps.iter().map(Step::config).collect();
    let mistakes = config.step_mistakes(&known);
    add_mistakes(&model.polled.folder, &model.polled.source, mistakes, findings);
    if findings.len() > before {
        models.remove(id);
        return;
    }
    let known: Option<Vec<_>> = known.into_iter().collect();
    model.config = known.and_then(|known| config.with_step_models(&known).ok()).map(Arc::new);
}

fn finding(model: &Inspected, error: Error) -> Finding {
    let name = &model.polled.id.name;
    Finding::of_error(name, &format!("{name}/config.pbtxt"), &model.polled.source.locate(error))
}

/// Returns those ensembles in `open`, which wait for each other, that need themselves. The others only wait for one of them
/// and have no mistake of their own.
fn rejected(
    models: &Models,
    needs: &BTreeMap<ModelId, BTreeSet<ModelId>>,
    open: &BTreeMap<&ModelId, usize>,
) -> Vec<Finding> {
    let is_open = |(id, _): &(&ModelId, &BTreeSet<ModelId>)| open.contains_key(id);
    let needs = needs.iter().filter(is_open).map(|(id, n)| (id, n.iter().collect())).collect();
    let of_ensemble = |(id, cycle): (&ModelId, DependencyCycle)| {
        let model = models.get(id)?;
        let draft = ConfigDraft::from(RawModelConfig::clone(&model.polled.raw));
        Some(finding(model, cycle_error(id, &cycle, &draft)))
    };
    cycles(&needs).into_iter().filter_map(of_ensemble).collect()
}
