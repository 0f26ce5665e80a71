//! Requests that wait too long are answered when their time is over, whatever the instances do.

use std::time::{Duration, Instant};

use galatea_backend::testing::{Answer, adjusted};
use galatea_scheduler::Scheduler as _;
use galatea_telemetry::{FailureReason, RefusalReason};
use galatea_types::{Code, Error};

use crate::probe::{Rig, Setup, all_succeed, named, wait};

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
    assert!(rig.scheduler.drain(Instant::now() + crate::probe::LONG));
}
