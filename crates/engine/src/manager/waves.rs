//! Several models at once, each after those it needs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use galatea_types::LockExt;

use super::{
    cycle::cycles,
    dependencies::LoadRequest,
    load_failure::{Failures, LoadFailure},
    model_loader::{Loaded, ModelLoader},
};
use crate::model_id::ModelId;

/// What became of several loads.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What failed, now and before, and why.
    pub failures: Failures,
    /// Models of which something else is ready than before, or nothing.
    pub changed: BTreeSet<ModelId>,
}

/// Loads models in waves: a wave has no model that needs another one of it.
pub(super) fn load_all(
    loader: &ModelLoader,
    thread_count: usize,
    mut pending: Vec<LoadRequest>,
    failures: Failures,
) -> Outcome {
    let failures = Mutex::new(failures);
    let changed = Mutex::new(BTreeSet::new());
    let all = pending.iter().map(|r| r.id.clone()).collect();
    while !pending.is_empty() {
        let (wave, rest) = next_wave(loader, pending, &all);
        pending = rest;
        if wave.is_empty() {
            let mut failures = failures.lock_unpoisoned();
            pending = reject_cycles(loader, pending, &all, &mut failures);
        }
        load_wave(loader, thread_count, &wave, &failures, &changed);
    }
    let (failures, changed) = (failures.into_inner_unpoisoned(), changed.into_inner_unpoisoned());
    Outcome { failures, changed }
}

/// The models that can be loaded now, and the others.
///
/// A step means the model of the ensemble's namespace, and another one of that name where that cannot be read: so
/// the ensemble waits for both, but where it would wait for ever.
fn next_wave(
    loader: &ModelLoader,
    pending: Vec<LoadRequest>,
    all: &BTreeSet<ModelId>,
) -> (Vec<LoadRequest>, Vec<LoadRequest>) {
    let names: BTreeSet<_> = pending.iter().map(|r| r.id.name.clone()).collect();
    let (wave, rest): (Vec<_>, Vec<_>) =
        pending.into_iter().partition(|request| request.steps.is_disjoint(&names));
    if !wave.is_empty() {
        return (wave, rest);
    }
    let is_free = |r: &LoadRequest| needed(loader, r, &rest, all).next().is_none();
    let (wave, blocked) = rest.iter().cloned().partition(is_free);
    (wave, blocked)
}

/// Out of `pending`, the models that a request needs.
fn needed<'a>(
    loader: &ModelLoader,
    request: &LoadRequest,
    pending: &'a [LoadRequest],
    all: &BTreeSet<ModelId>,
) -> impl Iterator<Item = &'a LoadRequest> {
    pending.iter().filter(move |r| {
        let preferred = request.id.sibling(r.id.name.clone());
        let is_other = r.id != preferred;
        request.steps.contains(&r.id.name)
            && !(is_other && (all.contains(&preferred) || loader.models.is_known(&preferred)))
    })
}

/// Removes the ensembles that need themselves.
fn reject_cycles(
    loader: &ModelLoader,
    pending: Vec<LoadRequest>,
    all: &BTreeSet<ModelId>,
    failures: &mut Failures,
) -> Vec<LoadRequest> {
    let needs: BTreeMap<&ModelId, Vec<&ModelId>> = pending
        .iter()
        .map(|r| (&r.id, needed(loader, r, &pending, all).map(|n| &n.id).collect()))
        .collect();
    let cycles = cycles(&needs);
    let mut rest = Vec::new();
    for request in &pending {
        let id = &request.id;
        match cycles.get(id) {
            Some(cycle) => {
                failures.insert(id.clone(), loader.reject_cycle(request, cycle));
            }
            None => rest.push(request.clone()),
        }
    }
    rest
}

fn load_wave(
    loader: &ModelLoader,
    thread_count: usize,
    wave: &[LoadRequest],
    failures: &Mutex<Failures>,
    changed: &Mutex<BTreeSet<ModelId>>,
) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(request) = wave.get(next.fetch_add(1, Ordering::Relaxed)) {
            let loaded = loader.load(request, failures);
            // Where a load failed, what was ready before still is; but not an ensemble that does not fit its models.
            if matches!(loaded, Ok(Loaded::Anew) | Err(LoadFailure::Invalid(_))) {
                changed.lock_unpoisoned().insert(request.id.clone());
            }
            if let Err(failure) = loaded {
                let mut failures = failures.lock_unpoisoned();
                failures.insert(request.id.clone(), failure);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..thread_count.clamp(1, wave.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
}
