//! Observers of changes to the log settings.

use std::sync::{Arc, Mutex, Weak};

use galatea_types::LockExt as _;

/// Keeps a copy of the log settings elsewhere, for example in the process of a model.
pub trait LogObserver: Send + Sync {
    /// Called when the settings have changed.
    fn log_changed(&self);
}

static OBSERVERS: Mutex<Vec<Weak<dyn LogObserver>>> = Mutex::new(Vec::new());

/// Registers `observer` for changes, as long as it lives.
pub fn observe(observer: Weak<dyn LogObserver>) {
    let mut observers = OBSERVERS.lock_unpoisoned();
    observers.retain(|observer| observer.strong_count() > 0);
    observers.push(observer);
}

pub(super) fn tell() {
    let there = |observer: &Weak<dyn LogObserver>| observer.upgrade();
    let observers: Vec<Arc<dyn LogObserver>> =
        OBSERVERS.lock_unpoisoned().iter().filter_map(there).collect();
    observers.iter().for_each(|observer| observer.log_changed());
}
