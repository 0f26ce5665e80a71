//! Requests that wait in instances, lost or executed twice: looked for by a model checker.

mod simulation;

use std::{collections::VecDeque, sync::atomic::Ordering};

use galatea_test_support::interleavings;
use galatea_types::Error;
use shuttle::{
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};

use super::*;
use crate::request_queue::{
    Next, Work,
    tests::{ITERATIONS, Numbered, Queue, direct, never, push, serve},
};

/// An instance's worker: a thread that executes what it reads, in its order.
struct Worker {
    state: Mutex<WorkerState>,
    changed: Condvar,
}

#[derive(Default)]
struct WorkerState {
    /// Numbers of batches.
    unread: VecDeque<usize>,
    replies: VecDeque<usize>,
    has_ended: bool,
}

impl Worker {
    fn start() -> Arc<Self> {
        let worker = Arc::new(Self { state: Mutex::default(), changed: Condvar::new() });
        let reader = worker.clone();
        thread::spawn(move || while reader.execute_next() {});
        worker
    }

    fn state(&self) -> MutexGuard<'_, WorkerState> {
        self.state.lock().expect("no panic")
    }

    fn wait_while(
        &self,
        is_waiting: impl Fn(&mut WorkerState) -> bool,
    ) -> MutexGuard<'_, WorkerState> {
        self.changed.wait_while(self.state(), is_waiting).expect("no panic")
    }

    fn execute_next(&self) -> bool {
        let mut state = self.wait_while(|s| s.unread.is_empty() && !s.has_ended);
        if state.has_ended {
            return false;
        }
        let number = state.unread.pop_front().expect("one is unread");
        drop(state);
        thread::yield_now();
        self.state().replies.push_back(number);
        self.changed.notify_all();
        true
    }

    fn send(&self, number: usize) {
        self.state().unread.push_back(number);
        self.changed.notify_all();
    }

    /// Without a reply when it has ended.
    fn complete(&self, number: usize) {
        let mut state = self.wait_while(|s| s.replies.is_empty() && !s.has_ended);
        if let Some(reply) = state.replies.pop_front() {
            assert_eq!(reply, number, "in the order of the batches");
        }
    }

    fn end(&self) {
        self.state().has_ended = true;
        self.changed.notify_all();
    }
}

impl WaitingBatches for Worker {
    fn take_first_back(&self, from: usize) -> ReturnedRequests {
        loop {
            let (first, has_ended) = {
                let state = self.state();
                (state.unread.front().copied(), state.has_ended)
            };
            match first {
                None => return ReturnedRequests::Nothing,
                Some(number) if number < from && !has_ended => return ReturnedRequests::NotYet,
                Some(_) => {}
            }
            // The worker may read that one now.
            match self.state().unread.pop_front() {
                Some(number) if number >= from => return ReturnedRequests::Batch(number),
                Some(_) => {}
                None => return ReturnedRequests::Nothing,
            }
        }
    }
}

/// An instance whose requests are handed over while it executes one; breaks with its first one if asked to.
pub(in crate::request_queue) fn serve_pipelined(
    queue: &Queue,
    index: usize,
    mut breaks: bool,
) -> Vec<u64> {
    let begins = || {
        queue.instance_begins(index);
        queue.instance_started(index);
        Worker::start()
    };
    let (mut worker, mut executed, mut sent) = (begins(), Vec::new(), 0);
    loop {
        let mut current = match queue.pull(index, 0, || ()) {
            Work::Batch(mut requests) => requests.pop().map(|request| (0, request)),
            Work::Steps(_) => panic!("there are no sequences"),
            Work::Dropped(dropped) => panic!("nothing expires here: {dropped:?}"),
            Work::Restart(_) => {
                worker = begins();
                continue;
            }
            Work::End | Work::Retire => {
                worker.end();
                queue.thread_ended(index);
                return executed;
            }
        };
        worker.send(0);
        let mut ahead = queue.next_ahead(index, 0, DEPTH);
        while let Some((number, request)) = current {
            for request in ahead {
                sent += 1;
                worker.send(sent);
                let waiting = worker.clone();
                queue.handed_over(index, PrefetchedRequest { request, number: sent, waiting });
            }
            if std::mem::take(&mut breaks) {
                worker.end();
                queue.break_current_instance(index, Error::internal("it broke"));
            }
            worker.complete(number);
            executed.push(request.arrival);
            let next = queue.next(index, 1, Some(DEPTH));
            (current, ahead) = (next.begun, next.ahead);
        }
    }
}

