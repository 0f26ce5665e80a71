//! Reports executions to queues that learn how long batches should wait.

use std::time::Duration;

use super::{RequestQueue, State};
use crate::{parking::Locked, sequence::SequenceRequest};

impl<T: SequenceRequest> RequestQueue<T> {
    /// Records that the instance has executed its requests. Called before it answers: a client may send its next request as
    /// soon as it has an answer, and must not be counted twice.
    pub fn about_to_answer(&self, index: usize) {
        if self.learns_delay {
            self.note_end(&mut self.parking.lock(), index);
        }
    }

    /// Records that the instance executes nothing from now on.
    pub(super) fn note_end(&self, state: &mut Locked<'_, State<T>>, index: usize) {
        if self.learns_delay {
            let now = state.now();
            if let Some(backlog) = state.waiting.requests() {
                backlog.ended(index, now);
            }
        }
    }

    /// Returns the mean wait of recent batches, if it is learned.
    pub fn learned_delay(&self) -> Option<Duration> {
        self.parking.lock().waiting.requests().and_then(|backlog| backlog.learned_delay())
    }
}
