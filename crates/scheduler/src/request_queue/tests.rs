//! Requests lost between queue and instance threads, looked for by a model checker.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use galatea_backend::{TakenBack, WaitingBatches, testing::model_config};
use shuttle::{
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};

use super::*;
use crate::queue::{JoinRules, Placement};

const ITERATIONS: usize = 1000;

/// A request that is nothing but its place in the order of arrival.
#[derive(Debug)]
struct Numbered {
    arrival: u64,
    queued_at: Instant,
    is_abandoned: Arc<AtomicBool>,
}

impl Numbered {
    fn new() -> Self {
        Self { arrival: u64::MAX, queued_at: Instant::now(), is_abandoned: Arc::default() }
    }
}

impl Queued for Numbered {
    fn item_count(&self) -> u64 {
        1
    }

    fn queued_at(&self) -> Instant {
        self.queued_at
    }

    fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
    }

    fn placement(&self) -> Placement {
        Placement::default()
    }

    fn set_arrival(&mut self, arrival: u64) {
        self.arrival = arrival;
    }

    fn can_join(&self, _: &Self, _: &JoinRules) -> bool {
        true
    }
}

/// A deadline that never comes for the model checker.
fn never() -> Instant {
    Instant::now() + Duration::from_secs(86400)
}

type Queue = Arc<RequestQueue<Numbered>>;
type OnQueue = Box<dyn FnOnce(&Queue) -> Vec<u64> + Send>;

fn direct(instances: usize, hold_until_queued: usize) -> Queue {
    let config = model_config("name: 'm' backend: 'm'");
    Arc::new(RequestQueue::new(&config, instances, hold_until_queued))
}

/// Batches of 2 and, when nobody comes, after two hours.
fn pairs(instances: usize) -> Queue {
    let config = model_config(
        "name: 'm' backend: 'm' max_batch_size: 2
         dynamic_batching { max_queue_delay_microseconds: 7200000000 }",
    );
    Arc::new(RequestQueue::new(&config, instances, 0))
}

/// Pulls until the queue ends; the arrivals of what was executed.
fn serve(queue: &Queue, index: usize) -> Vec<u64> {
    queue.instance_begins(index);
    queue.instance_started(index);
    let (mut executed, mut done) = (Vec::new(), 0);
    loop {
        match queue.pull(index, done) {
            Work::Batch(requests) => {
                done = requests.len();
                executed.extend(requests.iter().map(|request| request.arrival));
            }
            Work::Dropped(dropped) => panic!("nothing expires here: {dropped:?}"),
            Work::Restart(_) => {
                done = 0;
                // Restarting takes so long that others execute what waits.
                assert!(queue.wait_until_idle(never()));
                queue.instance_begins(index);
                queue.instance_started(index);
            }
            Work::End | Work::Retire => {
                queue.thread_ended(index);
                return executed;
            }
        }
    }
}

/// Runs threads of `instances` instances beside `disturb`, and two threads that push `count` requests each, all of
/// which must be executed before the queue is closed.
fn check(new_queue: fn() -> Queue, instances: usize, count: u64, disturb: fn(&Queue)) {
    let run = move || {
        let queue = new_queue();
        let spawn = |f: OnQueue| {
            let queue = queue.clone();
            thread::spawn(move || f(&queue))
        };
        let instances: Vec<_> =
            (0..instances).map(|index| spawn(Box::new(move |q| serve(q, index)))).collect();
        let others = [
            spawn(Box::new(move |queue| push(queue, count))),
            spawn(Box::new(move |queue| push(queue, count))),
            spawn(Box::new(move |queue| {
                disturb(queue);
                Vec::new()
            })),
        ];
        others.into_iter().for_each(|thread| drop(thread.join().expect("no panic")));
        assert!(queue.wait_until_idle(never()));
        queue.close();
        assert!(matches!(queue.push(Numbered::new()), Err((_, Refusal::Closed))));
        let executed = instances.into_iter().flat_map(|i| i.join().expect("no panic"));
        let mut executed: Vec<u64> = executed.collect();
        executed.sort_unstable();
        assert_eq!(executed, (0..2 * count).collect::<Vec<_>>());
        assert!(queue.wait_for_end(Instant::now()));
    };
    shuttle::check_random(run, ITERATIONS);
    shuttle::check_pct(run, ITERATIONS, 3);
}

