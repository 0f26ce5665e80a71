//! Removes expired requests from the queue in time, even while no free instance would find them. If the configuration has
//! such time-outs, one more thread waits for them.

use std::time::{Duration, Instant};

use super::{NotExecuted, RequestQueue, State};
use crate::{parking::Locked, sequence::SequenceRequest};

/// The shortest pause between two searches of the queue.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// Searches take at most 1/20 of the time, in queues of any length.
const SHARE_OF_TIME: u32 = 20;

impl<T: SequenceRequest> RequestQueue<T> {
    /// Returns true if waiting requests may expire at some time, whatever the instances do.
    pub fn has_expiry(&self) -> bool {
        self.parking.lock().waiting.requests().is_none_or(|backlog| backlog.rejects_late())
    }

    /// Waits for requests that fail because they waited too long. They count as taken until [`RequestQueue::finish`]. Returns
    /// `None` when the queue is closed and the threads of all instances have ended.
    pub fn next_expired(&self) -> Option<Vec<(T, NotExecuted)>> {
        let is_over = |state: &State<T>| state.is_closed && state.live_threads == 0;
        let mut state = self.parking.lock();
        while !is_over(&state) {
            state = state.sleep_until_look(is_over);
            let expired = state.look_for_expired();
            if !expired.is_empty() {
                state.executing += expired.len();
                return Some(expired);
            }
        }
        None
    }
}

impl<T: SequenceRequest> Locked<'_, State<T>> {
    /// Plans a search for a queued request that expires then. `are_released` is true if waiting requests were held until now.
    pub(super) fn expect_expiry(&mut self, expires_at: Option<Instant>, are_released: bool) {
        match (expires_at, are_released) {
            (Some(_), true) => {
                let now = self.now();
                self.look_by(now);
            }
            (Some(expires_at), false) => self.look_by(expires_at),
            (None, _) => {}
        }
    }

    fn look_for_expired(&mut self) -> Vec<(T, NotExecuted)> {
        let begin = self.now();
        let (expired, next) = match self.is_held() {
            true => (Vec::new(), None),
            false => self.waiting.take_expired(begin),
        };
        let end = self.now();
        self.wake_fed(usize::MAX);
        let pause = end.duration_since(begin).saturating_mul(SHARE_OF_TIME).max(MIN_PAUSE);
        self.looked(next, end.checked_add(pause).unwrap_or(end));
        expired
    }
}
