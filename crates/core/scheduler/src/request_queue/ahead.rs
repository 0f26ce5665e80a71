//! Handing requests over to instances that are busy, ahead of their turn.

use super::{Next, RequestQueue, State, handed_over::PrefetchedRequest};
use crate::{parking::Locked, queue::Decision, sequence::SequenceRequest};

impl<T: SequenceRequest> RequestQueue<T> {
    /// Requests to be handed over to instance `index`, which executes one: `room` of them at most. `done`: as for
    /// [`RequestQueue::pull`].
    pub fn next_ahead(&self, index: usize, done: usize, room: usize) -> Vec<T> {
        let mut state = self.parking.lock();
        state.finish(done);
        self.ahead(&mut state, index, room)
    }

    /// The same when it has executed a request while others were handed over to it: with the first of those it has begun,
    /// if they were not taken back. `room`: how many more may wait in it; `None`: it executes none of them. What it has not
    /// begun with is queued again then.
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

    /// The request waits in instance `index` from now on.
    pub fn handed_over(&self, index: usize, handed_over: PrefetchedRequest<T>) {
        let mut state = self.parking.lock();
        let complete = state.complete;
        if let Some(request) = state.handed_over.add(index, handed_over, complete) {
            return state.queue_again(vec![request]);
        }
        // An instance that became free meanwhile takes it.
        state.wake_one();
    }

    /// Requests to be handed over to instance `index`: none while another instance is free, which it also is when it
    /// waits for the end of a closed queue, and no more than its share of all that wait.
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
        // The rest is for those who pull.
        if !state.waiting.requests().is_some_and(|backlog| backlog.is_front_wanted()) {
            return None;
        }
        let Decision::Take(_) = self.decide(state, 0) else { return None };
        let next = state.waiting.requests()?.take(1).pop()?;
        state.executing += 1;
        Some(next)
    }
}