fn push(queue: &Queue, count: u64) -> Vec<u64> {
    (0..count).for_each(|_| queue.push(Numbered::new()).expect("accepted"));
    Vec::new()
}

fn nothing(_: &Queue) {}

/// The instance that has most likely been woken for a request breaks.
fn break_first(queue: &Queue) {
    queue.break_instance(0, 1, Error::internal("it broke"));
}

#[test]
fn every_request_is_executed() {
    check(|| direct(2, 0), 2, 2, nothing);
}

#[test]
fn requests_that_were_held_are_executed() {
    check(|| direct(2, 4), 2, 2, nothing);
}

#[test]
fn a_batch_that_has_grown_is_executed() {
    check(|| pairs(2), 2, 2, nothing);
}

#[test]
fn a_request_whose_thread_must_restart_its_instance_goes_to_another() {
    check(|| direct(2, 0), 2, 2, break_first);
    check(|| pairs(2), 2, 2, break_first);
}

#[test]
fn threads_stay_until_the_last_stream_has_ended() {
    shuttle::check_random(
        || {
            let queue = direct(2, 0);
            queue.push(Numbered::new()).expect("accepted");
            let Work::Batch(taken) = queue.pull(0, 0) else { panic!("a request waits") };
            queue.close();
            let other = {
                let queue = queue.clone();
                thread::spawn(move || serve(&queue, 1))
            };
            let stream = {
                let queue = queue.clone();
                thread::spawn(move || queue.finish(taken.len()))
            };
            assert!(serve(&queue, 0).is_empty());
            assert_eq!(queue.in_flight(), 0);
            assert!(other.join().expect("no panic").is_empty());
            stream.join().expect("no panic");
            assert!(queue.wait_for_end(Instant::now()));
        },
        ITERATIONS,
    );
}

/// Whoever comes first takes an abandoned request, an instance or who looks for them, and none is taken twice.
#[test]
fn abandoned_requests_are_taken_once() {
    shuttle::check_random(
        || {
            let queue = direct(1, 0);
            let instance = {
                let queue = queue.clone();
                thread::spawn(move || {
                    let (mut seen, mut done) = (Vec::new(), 0);
                    loop {
                        let arrivals: Vec<u64> = match queue.pull(0, done) {
                            Work::Batch(requests) => requests.iter().map(|r| r.arrival).collect(),
                            Work::Dropped(dropped) => {
                                dropped.iter().map(|(request, _)| request.arrival).collect()
                            }
                            Work::Restart(error) => panic!("{error}"),
                            Work::End | Work::Retire => return seen,
                        };
                        done = arrivals.len();
                        seen.extend(arrivals);
                    }
                })
            };
            let looker = {
                let queue = queue.clone();
                thread::spawn(move || {
                    let abandoned = queue.take_abandoned();
                    queue.finish(abandoned.len());
                    abandoned.iter().map(|request| request.arrival).collect::<Vec<_>>()
                })
            };
            for is_abandoned in [true, false, true] {
                let request = Numbered::new();
                request.is_abandoned.store(is_abandoned, Ordering::Relaxed);
                queue.push(request).expect("accepted");
            }
            let mut seen = looker.join().expect("no panic");
            assert!(!seen.contains(&1), "somebody waits for it");
            queue.close();
            seen.extend(instance.join().expect("no panic"));
            seen.sort_unstable();
            assert_eq!((seen, queue.in_flight()), (vec![0, 1, 2], 0));
        },
        ITERATIONS,
    );
}

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
    fn take_first_back(&self, from: usize) -> TakenBack {
        loop {
            let (first, has_ended) = {
                let state = self.state();
                (state.unread.front().copied(), state.has_ended)
            };
            match first {
                None => return TakenBack::Nothing,
                Some(number) if number < from && !has_ended => return TakenBack::NotYet,
                Some(_) => {}
            }
            // The worker may read that one now.
            match self.state().unread.pop_front() {
                Some(number) if number >= from => return TakenBack::Batch(number),
                Some(_) => {}
                None => return TakenBack::Nothing,
            }
        }
    }
}

