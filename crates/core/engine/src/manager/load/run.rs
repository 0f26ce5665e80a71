//! Carries out a plan: several models, each after those it needs.

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
    load_failure::{Failures, LoadFailure},
    model_loader::{Loaded, ModelLoader},
};
use crate::{
    manager::plan::{LoadRequest, Step},
    model_id::ModelId,
};

/// What became of several loads.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What failed, now and before, and why.
    pub failures: Failures,
    /// Models of which something else is ready than before, or nothing.
    pub changed: BTreeSet<ModelId>,
}

/// Carries out the steps of a plan, one after the other. `failures`: of earlier ones.
pub(crate) fn run(
    loader: &ModelLoader,
    thread_count: usize,
    steps: Vec<Step>,
    failures: Failures,
) -> Outcome {
    let failures = Mutex::new(failures);
    let changed = Mutex::new(BTreeSet::new());
    for step in steps {
        match step {
            Step::Load(wave) => load_wave(loader, thread_count, &wave, &failures, &changed),
            Step::Reject(request, cycle) => {
                let failure = loader.reject_cycle(&request, &cycle);
                failures.lock_unpoisoned().insert(request.id, failure);
            }
        }
    }
    let (failures, changed) = (failures.into_inner_unpoisoned(), changed.into_inner_unpoisoned());
    Outcome { failures, changed }
}

/// Loads models at the same time.
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
