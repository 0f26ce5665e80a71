//! Many submitters at once, closed in the middle.

use galatea_scheduler::Scheduler as _;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Instant,
};

use galatea_types::Code;

use crate::probe::{LONG, Rig, Setup, sized, wait};

const SUBMITTERS: u64 = 8;
const REQUESTS: u64 = 400;

/// Small steps of a linear congruence: different in every thread, the same in every run.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *seed >> 33
}

#[derive(Default)]
struct Tally {
    succeeded: AtomicU64,
    failed: AtomicU64,
    items: AtomicU64,
}

fn submit_many(rig: &Rig, tally: &Tally, submitter: u64) {
    let mut seed = submitter;
    for _ in 0..REQUESTS {
        let luck = next(&mut seed) % 100;
        let id = match luck {
            0 => "panic",
            1..4 => "fail",
            4..6 => "mute",
            _ => "fine",
        };
        let items = u32::try_from(next(&mut seed) % 8 + 1).expect("small");
        let size = i64::try_from(next(&mut seed) % 2).expect("small");
        let answer = rig.submit_request(sized(id, items, size));
        if luck == 99 {
            // Dropped before the response: counted as one or the other.
            drop(answer);
            continue;
        }
        match wait(answer) {
            Ok(_) => {
                tally.items.fetch_add(items.into(), Ordering::SeqCst);
                let succeeded = tally.succeeded.fetch_add(1, Ordering::SeqCst) + 1;
                assert!(rig.statistics.snapshot().success.count >= succeeded, "counted first");
            }
            Err(error) => {
                let code = error.code();
                assert!(matches!(code, Code::Internal | Code::Unavailable), "{error}");
                tally.failed.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

fn stress(setup: Setup, close_after: Option<u64>) {
    let rig = setup.start();
    let tally = Tally::default();
    thread::scope(|scope| {
        let (rig, tally) = (&rig, &tally);
        for submitter in 0..SUBMITTERS {
            scope.spawn(move || submit_many(rig, tally, submitter));
        }
        if let Some(count) = close_after {
            scope.spawn(move || {
                while tally.succeeded.load(Ordering::SeqCst) < count {
                    thread::yield_now();
                }
                rig.scheduler.close();
            });
        }
    });
    assert!(rig.scheduler.drain(Instant::now() + LONG));
    let s = rig.statistics.snapshot();
    assert_eq!(s.success.count + s.fail.count, SUBMITTERS * REQUESTS);
    assert_eq!(s.fail.count, s.failures.iter().sum::<u64>());
    assert!(s.success.count >= tally.succeeded.load(Ordering::SeqCst));
    assert!(s.inference_count >= tally.items.load(Ordering::SeqCst));
    let in_batches: u64 = s.batches.iter().map(|(size, b)| size * b.compute_infer.count).sum();
    // Beyond them: those of requests that failed in their execution.
    assert!(s.inference_count <= in_batches);
    assert_eq!((s.pending, rig.scheduler.in_flight()), (0, 0));
}

#[test]
fn direct_scheduling_answers_every_request() {
    stress(Setup::direct().instances(3), None);
}

#[test]
fn dynamic_batching_answers_every_request() {
    stress(Setup::dynamic("").instances(2), None);
}

#[test]
fn dynamic_batching_closed_under_load_answers_every_request() {
    let setup = Setup::dynamic(
        "preferred_batch_size: [4, 8] max_queue_delay_microseconds: 200 preserve_ordering: true
         default_queue_policy { default_timeout_microseconds: 50000 max_queue_size: 6 }",
    );
    stress(setup.instances(3), Some(SUBMITTERS * REQUESTS / 4));
}

#[test]
fn direct_scheduling_closed_under_load_answers_every_request() {
    stress(Setup::direct().instances(2), Some(SUBMITTERS * REQUESTS / 4));
}