/// An instance whose requests are handed over while it executes one; breaks with its first one if asked to.
fn serve_pipelined(queue: &Queue, index: usize, mut breaks: bool) -> Vec<u64> {
    let begins = || {
        queue.instance_begins(index);
        queue.instance_started(index);
        Worker::start()
    };
    let (mut worker, mut executed, mut sent) = (begins(), Vec::new(), 0);
    loop {
        let mut current = match queue.pull(index, 0) {
            Work::Batch(mut requests) => requests.pop().map(|request| (0, request)),
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
                queue.handed_over(index, HandedOver { request, number: sent, waiting });
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
    shuttle::check_random(run, ITERATIONS);
    shuttle::check_pct(run, ITERATIONS, 3);
}

#[test]
fn every_request_that_is_handed_over_is_executed_once() {
    check_pipelined(1, false);
    check_pipelined(2, false);
    check_pipelined(3, false);
}

#[test]
fn what_waits_in_an_instance_that_breaks_is_executed_once() {
    check_pipelined(1, true);
    check_pipelined(2, true);
}

/// An instance that executes for ever keeps nothing that waits in it: whoever is free takes it, in its order, as soon as the
/// worker has read what it executes.
#[test]
fn nothing_waits_in_an_instance_while_another_is_free() {
    let run = || {
        let queue = direct(2, 0);
        queue.instance_started(0);
        push(&queue, 1);
        let Work::Batch(_) = queue.pull(0, 0) else { panic!("a request waits") };
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
                    queue.handed_over(0, HandedOver { request, number: number + 1, waiting });
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
    shuttle::check_random(run, ITERATIONS);
    shuttle::check_pct(run, ITERATIONS, 3);
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
        queue.handed_over(0, HandedOver { request, number, waiting: worker.clone() });
    }
}

/// Who looks for requests that nobody waits for takes them out of an instance; what waits beside them comes first again.
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
        let Work::Batch(first) = queue.pull(0, 0) else { panic!("a request waits") };
        assert_eq!(arrivals(&first), [0]);
        let ahead = queue.next_ahead(0, 0, 3);
        assert_eq!(arrivals(&ahead), [1, 2, 3]);
        hand_over(&queue, &worker, ahead, 1);
        assert!(queue.take_abandoned().is_empty());
        is_abandoned.store(true, Ordering::Relaxed);
        assert_eq!(arrivals(&queue.take_abandoned()), [2]);
        assert!(worker.state().unread.is_empty());
        queue.finish(1);
        assert_eq!(queue.in_flight(), 4);
        assert!(queue.next(0, 1, Some(3)).begun.is_none());
        let Work::Batch(next) = queue.pull(0, 0) else { panic!("a request waits") };
        assert_eq!(arrivals(&next), [1]);
        assert_eq!(arrivals(&queue.next_ahead(0, 0, 3)), [3, 4]);
    };
    shuttle::check_random(run, 1);
}

