use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::work::Submission;

/// How many requests of one step may be under way at once, over all requests to the ensemble (S-46).
///
/// What finds no place is parked, and takes over the place of whatever ends next. Nothing that is under way
/// waits for a place itself: a step gives its place back before what follows it asks for one, and no thread
/// is held up. So requests can hold each other up for a while, but never for good.
pub(super) struct Limiter {
    places: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: usize,
    parked: VecDeque<Submission>,
}

impl Limiter {
    /// `None` for 0: no limit.
    pub fn new(places: u32) -> Option<Self> {
        let places = usize::try_from(places).unwrap_or(usize::MAX);
        (places > 0).then(|| Self { places, state: Mutex::default() })
    }

    /// Takes a place, or parks the submission.
    pub fn enter(&self, submission: Submission) -> Option<Submission> {
        let mut state = self.lock();
        if state.taken < self.places {
            state.taken += 1;
            return Some(submission);
        }
        state.parked.push_back(submission);
        None
    }

    /// Gives a place back. What was parked longest takes it over, if anything was.
    pub fn leave(&self) -> Option<Submission> {
        let mut state = self.lock();
        let next = state.parked.pop_front();
        if next.is_none() {
            state.taken = state.taken.saturating_sub(1);
        }
        next
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
