//! Records which models need which, and which of them must be loaded again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::requests::LoadRequest;
use crate::{model_id::ModelId, overrides::LoadOverrides, repository::FolderSnapshot};

/// Every model that was loaded, or requested, and not unloaded by name since, with the models it needs. An ensemble stays
/// recorded when a model it needs is unloaded, and is loaded again with it.
#[derive(Debug, Default)]
pub(crate) struct Dependencies(BTreeMap<ModelId, KnownModel>);

#[derive(Clone, Debug, Default)]
pub(crate) struct KnownModel {
    /// Names of the models of an ensemble's steps; empty for all other models.
    steps: BTreeSet<Arc<str>>,
    /// Those of them that are in its own namespace. Each of the others may mean any model with that name.
    own: BTreeSet<Arc<str>>,
    /// True if the user or a client named it, and not only an ensemble needs it.
    is_explicit: bool,
    /// The overrides of its last load.
    overrides: LoadOverrides,
    /// The folder that the ready versions were loaded from; `None` if they were loaded from files of a request.
    snapshot: Option<FolderSnapshot>,
}

impl KnownModel {
    /// Returns true if it needs any of `models`; `names` are their names.
    fn needs_any(
        &self,
        id: &ModelId,
        models: &BTreeSet<ModelId>,
        names: &BTreeSet<Arc<str>>,
    ) -> bool {
        self.steps.iter().any(|step| {
            models.contains(&id.sibling(step.clone()))
                || !self.own.contains(step) && names.contains(step)
        })
    }

    /// Returns the recorded models that it needs. A name that several models have means none.
    fn needs(&self, id: &ModelId, known: &BTreeMap<ModelId, KnownModel>) -> BTreeSet<ModelId> {
        let model = |step: &Arc<str>| match self.own.contains(step) {
            true => Some(id.sibling(step.clone())),
            false => {
                let mut found = known.keys().filter(|k| k.name == *step);
                found.next().filter(|_| found.next().is_none()).cloned()
            }
        };
        self.steps.iter().filter_map(model).collect()
    }
}

impl Dependencies {
    /// Records a model before it is loaded, so that changes of models it needs during the load are not missed. Returns the
    /// previous record.
    pub fn record(
        &mut self,
        request: &LoadRequest,
        snapshot: Option<FolderSnapshot>,
    ) -> Option<KnownModel> {
        let before = self.0.get(&request.id).cloned();
        let entry = self.0.entry(request.id.clone()).or_default();
        entry.snapshot = snapshot;
        entry.steps.clone_from(&request.steps);
        entry.own.clear();
        entry.is_explicit |= request.is_explicit;
        // Only an ensemble is ever loaded again without being named.
        if !request.steps.is_empty() {
            entry.overrides.clone_from(&request.overrides);
        }
        before
    }

    /// Records the models of an ensemble's steps that are in its own namespace.
    pub fn resolved(&mut self, id: &ModelId, own: BTreeSet<Arc<str>>) {
        if let Some(entry) = self.0.get_mut(id) {
            entry.own = own;
        }
    }

    /// Records a failed load: the previous versions are still ready. `is_kept` is true if the model must be loaded as soon as
    /// the models it needs are ready.
    pub fn load_failed(&mut self, id: &ModelId, before: Option<KnownModel>, is_kept: bool) {
        let Some(entry) = self.0.get_mut(id) else { return };
        match before {
            _ if is_kept => entry.snapshot = before.and_then(|before| before.snapshot),
            Some(before) => *entry = before,
            None => drop(self.0.remove(id)),
        }
    }

    /// Marks a model as named by a client, although it need not be loaded again.
    pub fn set_explicit(&mut self, id: &ModelId) {
        if let Some(entry) = self.0.get_mut(id) {
            entry.is_explicit = true;
        }
    }

    pub fn models(&self) -> BTreeSet<ModelId> {
        self.0.keys().cloned().collect()
    }

    pub fn contains(&self, id: &ModelId) -> bool {
        self.0.contains_key(id)
    }

    pub fn snapshot(&self, id: &ModelId) -> Option<&FolderSnapshot> {
        self.0.get(id)?.snapshot.as_ref()
    }

    /// Returns the ensembles that need any of these models, at any depth, without these models themselves.
    pub fn dependents(&self, of: &BTreeSet<ModelId>) -> Vec<LoadRequest> {
        let known = &self.0;
        let mut reached = of.clone();
        loop {
            let names = reached.iter().map(|id| id.name.clone()).collect();
            let depends = |(id, k): &(&ModelId, &KnownModel)| {
                !reached.contains(*id) && k.needs_any(id, &reached, &names)
            };
            let more: Vec<_> = known.iter().filter(depends).map(|(id, _)| id.clone()).collect();
            if more.is_empty() {
                break;
            }
            reached.extend(more);
        }
        let request = |id: &ModelId| {
            known.get(id).map(|k| LoadRequest {
                id: id.clone(),
                steps: k.steps.clone(),
                is_explicit: k.is_explicit,
                overrides: k.overrides.clone(),
                is_dependent: true,
            })
        };
        reached.difference(of).filter_map(request).collect()
    }

