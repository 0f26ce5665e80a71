//! What is told to those queues that learn how long batches are to wait.

use std::time::Duration;

use super::{RequestQueue, State};
use crate::{parking::Locked, sequence::SequenceRequest};

impl<T: SequenceRequest> RequestQueue<T> {
    /// The instance has executed what it had. Told before it answers: whoever has an answer may be back with the next
    /// request at once, and is not to be taken for one more.
    pub fn about_to_answer(&self, index: usize) {
        if self.learns_delay {
            self.note_end(&mut self.parking.lock(), index);
        }
    }

    /// The instance executes nothing from now on.
    pub(super) fn note_end(&self, state: &mut Locked<'_, State<T>>, index: usize) {
        if self.learns_delay {
            let now = state.now();
            if let Some(backlog) = state.waiting.requests() {
                backlog.ended(index, now);
            }
        }
    }

    /// How long batches waited lately for more requests, where that is learned.
    pub fn learned_delay(&self) -> Option<Duration> {
        self.parking.lock().waiting.requests().and_then(|backlog| backlog.learned_delay())
    }
}
