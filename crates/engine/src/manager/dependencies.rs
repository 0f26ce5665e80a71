//! Which models need which, and which of them are to be loaded.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard},
};

use galatea_types::LockExt;

use crate::{overrides::LoadOverrides, repository::FolderSnapshot};

/// Every model that was loaded, or was to be, and was not unloaded by name since; and which of them need which. An
/// ensemble stays known when a model it needs is unloaded, and is loaded again with it.
#[derive(Debug, Default)]
pub(super) struct Dependencies(Mutex<BTreeMap<String, Known>>);

#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// The models of an ensemble's steps; empty for every other model.
    needs: BTreeSet<String>,
    /// Named by the user or a client, not just needed by an ensemble.
    is_explicit: bool,
    /// What it was last loaded with.
    overrides: LoadOverrides,
    /// Its folder when what is ready now was loaded from it. `None`: it was loaded from files of a request.
    snapshot: Option<FolderSnapshot>,
}

/// A model to load.
#[derive(Clone, Debug)]
pub(super) struct LoadRequest {
    pub name: String,
    pub needs: BTreeSet<String>,
    /// It was named by the user or a client.
    pub is_explicit: bool,
    pub overrides: LoadOverrides,
    /// It is loaded again because a model it needs has changed.
    pub is_dependent: bool,
}

impl Dependencies {
    /// Remembers a model before it is loaded, so that whoever changes a model it needs meanwhile knows of it. Returns
    /// what was known before.
    pub fn record(&self, request: &LoadRequest, snapshot: Option<FolderSnapshot>) -> Option<Known> {
        let mut known = self.lock();
        let before = known.get(&request.name).cloned();
        let entry = known.entry(request.name.clone()).or_default();
        entry.snapshot = snapshot;
        entry.needs.clone_from(&request.needs);
        entry.is_explicit |= request.is_explicit;
        // Only an ensemble is ever loaded again without being named.
        if !request.needs.is_empty() {
            entry.overrides.clone_from(&request.overrides);
        }
        before
    }

    /// The load failed: what is ready is what was before. `is_kept`: the model is to be loaded as soon as what it
    /// needs is there.
    pub fn load_failed(&self, name: &str, before: Option<Known>, is_kept: bool) {
        let mut known = self.lock();
        let Some(entry) = known.get_mut(name) else { return };
        match before {
            _ if is_kept => entry.snapshot = before.and_then(|before| before.snapshot),
            Some(before) => *entry = before,
            None => drop(known.remove(name)),
        }
    }

    /// A client named a model that need not be loaded again.
    pub fn named(&self, name: &str) {
        if let Some(entry) = self.lock().get_mut(name) {
            entry.is_explicit = true;
        }
    }

    /// Every model that is known.
    pub fn names(&self) -> BTreeSet<String> {
        self.lock().keys().cloned().collect()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.lock().contains_key(name)
    }

    /// The folder that what is ready was loaded from, as it was then.
    pub fn snapshot(&self, name: &str) -> Option<FolderSnapshot> {
        self.lock().get(name)?.snapshot.clone()
    }

    /// Ensembles that need any of these, at any depth, without these themselves.
    pub fn dependents(&self, of: &BTreeSet<String>) -> Vec<LoadRequest> {
        let known = self.lock();
        let mut reached = of.clone();
        loop {
            let depends = |(name, k): &(&String, &Known)| {
                !reached.contains(*name) && !k.needs.is_disjoint(&reached)
            };
            let more: Vec<_> = known.iter().filter(depends).map(|(name, _)| name.clone()).collect();
            if more.is_empty() {
                break;
            }
            reached.extend(more);
        }
        let request = |name: &String| {
            known.get(name).map(|k| LoadRequest {
                name: name.clone(),
                needs: k.needs.clone(),
                is_explicit: k.is_explicit,
                overrides: k.overrides.clone(),
                is_dependent: true,
            })
        };
        reached.difference(of).filter_map(request).collect()
    }

