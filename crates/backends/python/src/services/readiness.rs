//! Asks a model's worker for the model's own readiness check.

use std::{
    sync::{Condvar, Mutex},
    time::Instant,
};

use galatea_types::{CondvarExt as _, LockExt as _};
use galatea_worker::{
    Channels,
    wire::{OutgoingMessage, kind},
};

/// The checks of one worker, one at a time. A caller that asks while a check runs waits for its result, even if the first
/// caller has left. So a check that takes longer than callers wait is not started again and again, and its result is used in
/// the end.
#[derive(Default)]
pub(crate) struct ReadinessQueries {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Id of the last check that was started.
    asked: u64,
    /// Id of the last check that has a result.
    answered: u64,
    is_ready: bool,
    is_closed: bool,
}

impl ReadinessQueries {
    /// Asks the worker for the model's `is_ready`, unless a check is running already. The result comes later, or never. Pass
    /// the returned id to [`Self::result`].
    pub fn ask(&self, channels: &Channels) -> Option<u64> {
        self.begin(|id| {
            channels.send_event(&OutgoingMessage::new(kind::READINESS_QUERY, id)).is_ok()
        })
    }

    /// Returns the id of the running check, or starts one by `send`.
    fn begin(&self, send: impl FnOnce(u64) -> bool) -> Option<u64> {
        let mut state = self.state.lock_unpoisoned();
        if state.is_closed {
            return None;
        }
        if state.asked == state.answered {
            let id = state.asked + 1;
            if !send(id) {
                return None;
            }
            state.asked = id;
        }
        Some(state.asked)
    }

    /// Records the worker's answer to a query. Its callers may have stopped waiting.
    pub fn answer(&self, id: u64, is_ready: bool) {
        let mut state = self.state.lock_unpoisoned();
        if id == state.asked {
            state.answered = id;
            state.is_ready = is_ready;
            self.changed.notify_all();
        }
    }

    /// Ends open queries at once, and refuses new ones, because the worker is gone.
    pub fn close(&self) {
        self.state.lock_unpoisoned().is_closed = true;
        self.changed.notify_all();
    }

    /// Waits for the result. Returns false if there is none by `deadline`.
    pub fn result(&self, id: u64, deadline: Instant) -> bool {
        let mut state = self.state.lock_unpoisoned();
        loop {
            if state.answered >= id {
                return state.is_ready;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.is_closed || left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout_unpoisoned(state, left).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn a_second_query_joins_a_running_readiness_check() {
        let queries = ReadinessQueries::default();
        let begun = |id| id < 10;
        let first = queries.begin(begun).expect("open");
        assert!(!queries.result(first, Instant::now()), "it takes too long");
        let second = queries.begin(|_| panic!("one is enough")).expect("open");
        assert_eq!(second, first);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| queries.result(second, soon()));
            queries.answer(first, true);
            assert!(waiting.join().expect("no panic"));
        });
        // What was found out is not known for ever.
        let third = queries.begin(begun).expect("open");
        assert_ne!(third, first);
        queries.answer(first, true);
        assert!(!queries.result(third, Instant::now()), "an answer of before");
        queries.answer(third, false);
        assert!(!queries.result(third, soon()));
    }

    #[test]
    fn the_end_of_the_worker_ends_all_queries() {
        let queries = ReadinessQueries::default();
        let id = queries.begin(|_| true).expect("open");
        thread::scope(|scope| {
            let waiting = scope.spawn(|| queries.result(id, soon()));
            queries.close();
            assert!(!waiting.join().expect("no panic"));
        });
        assert!(queries.begin(|_| true).is_none());
        assert!(ReadinessQueries::default().begin(|_| false).is_none(), "it could not be asked");
    }
}
