//! Counts of requests to send and of requests that ended, and failures.

use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

use galatea_perf_types::failure::Failure;
use galatea_types::{CondvarExt, LockExt};

/// Progress that all workers share. Without a count of requests, each request only reads one atomic.
#[derive(Debug, Default)]
pub struct Progress {
    /// Requests that may still be sent; [`UNLIMITED`]: any number.
    left: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

const UNLIMITED: u64 = u64::MAX;

#[derive(Debug, Default)]
struct State {
    expected: Option<u64>,
    answered: u64,
    failures: Vec<(u64, RequestFailure)>,
}

/// The reason why a context cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFailure {
    pub side: FailedSide,
    pub text: String,
}

/// The half of a request that failed, in perf_analyzer's terms: with asynchronous calls the response arrives in a callback,
/// and has a message of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedSide {
    Send,
    Response,
}

/// Most failures that are kept: more would not add information.
const MAX_FAILURES: usize = 64;

impl Progress {
    /// Prepares the counts before the contexts begin.
    pub fn begin(&self, count: Option<u64>) {
        let mut state = self.state();
        state.expected = count;
        state.answered = 0;
        self.left.store(count.unwrap_or(UNLIMITED), Ordering::Release);
    }

    /// Claims one request of the count; returns true if it may be sent.
    pub fn take(&self) -> bool {
        if self.left.load(Ordering::Acquire) == UNLIMITED {
            return true;
        }
        let take = |left: u64| left.checked_sub(1);
        self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok()
    }

    /// Counts a request that has had its last response.
    pub fn answered(&self) {
        if self.left.load(Ordering::Acquire) == UNLIMITED {
            return;
        }
        let mut state = self.state();
        state.answered += 1;
        if state.is_finished() {
            self.changed.notify_all();
        }
    }

    pub fn fail(&self, thread: u64, failure: RequestFailure) {
        let mut state = self.state();
        if state.failures.len() < MAX_FAILURES {
            state.failures.push((thread, failure));
        }
        self.changed.notify_all();
    }

    /// Returns true once all requests of a count are answered.
    pub fn is_finished(&self) -> bool {
        self.state().is_finished()
    }

    /// Waits until all requests of a count are answered, or one has failed.
    pub fn wait(&self) {
        let state = self.state();
        let waiting = |state: &mut State| !state.is_finished() && state.failures.is_empty();
        drop(self.changed.wait_while_unpoisoned(state, waiting));
    }

    pub fn failure(&self) -> Option<Failure> {
        let state = self.state();
        let (_, first) = state.failures.first()?;
        let mut message = match first.side {
            FailedSide::Send => {
                "Failed to maintain requested inference load. \
                 Worker thread(s) failed to generate concurrent requests."
            }
            FailedSide::Response => "Failed to retrieve results from inference request.",
        }
        .to_owned();
        let mut failures: Vec<_> = state.failures.iter().collect();
        failures.sort_by_key(|(thread, _)| *thread);
        for (thread, failure) in failures {
            message += &format!("\nThread [{thread}] had error: {}\n", failure.text);
        }
        Some(Failure::generic(message))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock_unpoisoned()
    }
}

impl State {
    fn is_finished(&self) -> bool {
        self.expected.is_some_and(|expected| self.answered >= expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_requested_number_of_requests_may_be_sent() {
        let progress = Progress::default();
        assert!(!progress.take());
        progress.begin(Some(2));
        assert_eq!([progress.take(), progress.take(), progress.take()], [true, true, false]);
        progress.answered();
        assert!(!progress.is_finished());
        progress.answered();
        assert!(progress.is_finished());
        progress.wait();
        progress.begin(None);
        assert!(progress.take() && !progress.is_finished());
    }

    #[test]
    fn failure_messages_equal_perf_analyzers() {
        let progress = Progress::default();
        assert!(progress.failure().is_none());
        let text = "model 'boom' was told to fail";
        for thread in [1, 0] {
            progress.fail(thread, RequestFailure { side: FailedSide::Send, text: text.into() });
        }
        assert_eq!(
            progress.failure().unwrap().message,
            "Failed to maintain requested inference load. Worker thread(s) failed to generate concurrent \
             requests.\nThread [0] had error: model 'boom' was told to fail\n\
             \nThread [1] had error: model 'boom' was told to fail\n"
        );
        progress.wait();
    }
}