/// What was taken back before its thread could say that it waits.
#[test]
fn a_request_may_be_taken_back_before_it_is_known_to_wait() {
    let run = || {
        let (queue, worker) = (direct(2, 0), idle_worker());
        [0, 1].into_iter().for_each(|index| queue.instance_started(index));
        push(&queue, 4);
        let Work::Batch(_) = queue.pull(0, 0) else { panic!("a request waits") };
        let mut ahead = queue.next_ahead(0, 0, 3);
        assert_eq!(arrivals(&ahead), [1, 2], "its share");
        let late = ahead.pop().expect("two");
        hand_over(&queue, &worker, ahead, 1);
        // The first is read, the second sent and not added, when the other instance becomes free.
        worker.send(2);
        worker.state().unread.pop_front();
        let Work::Batch(other) = queue.pull(1, 0) else { panic!("a request waits") };
        assert_eq!(arrivals(&other), [3]);
        let other = {
            let queue = queue.clone();
            thread::spawn(move || match queue.pull(1, 1) {
                Work::Batch(requests) => arrivals(&requests),
                _ => panic!("a request waits"),
            })
        };
        thread::yield_now();
        queue.handed_over(0, HandedOver { request: late, number: 2, waiting: worker.clone() });
        assert_eq!(other.join().expect("no panic"), [2]);
        assert!(worker.state().unread.is_empty());
        let Next { begun, .. } = queue.next(0, 1, Some(3));
        assert_eq!(begun.map(|(number, request)| (number, request.arrival)), Some((1, 1)));
        assert!(queue.next(0, 1, Some(3)).begun.is_none());
    };
    shuttle::check_random(run, ITERATIONS);
}

/// It executes nothing more: what it has not begun with is queued again, in its order, the rest is still its own.
#[test]
fn what_waits_in_an_instance_that_does_not_go_on_is_queued_again() {
    let run = || {
        let (queue, worker) = (direct(1, 0), idle_worker());
        queue.instance_started(0);
        push(&queue, 5);
        let Work::Batch(_) = queue.pull(0, 0) else { panic!("a request waits") };
        let ahead = queue.next_ahead(0, 0, 3);
        hand_over(&queue, &worker, ahead, 1);
        worker.state().unread.pop_front();
        let Next { begun, ahead } = queue.next(0, 1, None);
        assert_eq!(begun.map(|(_, request)| request.arrival), Some(1), "it has begun with that");
        assert!(ahead.is_empty() && worker.state().unread.is_empty());
        assert!(queue.next(0, 1, None).begun.is_none());
        for expected in 2..5 {
            let Work::Batch(next) = queue.pull(0, 0) else { panic!("a request waits") };
            assert_eq!(arrivals(&next), [expected]);
            queue.finish(1);
        }
        assert_eq!(queue.in_flight(), 0);
    };
    shuttle::check_random(run, 1);
}

/// Instances are added and retired while requests come: each is executed once, and whoever is retired ends.
#[test]
fn every_request_is_executed_once_while_instances_come_and_go() {
    const REQUESTS: u64 = 3;
    let run = |queue: Queue, serve: fn(&Queue, usize) -> Vec<u64>| {
        let spawn = |index: usize| {
            let queue = queue.clone();
            thread::spawn(move || serve(&queue, index))
        };
        let pusher = {
            let queue = queue.clone();
            thread::spawn(move || push(&queue, REQUESTS))
        };
        let mut instances: Vec<_> = (0..2).map(spawn).collect();
        for retired in 0..2 {
            instances.push(spawn(queue.add_instance()));
            assert!(queue.retire_instance(retired).is_none());
            assert!(queue.wait_until_gone(retired, never()));
        }
        pusher.join().expect("no panic");
        queue.close();
        let executed = instances.into_iter().flat_map(|i| i.join().expect("no panic"));
        let mut executed: Vec<u64> = executed.collect();
        executed.sort_unstable();
        assert_eq!(executed, (0..REQUESTS).collect::<Vec<_>>());
        assert!(queue.wait_for_end(never()));
    };
    let direct_one_by_one = move || run(direct(2, 0), serve);
    let pipelined = move || run(direct(2, 0), |queue, index| serve_pipelined(queue, index, false));
    let joined = move || run(pairs(2), serve);
    shuttle::check_random(direct_one_by_one, ITERATIONS);
    shuttle::check_pct(direct_one_by_one, ITERATIONS, 3);
    shuttle::check_random(pipelined, ITERATIONS);
    shuttle::check_pct(pipelined, ITERATIONS, 3);
    shuttle::check_random(joined, ITERATIONS);
}
