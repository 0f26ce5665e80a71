//! Requests lost between queue and instance threads, looked for by a model checker.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use galatea_backend::testing::model_config;
use galatea_test_support::interleavings;
use shuttle::thread;

use super::*;
use crate::{
    queue::{JoinRules, Placement, QueueEntry},
    request_queue::prefetched_requests::tests::serve_pipelined,
};

pub(super) const ITERATIONS: usize = 1000;

/// A request that is nothing but its place in the order of arrival.
#[derive(Debug)]
pub(super) struct Numbered {
    pub arrival: u64,
    queued_at: Instant,
    pub is_abandoned: Arc<AtomicBool>,
}

impl Numbered {
    pub fn new() -> Self {
        Self { arrival: u64::MAX, queued_at: Instant::now(), is_abandoned: Arc::default() }
    }
}

impl QueueEntry for Numbered {
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

    fn client(&self) -> Option<u64> {
        None
    }

    fn set_arrival(&mut self, arrival: u64) {
        self.arrival = arrival;
    }

    fn can_join(&self, _: &Self, _: &JoinRules) -> bool {
        true
    }
}

/// It belongs to no sequence.
impl SequenceRequest for Numbered {
    type States = ();

    fn state_bytes((): &()) -> usize {
        0
    }

    fn correlation_id(&self) -> &CorrelationId {
        &CorrelationId::None
    }

    fn is_start(&self) -> bool {
        false
    }

    fn is_end(&self) -> bool {
        false
    }

    fn begin_own_sequence(&mut self, _: u64) {}

    fn continue_sequence(&mut self, _: Instant) {}
}

/// A deadline that never comes for the model checker.
pub(super) fn never() -> Instant {
    Instant::now() + Duration::from_secs(86400)
}

pub(super) type Queue = Arc<RequestQueue<Numbered>>;
type OnQueue = Box<dyn FnOnce(&Queue) -> Vec<u64> + Send>;

pub(super) fn direct(instances: usize, hold_until_queued: usize) -> Queue {
    let config = model_config("name: 'm' backend: 'm'");
    Arc::new(RequestQueue::new(
        &config,
        instances,
        TestHold { queued: hold_until_queued, backlogged: 0 },
        Clock::system(),
    ))
}

/// Batches of 2 and, when nobody comes, after two hours.
fn pairs(instances: usize) -> Queue {
    let config = model_config(
        "name: 'm' backend: 'm' max_batch_size: 2
         dynamic_batching { max_queue_delay_microseconds: 7200000000 }",
    );
    Arc::new(RequestQueue::new(&config, instances, TestHold::default(), Clock::system()))
}

