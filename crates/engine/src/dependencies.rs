use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::LoadOverrides;

/// Which models are wanted, and which of them need which: every model that was loaded, or was to be, and not
/// unloaded by name since. An ensemble stays known when a model it needs goes, and comes back with it.
#[derive(Debug, Default)]
pub(crate) struct Dependencies(Mutex<BTreeMap<String, Known>>);

#[derive(Debug, Default)]
struct Known {
    /// The models of an ensemble's steps; empty for every other model.
    needs: BTreeSet<String>,
    /// Asked for by name, not just needed by an ensemble.
    is_explicit: bool,
    /// What it was last loaded with.
    overrides: LoadOverrides,
}

/// A model to load.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub name: String,
    pub needs: BTreeSet<String>,
    pub overrides: LoadOverrides,
}

impl Dependencies {
    pub fn note(&self, wanted: &Wanted, is_explicit: bool) {
        let mut known = self.lock();
        let entry = known.entry(wanted.name.clone()).or_default();
        entry.needs.clone_from(&wanted.needs);
        entry.is_explicit |= is_explicit;
        // Only an ensemble is ever loaded again without being named.
        if !wanted.needs.is_empty() {
            entry.overrides.clone_from(&wanted.overrides);
        }
    }

    /// Ensembles that need any of these, at any depth, without these themselves.
    pub fn dependents(&self, of: &BTreeSet<String>) -> Vec<Wanted> {
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
        let wanted = |name: &String| {
            known.get(name).map(|k| Wanted {
                name: name.clone(),
                needs: k.needs.clone(),
                overrides: k.overrides.clone(),
            })
        };
        reached.difference(of).filter_map(wanted).collect()
    }

    /// Forgets a model; `with_needs`: also the models only it needed and nobody asked for. All that was
    /// forgotten.
    pub fn forget(&self, name: &str, with_needs: bool) -> BTreeSet<String> {
        let mut known = self.lock();
        let mut gone = BTreeSet::from([name.to_owned()]);
        let mut open = vec![name.to_owned()];
        while let Some(name) = open.pop() {
            let Some(Known { needs, .. }) = known.remove(&name) else { continue };
            let is_needed = |m: &String| known.values().any(|k| k.needs.contains(m));
            let is_orphan =
                |m: &String| known.get(m).is_some_and(|k| !k.is_explicit) && !is_needed(m);
            if with_needs {
                let orphans: Vec<String> = needs.into_iter().filter(is_orphan).collect();
                gone.extend(orphans.iter().cloned());
                open.extend(orphans);
            }
        }
        gone
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A model in a circle of ensembles, and the last one on the way back to it.
pub(crate) fn circle<'a>(name: &str, all: &'a [Wanted]) -> Option<&'a str> {
    let needs = |of: &str| all.iter().find(|w| w.name == of).map(|w| &w.needs);
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = all.iter().map(|w| w.name.as_str()).filter(|n| *n == name).collect();
    while let Some(at) = open.pop() {
        for next in needs(at).into_iter().flatten() {
            if next == name {
                return all.iter().map(|w| w.name.as_str()).find(|n| *n == at);
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str, needs: &[&str]) -> Wanted {
        let needs = needs.iter().map(|&n| n.to_owned()).collect();
        Wanted { name: name.to_owned(), needs, overrides: LoadOverrides::default() }
    }

    fn known() -> Dependencies {
        let known = Dependencies::default();
        known.note(&wanted("outer", &["inner", "a"]), true);
        known.note(&wanted("inner", &["a", "b"]), false);
        known.note(&wanted("a", &[]), false);
        known.note(&wanted("b", &[]), false);
        known.note(&wanted("alone", &["b2"]), true);
        known
    }

    fn names(wanted: Vec<Wanted>) -> Vec<String> {
        wanted.into_iter().map(|w| w.name).collect()
    }

    #[test]
    fn dependents_at_any_depth() {
        let known = known();
        assert_eq!(names(known.dependents(&["b".to_owned()].into())), ["inner", "outer"]);
        assert_eq!(names(known.dependents(&["outer".to_owned()].into())), [""; 0]);
        assert_eq!(names(known.dependents(&["b2".to_owned()].into())), ["alone"]);
    }

    #[test]
    fn what_nobody_needs_goes_along_unless_it_was_asked_for() {
        let gone = |with, explicit: &[&str]| {
            let known = known();
            for name in explicit {
                known.note(&wanted(name, &[]), true);
            }
            known.forget("outer", with).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(gone(false, &[]), ["outer"]);
        assert_eq!(gone(true, &[]), ["a", "b", "inner", "outer"]);
        assert_eq!(gone(true, &["b"]), ["a", "inner", "outer"]);
        let known = known();
        known.note(&wanted("third", &["a"]), true);
        assert!(!known.forget("outer", true).contains("a"));
    }

    #[test]
    fn circles() {
        let all =
            [wanted("a", &["b"]), wanted("b", &["c"]), wanted("c", &["a"]), wanted("d", &["a"])];
        assert_eq!(circle("a", &all), Some("c"));
        assert_eq!(circle("d", &all), None);
        assert_eq!(circle("e", &[wanted("e", &["e"])]), Some("e"));
    }
}
