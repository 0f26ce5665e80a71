//! Requests that wait too long are answered when their time is over, whatever the instances do.

use std::{
    sync::{Mutex, mpsc},
    time::{Duration, Instant},
};

use galatea_backend::testing::{Answer, adjusted};
use galatea_scheduler::Scheduler as _;
use galatea_telemetry::{FailureReason, RefusalReason};
use galatea_types::{Code, Error};

use crate::probe::{LONG, Rig, Setup, all_succeed, named, until, wait};

const SHORT: &str = "default_queue_policy { default_timeout_microseconds: 20000 }";

fn expires(answer: Answer) {
    let error = wait(answer).expect_err("its time is over");
    assert_eq!((error.code(), error.message()), (Code::Unavailable, "Request timeout expired"));
}

/// With the only instance at work on the request `first`.
fn busy(fields: &str) -> (Rig, Answer) {
    let rig = Setup::dynamic(fields).gated().start();
    let first = rig.submit("first");
    rig.next_start();
    (rig, first)
}

#[test]
fn while_the_instance_is_busy() {
    for order in ["", "preserve_ordering: true"] {
        let (rig, first) = busy(&format!("{SHORT} {order}"));
        let begin = Instant::now();
        ["a", "b", "c"].map(|id| rig.submit(id)).into_iter().for_each(expires);
        assert!(begin.elapsed() >= Duration::from_millis(20));
        let counted = rig.statistics.snapshot();
        assert_eq!(counted.failures[FailureReason::Rejected as usize], 3);
        assert_eq!(counted.refused[RefusalReason::QueueTimeout as usize], 3);
        assert_eq!(counted.pending, 0);
        until(|| rig.scheduler.in_flight() == 1);
        // What comes after those goes on as ever.
        rig.permit(1);
        all_succeed([first]);
        rig.permit(1);
        all_succeed([rig.submit("d")]);
    }
}

#[test]
fn in_the_middle_of_those_that_wait_on() {
    let policy = "default_queue_policy { default_timeout_microseconds: 3600000000 allow_timeout_override: true }";
    let (rig, first) = busy(policy);
    let with_timeout = |id: &str, ms| {
        let timeout = Some(Duration::from_millis(ms));
        rig.submit_request(adjusted(named(id, 1), |request| request.timeout = timeout))
    };
    let patient = with_timeout("patient", 3_000_000);
    let (late, later) = (with_timeout("late", 10), with_timeout("later", 30));
    let other = rig.submit("other");
    let soon = with_timeout("soon", 1);
    [soon, late, later].into_iter().for_each(expires);
    rig.permit(2);
    assert_eq!(rig.next_start(), ["patient", "other"]);
    all_succeed([first, patient, other]);
}

#[test]
fn while_the_instance_is_restarted() {
    // Receives when the test has ended.
    let (ended, end) = mpsc::channel::<()>();
    let end = Mutex::new(end);
    let setup = Setup::dynamic(SHORT).on_create(move |number| match number {
        0 => Ok(()),
        _ => {
            let _ = end.lock().expect("no panic").recv();
            Err(Error::internal("the end of the test"))
        }
    });
    let rig = setup.start();
    rig.next_made().alarm();
    expires(rig.submit("a"));
    drop(ended);
}

#[test]
fn levels_have_policies_of_their_own() {
    let (rig, first) = busy(
        "priority_levels: 18446744073709551615 default_priority_level: 1000000000000
         priority_queue_policy { key: 7 value { default_timeout_microseconds: 1000 } }
         priority_queue_policy { key: 18446744073709551615 value { max_queue_size: 1 } }",
    );
    let at = |id: &str, priority| {
        rig.submit_request(adjusted(named(id, 1), |request| request.priority = priority))
    };
    let last = at("last", u64::MAX);
    let refused = wait(at("full", u64::MAX)).expect_err("one may wait");
    assert_eq!(refused.message(), "[request id: full] Exceeds maximum queue size");
    let kept = [at("default", 0), at("named", 1_000_000_000_000), at("first level", 1)];
    expires(at("rejected", 7));
    rig.permit(2);
    assert_eq!(rig.next_start(), ["first level", "default", "named", "last"]);
    all_succeed(kept.into_iter().chain([first, last]));
}

#[test]
fn those_that_are_held_back_wait_for_the_others() {
    let rig = Setup::dynamic(SHORT).hold(2).start();
    let mut early = rig.submit("early");
    let queued = Instant::now();
    until(|| queued.elapsed() >= Duration::from_millis(30));
    assert!(early.try_recv().is_err());
    let second = rig.submit("second");
    expires(early);
    assert_eq!(rig.next_start(), ["second"]);
    all_succeed([second]);
}

#[test]
fn a_time_out_of_any_length_is_taken() {
    let fields = format!(
        "max_queue_delay_microseconds: {max} default_queue_policy {{ default_timeout_microseconds: {max} }}",
        max = u64::MAX
    );
    let rig = Setup::dynamic(&fields).gated().start();
    let first = rig.submit_request(named("first", 8));
    assert_eq!(rig.next_start(), ["first"]);
    let second = rig.submit("second");
    rig.permit(2);
    all_succeed([first]);
    // What it waits for does not come any more.
    rig.scheduler.close();
    all_succeed([second]);
}

#[test]
fn after_the_queue_was_closed() {
    let (rig, first) = busy(SHORT);
    let waiting = rig.submit("a");
    rig.scheduler.close();
    expires(waiting);
    rig.permit(1);
    all_succeed([first]);
    assert!(rig.scheduler.drain(Instant::now() + LONG));
}
