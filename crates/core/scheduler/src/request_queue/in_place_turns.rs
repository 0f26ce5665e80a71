//! Lets the thread that brings a request execute requests in place of a sleeping thread.
//!
//! Such a thread has a *turn*: it takes waiting requests until there are none, or until a request is added that must not be
//! executed in place. Then the instance's own thread continues. A thread whose turn has not begun adds more requests to it
//! without waking any thread.

use super::{Decision, RequestQueue, State, Work};
use crate::{parking::Locked, sequence::SequenceRequest};

/// The role of the thread that adds a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubmitterRole {
    /// A thread of an instance executes it.
    Leaves,
    /// This thread executes waiting requests, if a thread of an instance sleeps.
    Executes,
    /// This thread has a turn that has not begun, in which it finds this request.
    HasTurn,
}

/// The turns of threads that execute in place of instance threads.
#[derive(Default)]
pub(super) struct InPlaceTurns {
    count: usize,
    /// A request waits that must not be executed in place.
    are_to_end: bool,
}

impl<T: SequenceRequest> Locked<'_, State<T>> {
    /// Begins a turn after a request was added. Returns the instance whose thread the caller replaces, if it does.
    pub(super) fn begin_turn(&mut self, caller: SubmitterRole) -> Option<usize> {
        match caller {
            SubmitterRole::HasTurn => None,
            SubmitterRole::Leaves => {
                self.turns.are_to_end = self.turns.count > 0;
                None
            }
            SubmitterRole::Executes => {
                let turn = self.replace_sleeper()?;
                self.turns.count += 1;
                Some(turn)
            }
        }
    }
}

impl<T: SequenceRequest> RequestQueue<T> {
    /// Does [`RequestQueue::pull`] for a turn in place of the thread of instance `index`. Returns `None` if the turn is over.
    pub fn pull_in_place(&self, index: usize, done: usize) -> Option<Work<T>> {
        let mut state = self.parking.lock();
        state.finish(done);
        if state.turns.are_to_end || state.is_called_off(index) {
            return None;
        }
        let dropped = state.take_dropped();
        if !dropped.is_empty() {
            return Some(Work::Dropped(dropped));
        }
        let decision = self.decide(&mut state, index);
        let dropped = state.take_dropped();
        if !dropped.is_empty() {
            return Some(Work::Dropped(dropped));
        }
        match decision {
            Decision::Take(count) => Some(self.take_locked(&mut state, index, count)),
            Decision::Wait(_) | Decision::Empty => None,
        }
    }

    /// Ends a turn. The instance's thread continues, and is woken if there is work. `done` is the number of
    /// finished requests of the turn that were not reported.
    pub fn end_turn(&self, index: usize, done: usize) {
        let mut state = self.parking.lock();
        state.finish(done);
        state.end_replacing(index);
        state.turns.count -= 1;
        state.turns.are_to_end &= state.turns.count > 0;
        if state.is_closed || state.is_called_off(index) {
            state.wake_thread(index);
        }
        let left = state.waiting.len();
        state.wake_for_rest(left);
    }
}

#[cfg(test)]
mod tests {
    use galatea_test_support::interleavings;
    use galatea_types::Error;
    use shuttle::thread;

    use super::*;
    use crate::request_queue::tests::{ITERATIONS, Numbered, Queue, direct, never, serve};

    /// Pushes requests and executes what it is told to: how many it pushed and did not execute, or the other way round.
    fn push_and_execute(queue: &Queue, callers: &[SubmitterRole]) -> i64 {
        let (mut pushed, mut executed) = (0, 0);
        for caller in callers {
            let accepted = queue.push_by(*caller, Numbered::new());
            let Ok(accepted) = accepted else { panic!("refused") };
            pushed += 1;
            let Some(index) = accepted.turn else { continue };
            if executed % 2 == 0 {
                queue.push_by(SubmitterRole::HasTurn, Numbered::new()).expect("accepted");
                pushed += 1;
            }
            let mut done = 0;
            while let Some(work) = queue.pull_in_place(index, done) {
                let Work::Batch(requests) = work else { panic!("nothing is dropped here") };
                done = requests.len();
                executed += done;
                thread::yield_now();
            }
            queue.end_turn(index, 0);
        }
        pushed - i64::try_from(executed).expect("few")
    }

    fn check(instances: usize, disturb: fn(&Queue)) {
        let run = move || {
            let queue = direct(instances, 0);
            let serving: Vec<_> = (0..instances)
                .map(|index| {
                    let queue = queue.clone();
                    thread::spawn(move || serve(&queue, index).len())
                })
                .collect();
            let pushing: Vec<_> = [
                [SubmitterRole::Executes, SubmitterRole::Executes, SubmitterRole::Leaves],
                [SubmitterRole::Executes, SubmitterRole::Leaves, SubmitterRole::Executes],
            ]
            .into_iter()
            .map(|callers| {
                let queue = queue.clone();
                thread::spawn(move || push_and_execute(&queue, &callers))
            })
            .collect();
            let disturbed = queue.clone();
            let disturber = thread::spawn(move || disturb(&disturbed));
            let left: i64 =
                pushing.into_iter().map(|pusher| pusher.join().expect("no panic")).sum();
            disturber.join().expect("no panic");
            // All is executed, without another request that would wake anybody.
            assert!(queue.wait_until_idle(never()));
            queue.close();
            let executed: usize = serving.into_iter().map(|i| i.join().expect("no panic")).sum();
            assert_eq!(i64::try_from(executed).expect("few"), left);
        };
        interleavings::check_random(run, ITERATIONS);
        interleavings::check_pct(run, ITERATIONS, 3);
    }

    #[test]
    fn in_place_execution_leaves_no_request_queued() {
        check(1, |_| ());
    }

    #[test]
    fn in_place_execution_beside_two_instances_leaves_no_request_queued() {
        check(2, |_| ());
    }

    #[test]
    fn an_instance_that_fails_in_place_is_restarted_by_its_thread() {
        check(2, |queue| {
            queue.break_instance(0, 1, Error::internal("it broke"));
        });
    }

    #[test]
    fn an_instance_is_retired_during_in_place_execution() {
        check(2, |queue| {
            assert!(queue.retire_instances(&[0]).is_none());
            assert!(queue.wait_until_gone(0, never()));
        });
    }

    #[test]
    fn closing_waits_for_in_place_executions() {
        let run = || {
            let queue = direct(1, 0);
            let own = queue.clone();
            let instance = thread::spawn(move || serve(&own, 0).len());
            let own = queue.clone();
            let closer = thread::spawn(move || own.close());
            let mut executed = 0;
            if let Ok(accepted) = queue.push_by(SubmitterRole::Executes, Numbered::new())
                && let Some(index) = accepted.turn
            {
                thread::yield_now();
                while let Some(Work::Batch(requests)) = queue.pull_in_place(index, 0) {
                    executed += requests.len();
                    queue.finish(requests.len());
                }
                queue.end_turn(index, 0);
            }
            closer.join().expect("no panic");
            executed += instance.join().expect("no panic");
            assert!(executed <= 1 && queue.in_flight() == 0);
        };
        interleavings::check_random(run, ITERATIONS);
        interleavings::check_pct(run, ITERATIONS, 3);
    }
}
