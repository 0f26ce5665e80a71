//! Who wants to know that the log settings were changed.

use std::sync::{Arc, Mutex, Weak};

use galatea_types::LockExt as _;

/// Has a copy of the log settings somewhere else, as a model in a process of its own has.
pub trait LogObserver: Send + Sync {
    /// The settings are others than before.
    fn log_changed(&self);
}

static OBSERVERS: Mutex<Vec<Weak<dyn LogObserver>>> = Mutex::new(Vec::new());

/// From now on `observer` is told of changes, for as long as it is there.
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