/// Requests that may wait in an instance.
const DEPTH: usize = 2;

fn check_pipelined(instances: usize, breaks: bool) {
    const REQUESTS: u64 = 3;
    let run = move || {
        let queue = direct(instances, 0);
        let spawn = |index: usize| {
            let queue = queue.clone();
            thread::spawn(move || serve_pipelined(&queue, index, breaks && index == 0))
        };
        let instances: Vec<_> = (0..instances).map(spawn).collect();
        let others = [(); 2].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || push(&queue, REQUESTS))
        });
        others.into_iter().for_each(|thread| drop(thread.join().expect("no panic")));
        assert!(queue.wait_until_idle(never()));
        queue.close();
        let executed = instances.into_iter().flat_map(|i| i.join().expect("no panic"));
        let mut executed: Vec<u64> = executed.collect();
        executed.sort_unstable();
        assert_eq!(executed, (0..2 * REQUESTS).collect::<Vec<_>>());
    };
    interleavings::check_random(run, ITERATIONS);
    interleavings::check_pct(run, ITERATIONS, 3);
}

#[test]
fn every_prefetched_request_is_executed_once() {
    check_pipelined(1, false);
    check_pipelined(2, false);
    check_pipelined(3, false);
}

#[test]
fn requests_prefetched_by_a_failed_instance_are_executed_once() {
    check_pipelined(1, true);
    check_pipelined(2, true);
}

/// An instance that executes for ever keeps nothing that waits in it: whoever is free takes it, in its order, as soon as the
/// worker has read what it executes.
#[test]
fn no_request_stays_prefetched_while_another_instance_is_free() {
    let run = || {
        let queue = direct(2, 0);
        queue.instance_started(0);
        push(&queue, 1);
        let Work::Batch(_) = queue.pull(0, 0, || ()) else { panic!("a request waits") };
        let other = {
            let queue = queue.clone();
            thread::spawn(move || serve(&queue, 1))
        };
        let worker = idle_worker();
        worker.send(0);
        let reader = {
            let worker = worker.clone();
            thread::spawn(move || assert_eq!(worker.state().unread.pop_front(), Some(0)))
        };
        let long = {
            let queue = queue.clone();
            thread::spawn(move || {
                for (number, request) in queue.next_ahead(0, 0, DEPTH).into_iter().enumerate() {
                    worker.send(number + 1);
                    let waiting = worker.clone();
                    queue
                        .handed_over(0, PrefetchedRequest { request, number: number + 1, waiting });
                }
            })
        };
        push(&queue, 4);
        [long, reader].into_iter().for_each(|thread| thread.join().expect("no panic"));
        // The checker finds it when this has no end.
        while queue.in_flight() > 1 {
            thread::yield_now();
        }
        queue.finish(1);
        queue.close();
        let mut executed = other.join().expect("no panic");
        executed.sort_unstable();
        assert_eq!(executed, [1, 2, 3, 4]);
    };
    interleavings::check_random(run, ITERATIONS);
    interleavings::check_pct(run, ITERATIONS, 3);
}

fn arrivals(requests: &[Numbered]) -> Vec<u64> {
    requests.iter().map(|request| request.arrival).collect()
}

/// A worker that reads nothing by itself.
fn idle_worker() -> Arc<Worker> {
    Arc::new(Worker { state: Mutex::default(), changed: Condvar::new() })
}

/// Hands these over to instance 0, numbered from `first`.
fn hand_over(queue: &Queue, worker: &Arc<Worker>, requests: Vec<Numbered>, first: usize) {
    for (number, request) in (first..).zip(requests) {
        worker.send(number);
        queue.handed_over(0, PrefetchedRequest { request, number, waiting: worker.clone() });
    }
}

