//! Hands requests over to busy instances before their turn.

use super::{Next, RequestQueue, State, prefetched_requests::PrefetchedRequest};
use crate::{parking::Locked, queue::Decision, sequence::SequenceRequest};

impl<T: SequenceRequest> RequestQueue<T> {
    /// Returns at most `room` requests to hand over to instance `index`, which executes one. `done` is that of
    /// [`RequestQueue::pull`].
    pub fn next_ahead(&self, index: usize, done: usize, room: usize) -> Vec<T> {
        let mut state = self.parking.lock();
        state.finish(done);
        self.ahead(&mut state, index, room)
    }

    /// Does the same after the instance has executed a request, and returns the handed-over request that it has
    /// begun, if any. `room` is the number of requests that may still wait in it; `None` means that it executes
    /// none of them. Then those it has not begun are queued again.
    pub fn next(&self, index: usize, done: usize, room: Option<usize>) -> Next<T> {
        let mut state = self.parking.lock();
        state.finish(done);
        let room = room.filter(|_| !state.is_called_off(index));
        let complete = state.complete;
        if let Some(room) = room {
            let begun = state.handed_over.begin(index, complete);
            let room = if begun.is_some() { room } else { 0 };
            return Next { begun, ahead: self.ahead(&mut state, index, room) };
        }
        let taken = state.handed_over.take_all_back_from(index);
        let begun = state.handed_over.begin(index, complete);
        state.queue_again(taken);
        Next { begun, ahead: Vec::new() }
    }

    /// Adds a request that now waits in instance `index`.
    pub fn handed_over(&self, index: usize, handed_over: PrefetchedRequest<T>) {
        let mut state = self.parking.lock();
        let complete = state.complete;
        if let Some(request) = state.handed_over.add(index, handed_over, complete) {
            return state.queue_again(vec![request]);
        }
        // An instance that has become free meanwhile takes the request.
        state.wake_one();
    }

    /// Returns requests to hand over to instance `index`, at most its share of all waiting ones. Returns none while another
    /// instance is free, which includes one that waits for the end of a closed queue.
    fn ahead(&self, state: &mut Locked<'_, State<T>>, index: usize, room: usize) -> Vec<T> {
        if room == 0 || state.has_idle_threads() || state.is_closed || state.is_called_off(index) {
            return Vec::new();
        }
        let (waiting, own) = state.handed_over.count(index);
        let working = state.health.working_count().max(1);
        let share = (state.waiting.len() + waiting).div_ceil(working).max(1);
        let next = |_| self.one_ahead(state);
        (0..room.min(share.saturating_sub(own))).map_while(next).collect()
    }

    fn one_ahead(&self, state: &mut Locked<'_, State<T>>) -> Option<T> {
        if let Some(request) = state.take_overtaken_back() {
            return Some(request);
        }
        // An abandoned request is left to the threads that pull.
        if !state.waiting.requests().is_some_and(|backlog| backlog.is_front_wanted()) {
            return None;
        }
        let Decision::Take(_) = self.decide(state, 0) else { return None };
        let next = state.waiting.requests()?.take(1).pop()?;
        state.executing += 1;
        Some(next)
    }
}
