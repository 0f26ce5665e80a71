//! What a client gets, and what is counted for it.

use std::sync::Arc;

use galatea_scheduler::Scheduler as _;
use galatea_telemetry::{FailureReason, StatisticsSnapshot};
use galatea_types::{Cancellation, Code, Origin, RequestContext, StepTimes};

use crate::probe::{Setup, all_succeed, named, wait};

fn failures(statistics: &StatisticsSnapshot, reason: FailureReason) -> u64 {
    statistics.failures[reason as usize]
}

#[test]
fn a_request_with_8_items_is_one_execution_of_8_inferences() {
    let rig = Setup::direct().start();
    let response = wait(rig.submit_request(named("a", 8))).expect("success");
    assert_eq!((&*response.model_name, response.model_version, &*response.id), ("probe", 3, "a"));
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.inference_count, s.execution_count), (1, 8, 1));
    assert_eq!((s.queue.count, s.compute_infer.count, s.fail.count), (1, 1, 0));
    assert_eq!(s.batches.keys().collect::<Vec<_>>(), [&8]);
    assert!(s.success.ns >= s.queue.ns + s.compute_infer.ns);
    assert!(s.last_inference_ms > 0);
}

#[test]
fn a_batch_of_requests_is_one_execution() {
    let rig = Setup::dynamic("").hold(2).start();
    let answers = [rig.submit_request(named("a", 3)), rig.submit_request(named("b", 2))];
    assert_eq!(rig.next_start(), ["a", "b"]);
    let ids = answers.map(|a| wait(a).expect("success").id);
    assert_eq!(ids, ["a", "b"]);
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.inference_count, s.execution_count), (2, 5, 1));
    assert_eq!(s.batches.keys().collect::<Vec<_>>(), [&5]);
}

#[test]
fn a_failed_execution_counts_as_execution_but_not_as_inference() {
    let rig = Setup::direct().start();
    assert_eq!(wait(rig.submit("fail")).expect_err("failure").message(), "asked to fail");
    let s = rig.statistics.snapshot();
    assert_eq!((s.fail.count, failures(&s, FailureReason::Backend)), (1, 1));
    assert_eq!((s.success.count, s.inference_count, s.execution_count), (0, 0, 1));
    assert_eq!(s.batches.keys().collect::<Vec<_>>(), [&1]);
    assert!(s.last_inference_ms > 0);
}

/// The ensemble itself counts every failure as OTHER.
#[test]
fn a_step_of_an_ensemble_keeps_the_reason_of_its_failure() {
    let rig = Setup::direct().start();
    let times = Arc::new(StepTimes::new(&Origin::default()));
    let context = RequestContext::new().derive_step(
        std::time::Instant::now(),
        "m",
        times,
        Cancellation::default(),
    );
    wait(rig.submit_in(named("fail", 1), context)).expect_err("failure");
    let s = rig.statistics.snapshot();
    assert_eq!((s.fail.count, failures(&s, FailureReason::Backend)), (1, 1));
}

#[test]
fn each_request_of_a_batch_has_its_own_result() {
    let rig = Setup::dynamic("").hold(4).start();
    let answers = ["a", "fail", "cancel", "mute"].map(|id| rig.submit(id)).map(wait);
    assert_eq!(rig.next_start().len(), 4);
    let codes = answers.map(|a| a.err().map(|e| e.code()));
    assert_eq!(codes, [None, Some(Code::Internal), Some(Code::Cancelled), Some(Code::Internal)]);
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.inference_count, s.execution_count), (1, 1, 1));
    assert_eq!(failures(&s, FailureReason::Backend), 2);
    assert_eq!(failures(&s, FailureReason::Canceled), 1);
}

#[test]
fn abandoned_requests_are_not_executed() {
    let rig = Setup::direct().gated().start();
    let first = rig.submit("first");
    rig.next_start();
    let context = RequestContext::new();
    let cancellation = context.cancellation.clone();
    let cancelled = rig.submit_in(named("cancelled", 1), context);
    cancellation.cancel();
    drop(rig.submit("dropped"));
    let last = rig.submit("last");
    rig.permit(2);
    assert_eq!(rig.next_start(), ["last"]);
    assert_eq!(wait(cancelled).expect_err("cancelled").code(), Code::Cancelled);
    assert!(wait(first).is_ok() && wait(last).is_ok());
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, failures(&s, FailureReason::Canceled)), (2, 2));
}

#[test]
fn a_full_queue_refuses_requests() {
    let rig = Setup::dynamic("default_queue_policy { max_queue_size: 1 }").gated().start();
    let executing = rig.submit("executing");
    rig.next_start();
    let queued = rig.submit("queued");
    let error = rig.submit_refused("too many");
    assert_eq!(error.code(), Code::Unavailable);
    assert_eq!(error.message(), "[request id: too many] Exceeds maximum queue size");
    let s = rig.statistics.snapshot();
    assert_eq!((failures(&s, FailureReason::Rejected), s.pending), (1, 1));
    rig.permit(2);
    assert!(wait(executing).is_ok() && wait(queued).is_ok());
}

#[test]
fn an_expired_request_is_rejected() {
    let rig = Setup::dynamic(
        "preferred_batch_size: 8 max_queue_delay_microseconds: 3600000000
         default_queue_policy { timeout_action: REJECT default_timeout_microseconds: 1 }",
    )
    .start();
    let error = wait(rig.submit("late")).expect_err("rejected");
    assert_eq!((error.code(), error.message()), (Code::Unavailable, "Request timeout expired"));
    let s = rig.statistics.snapshot();
    assert_eq!((failures(&s, FailureReason::Rejected), s.execution_count, s.pending), (1, 0, 0));
}

#[test]
fn the_pending_count_falls_when_execution_starts() {
    let rig = Setup::direct().gated().start();
    let answers = [rig.submit("a"), rig.submit("b")];
    rig.next_start();
    assert_eq!((rig.statistics.snapshot().pending, rig.scheduler.in_flight()), (1, 2));
    rig.permit(2);
    all_succeed(answers);
    assert_eq!(rig.statistics.snapshot().pending, 0);
}

#[test]
fn a_panic_fails_only_its_request() {
    let rig = Setup::direct().hold(3).start();
    let answers = ["a", "panic", "b"].map(|id| rig.submit(id)).map(wait);
    let [a, failed, b] = answers;
    assert!(a.is_ok() && b.is_ok());
    let error = failed.expect_err("failure");
    assert_eq!(error.code(), Code::Internal);
    assert!(
        error.message().contains("'probe'") && error.message().contains("'probe_0_0'"),
        "{error}"
    );
    assert_eq!(rig.creations.load(std::sync::atomic::Ordering::SeqCst), 2);
    assert_eq!(failures(&rig.statistics.snapshot(), FailureReason::Backend), 1);
}

#[test]
fn responses_sent_before_a_panic_arrive() {
    let rig = Setup::dynamic("").hold(3).start();
    let answers = ["a", "panic", "b"].map(|id| rig.submit(id)).map(wait);
    assert_eq!(answers.map(|a| a.is_ok()), [true, false, false]);
}
