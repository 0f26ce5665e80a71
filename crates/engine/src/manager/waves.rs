//! Several models at once, each after those it needs.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use galatea_types::LockExt;

use super::{
    dependencies::{LoadRequest, cycle},
    dependency_error::DependencyError,
    load_failure::{Failures, LoadFailure},
    model_loader::{Loaded, ModelLoader},
};

/// What became of several loads.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What failed, now and before, and why.
    pub failures: Failures,
    /// Models of which something else is ready than before, or nothing.
    pub changed: BTreeSet<String>,
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
    while !pending.is_empty() {
        let waiting: BTreeSet<String> = pending.iter().map(|r| r.name.clone()).collect();
        let (wave, rest): (Vec<_>, Vec<_>) =
            pending.into_iter().partition(|r| r.needs.is_disjoint(&waiting));
        pending = rest;
        if wave.is_empty() {
            let mut failures = failures.lock_unpoisoned();
            pending = reject_cycles(loader, pending, &mut failures);
        }
        load_wave(loader, thread_count, &wave, &failures, &changed);
    }
    let (failures, changed) = (failures.into_inner_unpoisoned(), changed.into_inner_unpoisoned());
    Outcome { failures, changed }
}

/// Removes the ensembles that need themselves.
fn reject_cycles(
    loader: &ModelLoader,
    pending: Vec<LoadRequest>,
    failures: &mut Failures,
) -> Vec<LoadRequest> {
    let mut rest = Vec::new();
    for request in &pending {
        let name = &request.name;
        let Some(last) = cycle(name, &pending) else {
            rest.push(request.clone());
            continue;
        };
        let error = DependencyError::Cycle { ensemble: name.clone(), last: last.to_owned() };
        failures.insert(name.clone(), loader.reject_ensemble(name, error.into()));
    }
    rest
}

fn load_wave(
    loader: &ModelLoader,
    thread_count: usize,
    wave: &[LoadRequest],
    failures: &Mutex<Failures>,
    changed: &Mutex<BTreeSet<String>>,
) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(request) = wave.get(next.fetch_add(1, Ordering::Relaxed)) {
            let loaded = loader.load(request, failures);
            // Where a load failed, what was ready before still is; but not an ensemble that does not fit its models.
            if matches!(loaded, Ok(Loaded::Anew) | Err(LoadFailure::Invalid(_))) {
                changed.lock_unpoisoned().insert(request.name.clone());
            }
            if let Err(failure) = loaded {
                let mut failures = failures.lock_unpoisoned();
                failures.insert(request.name.clone(), failure);
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
