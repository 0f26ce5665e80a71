//! Requests that wait too long are answered when their time is over, whatever the instances do.

use std::{
    sync::{Mutex, mpsc},
    time::Duration,
};

use galatea_backend::testing::{Answer, adjusted};
use galatea_scheduler::Scheduler as _;
use galatea_telemetry::{FailureReason, RefusalReason};
use galatea_test_support::eventually;
use galatea_types::{Code, Error, ManualClock};

use crate::probe::{LONG, Rig, Setup, all_succeed, named, wait};

const SHORT: &str = "default_queue_policy { default_timeout_microseconds: 20000 }";

/// What the queue waits for there.
const SHORT_TIME: Duration = Duration::from_millis(20);

fn expires(answer: Answer) {
    let error = wait(answer).expect_err("its time is over");
    assert_eq!((error.code(), error.message()), (Code::Unavailable, "Request timeout expired"));
}

/// With the only instance at work on the request `first`, and the clock that tells all times.
fn busy(fields: &str) -> (Rig, Answer, ManualClock) {
    let clock = ManualClock::new();
    let rig = Setup::dynamic(fields).by(&clock).gated().start();
    let first = rig.submit("first");
    rig.next_start();
    (rig, first, clock)
}

#[test]
fn a_request_times_out_while_the_instance_is_busy() {
    for order in ["", "preserve_ordering: true"] {
        let (rig, first, clock) = busy(&format!("{SHORT} {order}"));
        let answers = ["a", "b", "c"].map(|id| rig.submit(id));
        clock.advance(SHORT_TIME - Duration::from_nanos(1));
        assert_eq!(rig.scheduler.in_flight(), 4, "their time is not over");
        clock.advance(Duration::from_nanos(1));
        answers.into_iter().for_each(expires);
        let counted = rig.statistics.snapshot();
        assert_eq!(u128::from(counted.fail.ns), 3 * SHORT_TIME.as_nanos());
        assert_eq!(counted.failures[FailureReason::Rejected as usize], 3);
        assert_eq!(counted.refused[RefusalReason::QueueTimeout as usize], 3);
        assert_eq!(counted.pending, 0);
        eventually("only the first is in flight", || rig.scheduler.in_flight() == 1);
        // What comes after those goes on as ever.
        rig.permit(1);
        all_succeed([first]);
        rig.permit(1);
        all_succeed([rig.submit("d")]);
    }
}

#[test]
fn a_request_times_out_between_requests_without_a_timeout() {
    let policy = "default_queue_policy { default_timeout_microseconds: 3600000000 allow_timeout_override: true }";
    let (rig, first, clock) = busy(policy);
    let with_timeout = |id: &str, ms| {
        let timeout = Some(Duration::from_millis(ms));
        rig.submit_request(adjusted(named(id, 1), |request| request.timeout = timeout))
    };
    let patient = with_timeout("patient", 3_000_000);
    let (late, later) = (with_timeout("late", 10), with_timeout("later", 30));
    let other = rig.submit("other");
    let soon = with_timeout("soon", 1);
    for (ms, answer) in [(1, soon), (9, late), (20, later)] {
        clock.advance(Duration::from_millis(ms));
        expires(answer);
    }
    rig.permit(2);
    assert_eq!(rig.next_start(), ["patient", "other"]);
    all_succeed([first, patient, other]);
}

#[test]
fn a_request_times_out_while_the_instance_restarts() {
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
    let clock = ManualClock::new();
    let rig = setup.by(&clock).start();
    rig.next_made().alarm();
    let waiting = rig.submit("a");
    clock.advance(SHORT_TIME);
    expires(waiting);
    drop(ended);
}

#[test]
fn priority_levels_have_their_own_timeout_policies() {
    let (rig, first, clock) = busy(
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
    let rejected = at("rejected", 7);
    clock.advance(Duration::from_millis(1));
    expires(rejected);
    rig.permit(2);
    assert_eq!(rig.next_start(), ["first level", "default", "named", "last"]);
    all_succeed(kept.into_iter().chain([first, last]));
}

#[test]
fn delayed_requests_wait_for_the_others() {
    let clock = ManualClock::new();
    let rig = Setup::dynamic(SHORT).by(&clock).hold(2).start();
    let mut early = rig.submit("early");
    clock.advance(2 * SHORT_TIME);
    assert!(early.try_recv().is_err());
    let second = rig.submit("second");
    expires(early);
    assert_eq!(rig.next_start(), ["second"]);
    all_succeed([second]);
}

#[test]
fn a_timeout_of_any_length_is_accepted() {
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
fn a_request_times_out_after_the_queue_is_closed() {
    let (rig, first, clock) = busy(SHORT);
    let waiting = rig.submit("a");
    rig.scheduler.close();
    clock.advance(SHORT_TIME);
    expires(waiting);
    rig.permit(1);
    all_succeed([first]);
    assert!(rig.scheduler.drain(clock.now() + LONG));
}