/// Pulls until the queue ends; the arrivals of what was executed.
pub(super) fn serve(queue: &Queue, index: usize) -> Vec<u64> {
    queue.instance_begins(index);
    queue.instance_started(index);
    let (mut executed, mut done) = (Vec::new(), 0);
    loop {
        match queue.pull(index, done, || ()) {
            Work::Batch(requests) => {
                done = requests.len();
                executed.extend(requests.iter().map(|request| request.arrival));
            }
            Work::Steps(_) => panic!("there are no sequences"),
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
    interleavings::check_random(run, ITERATIONS);
    interleavings::check_pct(run, ITERATIONS, 3);
}

pub(super) fn push(queue: &Queue, count: u64) -> Vec<u64> {
    (0..count).for_each(|_| drop(queue.push(Numbered::new()).expect("accepted")));
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
fn held_requests_are_executed() {
    check(|| direct(2, 4), 2, 2, nothing);
}

#[test]
fn a_grown_batch_is_executed() {
    check(|| pairs(2), 2, 2, nothing);
}

#[test]
fn a_request_of_a_restarting_instance_goes_to_another() {
    check(|| direct(2, 0), 2, 2, break_first);
    check(|| pairs(2), 2, 2, break_first);
}

#[test]
fn threads_stay_until_the_last_stream_has_ended() {
    interleavings::check_random(
        || {
            let queue = direct(2, 0);
            queue.push(Numbered::new()).expect("accepted");
            let Work::Batch(taken) = queue.pull(0, 0, || ()) else { panic!("a request waits") };
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

/// An instance or the search for abandoned requests takes each of them, never both.
#[test]
fn abandoned_requests_are_removed_once() {
    interleavings::check_random(
        || {
            let queue = direct(1, 0);
            let instance = {
                let queue = queue.clone();
                thread::spawn(move || {
                    let (mut seen, mut done) = (Vec::new(), 0);
                    loop {
                        let arrivals: Vec<u64> = match queue.pull(0, done, || ()) {
                            Work::Batch(requests) => requests.iter().map(|r| r.arrival).collect(),
                            Work::Dropped(dropped) => {
                                dropped.iter().map(|(request, _)| request.arrival).collect()
                            }
                            Work::Steps(_) => panic!("there are no sequences"),
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
                    abandoned.iter().map(|(request, _)| request.arrival).collect::<Vec<_>>()
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

/// Instances are added and retired while requests come: each request is executed once, and retired instances end.
#[test]
fn every_request_is_executed_once_while_instances_change() {
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
            assert!(queue.retire_instances(&[retired]).is_none());
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
    interleavings::check_random(direct_one_by_one, ITERATIONS);
    interleavings::check_pct(direct_one_by_one, ITERATIONS, 3);
    interleavings::check_random(pipelined, ITERATIONS);
    interleavings::check_pct(pipelined, ITERATIONS, 3);
    interleavings::check_random(joined, ITERATIONS);
}

/// An expired request is executed, or found by an instance or the timer, exactly once.
#[test]
fn expired_requests_are_removed_once_and_their_thread_ends() {
    const REQUESTS: u64 = 3;
    let run = |instances: usize| {
        let config = model_config(
            "name: 'm' backend: 'm' max_batch_size: 2 dynamic_batching {
               default_queue_policy { default_timeout_microseconds: 1 } }",
        );
        let queue =
            Arc::new(RequestQueue::new(&config, instances, TestHold::default(), Clock::system()));
        let spawn = |f: OnQueue| {
            let queue = queue.clone();
            thread::spawn(move || f(&queue))
        };
        let timekeeper = spawn(Box::new(|queue| {
            let mut seen = Vec::new();
            while let Some(expired) = queue.next_expired() {
                seen.extend(expired.iter().map(|(request, _)| request.arrival));
                queue.finish(expired.len());
            }
            seen
        }));
        let serve = |index| -> OnQueue {
            Box::new(move |queue| {
                let (mut seen, mut done) = (Vec::new(), 0);
                loop {
                    let requests = match queue.pull(index, done, || ()) {
                        Work::Batch(requests) => requests,
                        Work::Dropped(dropped) => dropped.into_iter().map(|(r, _)| r).collect(),
                        Work::Steps(_) => panic!("there are no sequences"),
                        Work::Restart(error) => panic!("{error}"),
                        Work::End | Work::Retire => break,
                    };
                    done = requests.len();
                    seen.extend(requests.iter().map(|request| request.arrival));
                }
                queue.thread_ended(index);
                seen
            })
        };
        let mut threads: Vec<_> = (0..instances).map(|index| spawn(serve(index))).collect();
        threads.push(timekeeper);
        push(&queue, REQUESTS);
        if instances > 0 {
            queue.close();
        } else {
            // Nobody else would take them.
            assert!(queue.wait_until_idle(never()));
            queue.close();
        }
        let seen = threads.into_iter().flat_map(|thread| thread.join().expect("no panic"));
        let mut seen: Vec<u64> = seen.collect();
        seen.sort_unstable();
        assert_eq!((seen, queue.in_flight()), ((0..REQUESTS).collect(), 0));
    };
    interleavings::check_random(move || run(1), ITERATIONS);
    interleavings::check_pct(move || run(2), ITERATIONS, 3);
    interleavings::check_random(move || run(0), ITERATIONS);
}