    /// Forgets models; with `with_needs`, also the models that only they needed and nobody asked for. Returns all forgotten
    /// models, including those of `models` that were not recorded.
    pub fn forget(&mut self, models: BTreeSet<ModelId>, with_needs: bool) -> BTreeSet<ModelId> {
        let known = &mut self.0;
        let mut pending: Vec<ModelId> = models.iter().cloned().collect();
        let mut forgotten = models;
        while let Some(id) = pending.pop() {
            let needs = known.get(&id).map(|k| k.needs(&id, known)).unwrap_or_default();
            known.remove(&id);
            let is_needed =
                |m: &ModelId| known.iter().any(|(id, k)| k.needs(id, known).contains(m));
            let is_orphan =
                |m: &ModelId| known.get(m).is_some_and(|k| !k.is_explicit) && !is_needed(m);
            if with_needs {
                let orphans: Vec<ModelId> = needs.into_iter().filter(is_orphan).collect();
                forgotten.extend(orphans.iter().cloned());
                pending.extend(orphans);
            }
        }
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_request(id: &str, steps: &[&str]) -> LoadRequest {
        let id = match id.split_once("::") {
            Some((namespace, name)) => ModelId::new(namespace, name),
            None => ModelId::global(id),
        };
        let steps = steps.iter().map(|&step| step.into()).collect();
        let overrides = LoadOverrides::default();
        LoadRequest { id, steps, is_explicit: true, overrides, is_dependent: false }
    }

    fn set(names: &[&str]) -> BTreeSet<ModelId> {
        names.iter().map(|name| load_request(name, &[]).id).collect()
    }

    fn needed(name: &str, needs: &[&str]) -> LoadRequest {
        LoadRequest { is_explicit: false, ..load_request(name, needs) }
    }

    fn known() -> Dependencies {
        let mut known = Dependencies::default();
        known.record(&load_request("outer", &["inner", "a"]), None);
        known.record(&needed("inner", &["a", "b"]), None);
        known.record(&needed("a", &[]), None);
        known.record(&needed("b", &[]), None);
        known.record(&load_request("alone", &["b2"]), None);
        known
    }

    fn names(requests: Vec<LoadRequest>) -> Vec<String> {
        requests.into_iter().map(|r| r.id.to_string()).collect()
    }

    #[test]
    fn dependents_are_found_at_any_depth() {
        let known = known();
        assert_eq!(names(known.dependents(&set(&["b"]))), ["inner", "outer"]);
        assert_eq!(names(known.dependents(&set(&["outer"]))), [""; 0]);
        assert_eq!(names(known.dependents(&set(&["b2"]))), ["alone"]);
    }

    #[test]
    fn a_step_without_a_model_in_its_namespace_depends_on_all_of_that_name() {
        let mut known = Dependencies::default();
        for id in ["x::e", "y::e"] {
            known.record(&load_request(id, &["m"]), None);
        }
        assert_eq!(names(known.dependents(&set(&["x::m"]))), ["x::e", "y::e"]);
        known.resolved(&set(&["x::e"]).pop_first().expect("one"), BTreeSet::from(["m".into()]));
        assert_eq!(names(known.dependents(&set(&["x::m"]))), ["x::e", "y::e"]);
        assert_eq!(names(known.dependents(&set(&["y::m"]))), ["y::e"]);
        assert_eq!(names(known.dependents(&set(&["z::m"]))), ["y::e"]);
    }

    #[test]
    fn the_model_of_a_step_is_forgotten_with_its_ensemble() {
        let forgotten = |own: bool, others: &[&str]| {
            let mut known = Dependencies::default();
            let ensemble = load_request("x::e", &["m"]);
            known.record(&ensemble, None);
            others.iter().for_each(|id| drop(known.record(&needed(id, &[]), None)));
            if own {
                known.resolved(&ensemble.id, ensemble.steps.clone());
            }
            let forgotten = known.forget(set(&["x::e"]), true);
            forgotten.iter().map(ModelId::to_string).collect::<Vec<_>>()
        };
        assert_eq!(forgotten(true, &["x::m", "y::m"]), ["x::e", "x::m"]);
        assert_eq!(forgotten(false, &["y::m"]), ["x::e", "y::m"]);
        assert_eq!(forgotten(false, &["y::m", "z::m"]), ["x::e"]);
    }

    #[test]
    fn models_loaded_for_an_ensemble_are_forgotten_with_it_unless_requested() {
        let forgotten = |with, explicit: &[&str]| {
            let mut known = known();
            for name in explicit {
                known.record(&load_request(name, &[]), None);
            }
            let forgotten = known.forget(set(&["outer"]), with);
            forgotten.iter().map(ModelId::to_string).collect::<Vec<_>>()
        };
        assert_eq!(forgotten(false, &[]), ["outer"]);
        assert_eq!(forgotten(true, &[]), ["a", "b", "inner", "outer"]);
        assert_eq!(forgotten(true, &["b"]), ["a", "inner", "outer"]);
        let mut known = known();
        known.record(&load_request("third", &["a"]), None);
        assert!(!known.forget(set(&["outer"]), true).contains(&"a".into()));
    }
}
