//! The executors of the instances that have nothing to do.

use super::executor::Executor;
use crate::sync::{LockExt, Mutex};

/// The executors of the instances that have nothing to do, by the numbers of their instances: each is left here before the
/// thread of its instance falls asleep, and taken by that thread, or by who works in its place.
#[derive(Default)]
pub(crate) struct Executors(Mutex<Vec<Option<Box<Executor>>>>);

impl Executors {
    pub fn leave(&self, index: usize, executor: Box<Executor>) {
        let mut executors = self.0.lock_unpoisoned();
        if index >= executors.len() {
            executors.resize_with(index + 1, || None);
        }
        executors[index] = Some(executor);
    }

    pub fn take(&self, index: usize) -> Option<Box<Executor>> {
        self.0.lock_unpoisoned().get_mut(index)?.take()
    }
}