    /// Forgets a model; `with_needs`: also the models that only it needed and nobody asked for. Returns every name
    /// that was forgotten.
    pub fn forget(&self, name: &str, with_needs: bool) -> BTreeSet<String> {
        let mut known = self.lock();
        let mut forgotten = BTreeSet::from([name.to_owned()]);
        let mut pending = vec![name.to_owned()];
        while let Some(name) = pending.pop() {
            let Some(Known { needs, .. }) = known.remove(&name) else { continue };
            let is_needed = |m: &String| known.values().any(|k| k.needs.contains(m));
            let is_orphan =
                |m: &String| known.get(m).is_some_and(|k| !k.is_explicit) && !is_needed(m);
            if with_needs {
                let orphans: Vec<String> = needs.into_iter().filter(is_orphan).collect();
                forgotten.extend(orphans.iter().cloned());
                pending.extend(orphans);
            }
        }
        forgotten
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.0.lock_unpoisoned()
    }
}

/// Whether an ensemble needs itself: the last model of a cycle of dependencies that leads back to `name`.
pub(super) fn cycle<'a>(name: &str, all: &'a [LoadRequest]) -> Option<&'a str> {
    let needs = |of: &str| all.iter().find(|r| r.name == of).map(|r| &r.needs);
    let mut seen = BTreeSet::new();
    let mut pending: Vec<&str> =
        all.iter().map(|r| r.name.as_str()).filter(|n| *n == name).collect();
    while let Some(at) = pending.pop() {
        for next in needs(at).into_iter().flatten() {
            if next == name {
                return all.iter().map(|r| r.name.as_str()).find(|n| *n == at);
            }
            if seen.insert(next) {
                pending.push(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_request(name: &str, needs: &[&str]) -> LoadRequest {
        let needs = needs.iter().map(|&n| n.to_owned()).collect();
        let overrides = LoadOverrides::default();
        let is_dependent = false;
        LoadRequest { name: name.to_owned(), needs, is_explicit: true, overrides, is_dependent }
    }

    fn needed(name: &str, needs: &[&str]) -> LoadRequest {
        LoadRequest { is_explicit: false, ..load_request(name, needs) }
    }

    fn known() -> Dependencies {
        let known = Dependencies::default();
        known.record(&load_request("outer", &["inner", "a"]), None);
        known.record(&needed("inner", &["a", "b"]), None);
        known.record(&needed("a", &[]), None);
        known.record(&needed("b", &[]), None);
        known.record(&load_request("alone", &["b2"]), None);
        known
    }

    fn names(requests: Vec<LoadRequest>) -> Vec<String> {
        requests.into_iter().map(|r| r.name).collect()
    }

    #[test]
    fn dependents_at_any_depth() {
        let known = known();
        assert_eq!(names(known.dependents(&["b".to_owned()].into())), ["inner", "outer"]);
        assert_eq!(names(known.dependents(&["outer".to_owned()].into())), [""; 0]);
        assert_eq!(names(known.dependents(&["b2".to_owned()].into())), ["alone"]);
    }

    #[test]
    fn models_that_only_it_needed_are_forgotten_with_it_unless_asked_for() {
        let forgotten = |with, explicit: &[&str]| {
            let known = known();
            for name in explicit {
                known.record(&load_request(name, &[]), None);
            }
            known.forget("outer", with).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(forgotten(false, &[]), ["outer"]);
        assert_eq!(forgotten(true, &[]), ["a", "b", "inner", "outer"]);
        assert_eq!(forgotten(true, &["b"]), ["a", "inner", "outer"]);
        let known = known();
        known.record(&load_request("third", &["a"]), None);
        assert!(!known.forget("outer", true).contains("a"));
    }

    #[test]
    fn cycles() {
        let all = [
            load_request("a", &["b"]),
            load_request("b", &["c"]),
            load_request("c", &["a"]),
            load_request("d", &["a"]),
        ];
        assert_eq!(cycle("a", &all), Some("c"));
        assert_eq!(cycle("d", &all), None);
        assert_eq!(cycle("e", &[load_request("e", &["e"])]), Some("e"));
    }
}
