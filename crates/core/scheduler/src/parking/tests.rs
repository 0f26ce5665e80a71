//! Lost wake-ups, looked for by a model checker: it runs the threads of each test in many orders, and fails when
//! all of them sleep.

use std::{sync::Arc, time::Duration};

use galatea_test_support::interleavings;
use shuttle::{sync::Barrier, thread};

use super::*;

const ITERATIONS: usize = 1000;
/// An instant that never comes for the model checker.
fn never() -> Instant {
    Instant::now() + Duration::from_secs(86400)
}

/// A number of things to be taken, and whether more will come.
#[derive(Default)]
struct Things {
    left: u64,
    is_closed: bool,
}

type Shared = Arc<Parking<Things>>;

fn parking() -> Parking<Things> {
    Parking::new(Things::default(), 1, Clock::system())
}

/// Adds things, and wakes the threads that take them.
fn add(parking: &Shared, count: u64, one_is_enough: bool) {
    for _ in 0..count {
        let mut things = parking.lock();
        things.left += 1;
        things.wake_for_new(one_is_enough, |things, batch| things.left >= batch.enough_items);
    }
}

/// Removes up to `count` things and unlocks.
fn take(mut things: Locked<'_, Things>, count: u64) -> u64 {
    let count = count.min(things.left);
    things.left -= count;
    if things.left == 0 {
        things.notify_observers();
    }
    let left = things.left;
    things.wake_for_rest(usize::try_from(left).expect("few"));
    count
}

/// Takes things one by one until none will come any more; returns how many.
fn take_singly(parking: &Shared, thread: usize) -> u64 {
    let (mut things, mut taken) = (parking.lock(), 0);
    loop {
        if things.left > 0 {
            taken += take(things, 1);
            things = parking.lock();
        } else if things.is_closed {
            return taken;
        } else {
            things = things.sleep(thread, None, |things| things.is_closed);
        }
    }
}

/// The same two by two: one thread waits as the leader while there is only one thing.
fn take_in_pairs(parking: &Shared, thread: usize) -> u64 {
    let batch = GrowingBatch { until: never(), enough_items: 2 };
    let (mut things, mut taken) = (parking.lock(), 0);
    loop {
        things = match (things.left, things.is_closed) {
            (0, true) => return taken,
            (2.., _) | (1, true) => {
                taken += take(things, 2);
                parking.lock()
            }
            (1, false) if !things.has_leader() => things.lead(batch, |things| things.is_closed),
            _ => things.sleep(thread, None, |things| things.is_closed),
        };
    }
}

/// Runs two threads that add three things each beside three that take them.
fn check(take: fn(&Shared, usize) -> u64, one_is_enough: bool) {
    let run = move || {
        let parking = Arc::new(parking());
        let spawn = |f: Box<dyn FnOnce(&Shared) -> u64 + Send>| {
            let parking = parking.clone();
            thread::spawn(move || f(&parking))
        };
        let takers: Vec<_> =
            (0..3).map(|i| spawn(Box::new(move |parking| take(parking, i)))).collect();
        for adder in [(); 2].map(|()| {
            spawn(Box::new(move |parking| {
                add(parking, 3, one_is_enough);
                0
            }))
        }) {
            adder.join().expect("no panic");
        }
        // All is taken before closing wakes everybody.
        assert!(parking.wait_until(never(), |things| things.left == 0));
        let mut things = parking.lock();
        things.is_closed = true;
        things.wake_all();
        let taken: u64 = takers.into_iter().map(|taker| taker.join().expect("no panic")).sum();
        assert_eq!(taken, 6);
        let state = parking.state.lock().expect("no panic");
        assert_eq!((state.sleepers.idle(0), state.observing), (0, 0));
    };
    interleavings::check_random(run, ITERATIONS);
    interleavings::check_pct(run, ITERATIONS, 3);
}

#[test]
fn each_request_wakes_a_thread() {
    check(take_singly, false);
}

#[test]
fn a_woken_thread_wakes_the_next_one_for_remaining_requests() {
    check(take_singly, true);
}

#[test]
fn a_leader_is_woken_when_its_batch_is_complete() {
    check(take_in_pairs, true);
}

