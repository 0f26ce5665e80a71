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
    load_failure::Failures,
    model_loader::ModelLoader,
};

/// Loads models in waves: a wave has no model that needs another one of it. Returns what failed, now and
/// before, and why.
pub(super) fn load_all(
    loader: &ModelLoader,
    thread_count: usize,
    mut pending: Vec<LoadRequest>,
    failures: Failures,
) -> Failures {
    let failures = Mutex::new(failures);
    while !pending.is_empty() {
        let waiting: BTreeSet<String> = pending.iter().map(|r| r.name.clone()).collect();
        let (wave, rest): (Vec<_>, Vec<_>) =
            pending.into_iter().partition(|r| r.needs.is_disjoint(&waiting));
        pending = rest;
        if wave.is_empty() {
            let mut failures = failures.lock_unpoisoned();
            pending = reject_cycles(loader, pending, &mut failures);
        }
        load_wave(loader, thread_count, &wave, &failures);
    }
    failures.into_inner_unpoisoned()
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
) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(request) = wave.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(failure) = loader.load(request, failures) {
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
