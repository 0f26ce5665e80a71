//! Allows one load or unload of a model at a time.

use std::{
    collections::HashSet,
    sync::{Condvar, Mutex},
};

use galatea_types::{CondvarExt, LockExt};

use crate::model_id::ModelId;

/// The models that are being loaded or unloaded. Different models do not wait for each other. A model is removed after its
/// operation.
#[derive(Default)]
pub(crate) struct Operations {
    busy: Mutex<HashSet<ModelId>>,
    changed: Condvar,
}

/// An operation on one model. The next one begins when this is dropped.
pub(crate) struct Operation<'a> {
    operations: &'a Operations,
    model: &'a ModelId,
}

impl Operations {
    /// Waits until no other operation on the model runs.
    pub fn begin<'a>(&'a self, model: &'a ModelId) -> Operation<'a> {
        let busy = self.busy.lock_unpoisoned();
        let mut busy = self.changed.wait_while_unpoisoned(busy, |busy| busy.contains(model));
        busy.insert(model.clone());
        Operation { operations: self, model }
    }
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        self.operations.busy.lock_unpoisoned().remove(self.model);
        self.operations.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn operations_on_one_model_run_one_at_a_time_and_leave_no_entry() {
        let operations = Operations::default();
        let (m, n) = (ModelId::from("m"), ModelId::from("n"));
        let first = operations.begin(&m);
        drop(operations.begin(&n));
        thread::scope(|scope| {
            let second = scope.spawn(|| drop(operations.begin(&m)));
            assert!(!second.is_finished());
            drop(first);
        });
        assert!(operations.busy.lock_unpoisoned().is_empty());
    }
}
