//! Adds and removes instances of a queue and records which of them work.

use std::time::Instant;

use galatea_types::Error;

use super::{NoInstances, RequestQueue};
use crate::sequence::SequenceRequest;

impl<T: SequenceRequest> RequestQueue<T> {
    /// Adds an instance, whose thread will be started. Returns its number.
    pub fn add_instance(&self) -> usize {
        let mut state = self.parking.lock();
        state.live_threads += 1;
        state.health.add()
    }

    /// Retires instances: their threads end after their requests in progress.
    pub fn retire_instances(&self, indices: &[usize]) -> Option<NoInstances<T>> {
        let mut state = self.parking.lock();
        indices.iter().for_each(|&index| state.health.retire(index));
        let reason = state.health.outage().cloned();
        let outage = reason.map(|reason| NoInstances { reason, unserved: state.take_all() });
        state.wake_all();
        outage
    }

    pub fn is_retired(&self, index: usize) -> bool {
        self.parking.lock().health.is_retired(index)
    }

    /// Waits until the thread of a retired instance has ended; returns false if it has not by `deadline`.
    pub fn wait_until_gone(&self, index: usize, deadline: Instant) -> bool {
        self.parking.wait_until(deadline, |state| state.health.is_gone(index))
    }

    /// Records that a thread of an instance has ended, or could not be started.
    pub fn thread_ended(&self, index: usize) {
        self.remove_permits(index);
        let mut state = self.parking.lock();
        state.live_threads -= 1;
        state.health.gone(index);
        self.note_end(&mut state, index);
        state.notify_observers();
        if state.live_threads == 0 {
            state.wake_timekeeper();
        }
    }

    /// See [`InstanceHealth::begin`].
    pub fn instance_begins(&self, index: usize) -> u64 {
        self.parking.lock().health.begin(index)
    }

    /// See [`InstanceHealth::started`].
    pub fn instance_started(&self, index: usize) {
        let mut state = self.parking.lock();
        state.health.started(index);
        let now = state.now();
        state.waiting.instance_works(index, now);
        state.wake_fed(index);
    }

    /// See [`InstanceHealth::break_down`]. Wakes the instance's thread, whatever it waits for.
    pub fn break_instance(&self, index: usize, generation: u64, reason: Error) -> bool {
        let mut state = self.parking.lock();
        let is_news = state.health.break_down(index, generation, reason.clone());
        if is_news {
            let now = state.now();
            state.waiting.instance_lost(index, &reason, now);
            state.wake_all();
        }
        is_news
    }

    /// Breaks the instance that the calling thread has now.
    pub fn break_current_instance(&self, index: usize, reason: Error) {
        let generation = self.parking.lock().health.generation(index);
        self.break_instance(index, generation, reason);
    }

    /// Stops requests from waiting for this instance until it works again. If no other instance is expected to work, returns
    /// the waiting requests: nothing would execute them.
    pub fn give_up_instance(&self, index: usize, reason: &Error) -> Vec<T> {
        let mut state = self.parking.lock();
        if !state.health.give_up(index, reason) {
            return Vec::new();
        }
        state.take_all()
    }

    /// Returns the number of instances and the number of working ones.
    pub fn instance_counts(&self) -> (usize, usize) {
        let state = self.parking.lock();
        (state.health.member_count(), state.health.working_count())
    }
}
