//! Enforces `max_inflight_requests` of an ensemble.

use std::{collections::VecDeque, sync::Mutex};

use galatea_types::LockExt as _;

/// Limits how many requests of one step are in flight at once, over all requests to the ensemble.
///
/// A request over the limit waits and takes the place of the next one that ends. A request in flight never waits for a
/// place itself: a step gives its place back before the steps behind it need one, and no thread is blocked. So requests
/// can delay each other, but cannot deadlock.
pub(super) struct Limiter<T> {
    limit: usize,
    state: Mutex<State<T>>,
}

struct State<T> {
    in_flight: usize,
    waiting: VecDeque<T>,
}

impl<T> Limiter<T> {
    /// Creates a limiter; `None` for 0, which means no limit.
    pub fn new(limit: u32) -> Option<Self> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let state = State { in_flight: 0, waiting: VecDeque::new() };
        (limit > 0).then(|| Self { limit, state: Mutex::new(state) })
    }

    /// Returns the submission if it may be sent now, else keeps it waiting.
    pub fn enter(&self, submission: T) -> Option<T> {
        let mut state = self.state.lock_unpoisoned();
        if state.in_flight < self.limit {
            state.in_flight += 1;
            return Some(submission);
        }
        state.waiting.push_back(submission);
        None
    }

    /// Ends a request. Returns the submission that has waited longest, which takes its place.
    pub fn leave(&self) -> Option<T> {
        let mut state = self.state.lock_unpoisoned();
        let next = state.waiting.pop_front();
        if next.is_none() {
            state.in_flight = state.in_flight.saturating_sub(1);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_entry_passes_its_place_to_a_waiting_one() {
        assert!(Limiter::<u32>::new(0).is_none(), "no limit");
        let limiter = Limiter::new(2).expect("a limit");
        assert_eq!([1, 2, 3, 4].map(|n| limiter.enter(n)), [Some(1), Some(2), None, None]);
        assert_eq!(limiter.leave(), Some(3));
        assert_eq!(limiter.leave(), Some(4));
        assert_eq!([limiter.leave(), limiter.leave()], [None, None]);
        assert_eq!(limiter.enter(5), Some(5));
    }
}
