//! The workers of one model.

use std::sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicBool, Ordering},
};

use galatea_types::LockExt as _;

use crate::connection::{Connection, Services};

/// The workers of all instances of one model.
pub struct WorkerList<S> {
    workers: Mutex<Vec<Weak<Connection<S>>>>,
    is_leaving: AtomicBool,
}

impl<S> Default for WorkerList<S> {
    fn default() -> Self {
        Self { workers: Mutex::default(), is_leaving: AtomicBool::new(false) }
    }
}

impl<S: Services> WorkerList<S> {
    /// Adds a worker that was started.
    pub fn add(&self, connection: &Arc<Connection<S>>) {
        let mut workers = self.workers.lock_unpoisoned();
        workers.retain(|worker| worker.strong_count() > 0);
        workers.push(Arc::downgrade(connection));
        drop(workers);
        if self.is_leaving.load(Ordering::SeqCst) {
            connection.prepare_to_leave();
        }
    }

    /// Returns the workers that have not ended.
    pub fn living(&self) -> Vec<Arc<Connection<S>>> {
        let workers = self.workers.lock_unpoisoned();
        let connections = workers.iter().filter_map(Weak::upgrade);
        connections.filter(|connection| !connection.lifecycle.is_dead()).collect()
    }

    /// Marks the model as being unloaded: see [`Connection::prepare_to_leave`].
    pub fn prepare_to_leave(&self) {
        self.is_leaving.store(true, Ordering::SeqCst);
        self.living().iter().for_each(|worker| worker.prepare_to_leave());
    }
}