#[test]
fn a_leader_stops_waiting_at_its_deadline() {
    interleavings::check_random(
        || {
            let parking =
                Arc::new(Parking::new(Things { left: 1, is_closed: false }, 1, Clock::system()));
            let batch =
                GrowingBatch { until: Instant::now() + Duration::from_secs(60), enough_items: 2 };
            let things = parking.lock().lead(batch, |things| things.is_closed);
            assert!(!things.has_leader() && things.left == 1);
        },
        10,
    );
}

#[test]
fn no_thread_sleeps_while_there_is_work_for_it() {
    let run = || {
        let parking = Arc::new(parking());
        // Each thread is busy until all of them are.
        let all_busy = Arc::new(Barrier::new(3));
        let takers = [0, 1, 2].map(|number| {
            let (parking, all_busy) = (parking.clone(), all_busy.clone());
            thread::spawn(move || {
                let mut things = parking.lock();
                while things.left == 0 {
                    things = things.sleep(number, None, |things| things.is_closed);
                }
                take(things, 1);
                all_busy.wait();
            })
        });
        add(&parking, 3, true);
        takers.into_iter().for_each(|taker| taker.join().expect("no panic"));
    };
    interleavings::check_random(run, ITERATIONS);
    interleavings::check_pct(run, ITERATIONS, 3);
}

#[test]
fn each_lane_is_woken_for_its_own_work() {
    /// Things for each of two threads.
    #[derive(Default)]
    struct Two {
        left: [u64; 2],
        is_closed: bool,
    }
    let run = || {
        let parking = Arc::new(Parking::new(Two::default(), 2, Clock::system()));
        let threads: Vec<_> = (0..2)
            .map(|lane| {
                let parking = parking.clone();
                thread::spawn(move || {
                    let (mut two, mut taken) = (parking.lock_lane(lane), 0);
                    loop {
                        taken += std::mem::take(&mut two.left[lane]);
                        if two.is_closed {
                            return taken;
                        }
                        two = two.sleep(lane, None, |two| two.is_closed);
                    }
                })
            })
            .collect();
        for lane in [0, 1, 1, 0, 1] {
            let mut two = parking.lock();
            two.left[lane] += 1;
            two.in_lane(lane).wake_for_new(true, |_, _| true);
        }
        // Each thread must come for its own, or this never ends.
        while parking.lock().left != [0, 0] {
            thread::yield_now();
        }
        let mut two = parking.lock();
        two.is_closed = true;
        two.wake_all();
        let taken: Vec<u64> = threads.into_iter().map(|t| t.join().expect("no panic")).collect();
        assert_eq!(taken, [2, 3]);
    };
    interleavings::check_random(run, ITERATIONS);
}

/// Adds things, and takes them itself in the place of a thread that sleeps, if one does: how many it took.
fn add_and_take(parking: &Shared, count: u64) -> u64 {
    let mut taken = 0;
    for _ in 0..count {
        let mut things = parking.lock();
        things.left += 1;
        let Some(thread) = things.replace_sleeper() else {
            things.wake_for_new(true, |_, _| true);
            continue;
        };
        drop(things);
        thread::yield_now();
        let mut things = parking.lock();
        taken += std::mem::take(&mut things.left);
        things.notify_observers();
        things.end_replacing(thread);
        if things.is_closed {
            things.wake_thread(thread);
        }
    }
    taken
}

#[test]
fn a_replaced_thread_keeps_sleeping_and_rechecks_after_waking() {
    let run = || {
        let parking = Arc::new(parking());
        let takers: Vec<_> = (0..2)
            .map(|number| {
                let parking = parking.clone();
                thread::spawn(move || take_singly(&parking, number))
            })
            .collect();
        let adders: Vec<_> = (0..2)
            .map(|_| {
                let parking = parking.clone();
                thread::spawn(move || add_and_take(&parking, 2))
            })
            .collect();
        let closing = parking.clone();
        let closer = thread::spawn(move || {
            // Any time: what is added later is taken by those that end, or by who adds it.
            let mut things = closing.lock();
            things.is_closed = true;
            things.wake_all();
        });
        closer.join().expect("no panic");
        let added: u64 = adders.into_iter().map(|adder| adder.join().expect("no panic")).sum();
        let taken: u64 = takers.into_iter().map(|taker| taker.join().expect("no panic")).sum();
        assert_eq!(added + taken + parking.lock().left, 4);
        assert_eq!(parking.lock().idle_threads(), 0);
    };
    interleavings::check_random(run, ITERATIONS);
    interleavings::check_pct(run, ITERATIONS, 3);
}
