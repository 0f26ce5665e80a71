//! Responses lost between the models' threads and the connection's task, looked for by a model checker: it runs the
//! queue's own source in many orders of its threads.

use std::{
    collections::{BTreeSet, VecDeque},
    task::{Wake, Waker},
};

use galatea_test_support::interleavings;
use galatea_types::{Buffer, DataType, InferResponse, MemoryBudget, Response, Tensor};
use shuttle::{
    sync::{Condvar, Mutex},
    thread,
};

use self::queue::{KeyedResponse, OnOverflow, Queue, ResponseKey};

mod sync {
    //! The model checker's threads, locks and atomics.

    pub(super) use shuttle::sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    };

    /// As that of `galatea_types`.
    pub(super) trait LockExt<T> {
        fn lock_unpoisoned(&self) -> shuttle::sync::MutexGuard<'_, T>;
    }

    impl<T> LockExt<T> for Mutex<T> {
        fn lock_unpoisoned(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.lock().expect("no panic under a lock")
        }
    }
}

#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "the same source with other locks; the receiver uses all of it"
)]
#[path = "../queue.rs"]
mod queue;

const ITERATIONS: usize = 2000;

/// A task that sleeps until it is woken.
#[derive(Default)]
struct Task {
    is_woken: Mutex<bool>,
    woken: Condvar,
}

impl Wake for Task {
    fn wake(self: std::sync::Arc<Self>) {
        *self.is_woken.lock().expect("no panic") = true;
        self.woken.notify_all();
    }
}

impl Task {
    fn sleep(&self) {
        let is_woken = self.is_woken.lock().expect("no panic");
        let mut is_woken = self.woken.wait_while(is_woken, |woken| !*woken).expect("no panic");
        *is_woken = false;
    }
}

fn response(key: ResponseKey, size: usize) -> KeyedResponse {
    let data = Buffer::from(vec![0; size]);
    let shape = [i64::try_from(size).expect("small")];
    let made = InferResponse {
        model_name: "m".into(),
        model_version: 1,
        id: String::new(),
        parameters: Vec::new(),
        outputs: vec![Tensor::new("OUT", DataType::Uint8, shape, data)],
    };
    KeyedResponse { key, response: Response { result: Some(Ok(made)), is_final: true } }
}

/// Receives until `count` responses are there or the bound was passed: how many there were, and whether it was.
fn receive(queue: &Queue, count: usize) -> (usize, bool) {
    let task = std::sync::Arc::new(Task::default());
    let waker = Waker::from(task.clone());
    let (mut ordered, mut seen, mut batch) = (BTreeSet::new(), 0, VecDeque::new());
    while seen < count {
        let awaited = (0..).find(|number| !ordered.contains(number)).unwrap_or(u64::MAX);
        if queue.take_all(awaited, &waker, &mut batch).is_err() {
            return (seen, true);
        }
        if batch.is_empty() {
            task.sleep();
        }
        for received in batch.drain(..) {
            seen += 1;
            if let ResponseKey::Ordered(number) = received.key {
                ordered.insert(number);
            }
            queue.release(received.weight());
        }
    }
    (seen, false)
}

fn check(run: fn()) {
    interleavings::check_random(run, ITERATIONS);
    interleavings::check_pct(run, ITERATIONS, 3);
}

#[test]
fn a_sleeping_receiver_is_woken_for_every_response() {
    check(|| {
        let budget = MemoryBudget::new(1 << 20);
        let queue = Queue::new(1 << 20, OnOverflow::Deliver, &budget);
        let senders: Vec<_> = (0..3)
            .map(|number| {
                let queue = queue.clone();
                thread::spawn(move || {
                    queue.push(response(ResponseKey::Ordered(number), 4)).expect("room");
                    queue.push(response(ResponseKey::Unordered(number), 70_000)).expect("room");
                })
            })
            .collect();
        assert_eq!(receive(&queue, 6), (6, false));
        senders.into_iter().for_each(|sender| sender.join().expect("no panic"));
        assert_eq!(budget.used(), 0, "all of it was sent");
    });
}

#[test]
fn a_sleeping_receiver_is_woken_when_the_limit_is_exceeded() {
    for on_overflow in [OnOverflow::Deliver, OnOverflow::Discard] {
        interleavings::check_random(
            move || {
                let budget = MemoryBudget::new(1 << 20);
                let queue = Queue::new(1000, on_overflow, &budget);
                let senders: Vec<_> = (0..3)
                    .map(|number| {
                        let queue = queue.clone();
                        thread::spawn(move || {
                            let _ = queue.push(response(ResponseKey::Unordered(number), 600));
                        })
                    })
                    .collect();
                // Whether two meet in the queue is a matter of time; the receiver ends in any case.
                let (seen, is_over) = receive(&queue, 3);
                assert!(is_over || seen == 3, "{seen} of 3");
                senders.into_iter().for_each(|sender| sender.join().expect("no panic"));
                drop(queue);
                assert_eq!(budget.used(), 0);
            },
            ITERATIONS,
        );
    }
}