/// The search for abandoned requests takes them out of an instance; the others return to the front.
#[test]
fn abandoned_requests_are_taken_out_of_an_instance() {
    let run = || {
        let (queue, worker) = (direct(1, 0), idle_worker());
        queue.instance_started(0);
        push(&queue, 2);
        let abandoned = Numbered::new();
        let is_abandoned = abandoned.is_abandoned.clone();
        queue.push(abandoned).expect("accepted");
        push(&queue, 2);
        let Work::Batch(first) = queue.pull(0, 0, || ()) else { panic!("a request waits") };
        assert_eq!(arrivals(&first), [0]);
        let ahead = queue.next_ahead(0, 0, 3);
        assert_eq!(arrivals(&ahead), [1, 2, 3]);
        hand_over(&queue, &worker, ahead, 1);
        assert!(queue.take_abandoned().is_empty());
        is_abandoned.store(true, Ordering::Relaxed);
        let taken: Vec<_> =
            queue.take_abandoned().into_iter().map(|(request, _)| request).collect();
        assert_eq!(arrivals(&taken), [2]);
        assert!(worker.state().unread.is_empty());
        queue.finish(1);
        assert_eq!(queue.in_flight(), 4);
        assert!(queue.next(0, 1, Some(3)).begun.is_none());
        let Work::Batch(next) = queue.pull(0, 0, || ()) else { panic!("a request waits") };
        assert_eq!(arrivals(&next), [1]);
        assert_eq!(arrivals(&queue.next_ahead(0, 0, 3)), [3, 4]);
    };
    interleavings::check_random(run, 1);
}

/// The request is taken back before its thread records that it waits.
#[test]
fn a_prefetched_request_may_be_taken_back_before_its_receipt_is_known() {
    let run = || {
        let (queue, worker) = (direct(2, 0), idle_worker());
        [0, 1].into_iter().for_each(|index| queue.instance_started(index));
        push(&queue, 4);
        let Work::Batch(_) = queue.pull(0, 0, || ()) else { panic!("a request waits") };
        let mut ahead = queue.next_ahead(0, 0, 3);
        assert_eq!(arrivals(&ahead), [1, 2], "its share");
        let late = ahead.pop().expect("two");
        hand_over(&queue, &worker, ahead, 1);
        // The first is read, the second sent and not added, when the other instance becomes free.
        worker.send(2);
        worker.state().unread.pop_front();
        let Work::Batch(other) = queue.pull(1, 0, || ()) else { panic!("a request waits") };
        assert_eq!(arrivals(&other), [3]);
        let other = {
            let queue = queue.clone();
            thread::spawn(move || match queue.pull(1, 1, || ()) {
                Work::Batch(requests) => arrivals(&requests),
                _ => panic!("a request waits"),
            })
        };
        thread::yield_now();
        queue.handed_over(
            0,
            PrefetchedRequest { request: late, number: 2, waiting: worker.clone() },
        );
        assert_eq!(other.join().expect("no panic"), [2]);
        assert!(worker.state().unread.is_empty());
        let Next { begun, .. } = queue.next(0, 1, Some(3));
        assert_eq!(begun.map(|(number, request)| (number, request.arrival)), Some((1, 1)));
        assert!(queue.next(0, 1, Some(3)).begun.is_none());
    };
    interleavings::check_random(run, ITERATIONS);
}

/// The stalled instance keeps the requests it began; the others are queued again in order.
#[test]
fn requests_prefetched_by_a_stalled_instance_are_queued_again() {
    let run = || {
        let (queue, worker) = (direct(1, 0), idle_worker());
        queue.instance_started(0);
        push(&queue, 5);
        let Work::Batch(_) = queue.pull(0, 0, || ()) else { panic!("a request waits") };
        let ahead = queue.next_ahead(0, 0, 3);
        hand_over(&queue, &worker, ahead, 1);
        worker.state().unread.pop_front();
        let Next { begun, ahead } = queue.next(0, 1, None);
        assert_eq!(begun.map(|(_, request)| request.arrival), Some(1), "it has begun with that");
        assert!(ahead.is_empty() && worker.state().unread.is_empty());
        assert!(queue.next(0, 1, None).begun.is_none());
        for expected in 2..5 {
            let Work::Batch(next) = queue.pull(0, 0, || ()) else { panic!("a request waits") };
            assert_eq!(arrivals(&next), [expected]);
            queue.finish(1);
        }
        assert_eq!(queue.in_flight(), 0);
    };
    interleavings::check_random(run, 1);
}
