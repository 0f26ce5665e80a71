//! The models that running loads of others need. An ensemble loads the models of its steps, which must not be unloaded before
//! it has them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use galatea_types::{Clock, LockExt};

/// The longest wait of an unload: a model that is being loaded may itself wait for the unload.
const LIMIT: Duration = Duration::from_secs(60);

/// The running loads that need other models than the requested one.
#[derive(Default)]
pub(crate) struct LoadsUnderWay {
    table: Mutex<Table>,
    changed: Condvar,
    clock: Clock,
}

#[derive(Default)]
struct Table {
    next: u64,
    /// Names of the models that each load needs.
    wanted: BTreeMap<u64, BTreeSet<Arc<str>>>,
}

/// A running load, which ends when this is dropped.
pub(crate) struct LoadUnderWay<'a> {
    loads: &'a LoadsUnderWay,
    number: u64,
}

impl LoadsUnderWay {
    /// Creates an empty table. `clock` is the clock of all waits.
    pub fn by_clock(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }

    /// Begins a load that needs these models in addition to the requested one.
    pub fn begin(&self, wanted: BTreeSet<Arc<str>>) -> LoadUnderWay<'_> {
        let mut table = self.table.lock_unpoisoned();
        let number = table.next;
        table.next += 1;
        if !wanted.is_empty() {
            table.wanted.insert(number, wanted);
        }
        LoadUnderWay { loads: self, number }
    }

    /// Waits until no load needs this model, at most a minute.
    pub fn wait_until_unwanted(&self, name: &str) {
        let deadline = self.clock.now() + LIMIT;
        let is_wanted =
            |table: &mut Table| table.wanted.values().any(|wanted| wanted.contains(name));
        let table = self.table.lock_unpoisoned();
        if self.clock.wait_while_until(&self.changed, table, deadline, is_wanted).1 {
            log::warn!(
                "model '{name}' is unloaded although another model that needs it is still being loaded, after {} s",
                LIMIT.as_secs()
            );
        }
    }
}

impl Drop for LoadUnderWay<'_> {
    fn drop(&mut self) {
        self.loads.table.lock_unpoisoned().wanted.remove(&self.number);
        self.loads.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use galatea_types::ManualClock;

    use super::*;

    #[test]
    fn an_unload_waits_for_loads_that_need_its_model() {
        let manual = ManualClock::new();
        let loads = LoadsUnderWay::by_clock(manual.clock());
        let wanted = || BTreeSet::from([Arc::from("step")]);
        let (one, two) = (loads.begin(wanted()), loads.begin(wanted()));
        loads.wait_until_unwanted("other");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| loads.wait_until_unwanted("step"));
            drop(one);
            assert!(!waiting.is_finished(), "another load wants it");
            drop(two);
            waiting.join().expect("no panic");
        });
    }

    #[test]
    fn an_unload_waits_for_one_minute_at_most() {
        let manual = ManualClock::new();
        let loads = LoadsUnderWay::by_clock(manual.clock());
        let _load = loads.begin(BTreeSet::from([Arc::from("step")]));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| loads.wait_until_unwanted("step"));
            galatea_test_support::eventually("it waits no longer", || {
                manual.advance(LIMIT);
                waiting.is_finished()
            });
        });
    }
}
