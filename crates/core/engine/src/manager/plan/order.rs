//! Orders loads: each model after those it needs.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    cycle::{DependencyCycle, cycles},
    requests::LoadRequest,
};
use crate::model_id::ModelId;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Loads models at the same time: none needs another one of them.
    Load(Vec<LoadRequest>),
    /// Rejects an ensemble that needs itself.
    Reject(LoadRequest, DependencyCycle),
}

/// Puts loads in order. `is_known` returns true if clients may mean a model, loaded or not.
pub(crate) fn in_order(
    mut pending: Vec<LoadRequest>,
    is_known: &dyn Fn(&ModelId) -> bool,
) -> Vec<Step> {
    let all = pending.iter().map(|r| r.id.clone()).collect();
    let needs = ModelNeeds { all, is_known };
    let mut steps = Vec::new();
    while !pending.is_empty() {
        let (wave, rest) = needs.next_wave(pending);
        pending = match wave.is_empty() {
            true => needs.reject_cycles(rest, &mut steps),
            false => {
                steps.push(Step::Load(wave));
                rest
            }
        };
    }
    steps
}

struct ModelNeeds<'a> {
    /// All models to load.
    all: BTreeSet<ModelId>,
    is_known: &'a dyn Fn(&ModelId) -> bool,
}

impl ModelNeeds<'_> {
    /// Returns the models that can be loaded now, and the others.
    ///
    /// A step means the model in the ensemble's namespace, or another one with that name if the first cannot be read. So the
    /// ensemble waits for both, unless it would wait for ever.
    fn next_wave(&self, pending: Vec<LoadRequest>) -> (Vec<LoadRequest>, Vec<LoadRequest>) {
        let names: BTreeSet<_> = pending.iter().map(|r| r.id.name.clone()).collect();
        let (wave, rest): (Vec<_>, Vec<_>) =
            pending.into_iter().partition(|request| request.steps.is_disjoint(&names));
        if !wave.is_empty() {
            return (wave, rest);
        }
        let is_free = |r: &LoadRequest| self.of(r, &rest).next().is_none();
        rest.iter().cloned().partition(is_free)
    }

    /// Returns the models in `pending` that a request needs.
    fn of<'p>(
        &self,
        request: &LoadRequest,
        pending: &'p [LoadRequest],
    ) -> impl Iterator<Item = &'p LoadRequest> {
        pending.iter().filter(move |r| {
            let preferred = request.id.sibling(r.id.name.clone());
            let is_other = r.id != preferred;
            request.steps.contains(&r.id.name)
                && !(is_other && (self.all.contains(&preferred) || (self.is_known)(&preferred)))
        })
    }

    /// Rejects the ensembles that need themselves. Returns the others.
    fn reject_cycles(&self, pending: Vec<LoadRequest>, steps: &mut Vec<Step>) -> Vec<LoadRequest> {
        let needs: BTreeMap<&ModelId, Vec<&ModelId>> = pending
            .iter()
            .map(|r| (&r.id, self.of(r, &pending).map(|n| &n.id).collect()))
            .collect();
        let cycles = cycles(&needs);
        let mut rest = Vec::new();
        for request in &pending {
            match cycles.get(&request.id) {
                Some(cycle) => steps.push(Step::Reject(request.clone(), cycle.clone())),
                None => rest.push(request.clone()),
            }
        }
        rest
    }
}
