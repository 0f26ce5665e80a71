//! Start, outage, closing and end.

use galatea_scheduler::Scheduler as _;
use std::{
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use galatea_telemetry::FailureReason;
use galatea_test_support::eventually;
use galatea_types::{Code, Error, ManualClock};

use crate::probe::{LONG, Setup, all_succeed, wait};

#[test]
fn the_first_error_of_an_instance_fails_the_start() {
    let failing = |n| if n == 1 { Err(Error::internal("no more memory")) } else { Ok(()) };
    let setup = Setup::direct().instances(3).on_create(failing);
    assert_eq!(setup.try_start().err().expect("an error").message(), "no more memory");
}

#[test]
fn a_panic_while_starting_is_an_error() {
    let setup = Setup::direct().on_create(|_| panic!("bad day"));
    let error = setup.try_start().err().expect("an error");
    assert!(
        error.message().contains("probe_0_0") && error.message().contains("bad day"),
        "{error}"
    );
}

#[test]
fn a_model_without_instances_does_not_start() {
    assert!(Setup::direct().instances(0).try_start().is_err());
    assert!(Setup::of("sequence_batching {}").instances(0).try_start().is_err());
}

#[test]
fn closing_answers_queued_requests_and_refuses_new_ones() {
    let rig = Setup::direct().gated().start();
    let queued = ["a", "b", "c"].map(|id| rig.submit(id));
    rig.next_start();
    rig.scheduler.close();
    let error = rig.submit_refused("late");
    assert_eq!(error.code(), Code::Unavailable);
    assert_eq!(
        error.message(),
        "[request id: late] Server is stopping, scheduler for model has stopped accepting new \
         inference requests"
    );
    let s = rig.statistics.snapshot();
    assert_eq!(s.failures[FailureReason::Rejected as usize], 1);
    assert!(!rig.scheduler.drain(Instant::now()), "three requests are in flight");
    rig.permit(3);
    assert!(rig.scheduler.drain(Instant::now() + LONG));
    assert_eq!(rig.scheduler.in_flight(), 0);
    all_succeed(queued);
}

#[test]
fn waiting_until_idle_does_not_close_the_scheduler() {
    let rig = Setup::direct().gated().start();
    assert!(rig.scheduler.wait_until_idle(Instant::now()), "nothing is in flight");
    let first = ["a", "b"].map(|id| rig.submit(id));
    rig.next_start();
    assert!(!rig.scheduler.wait_until_idle(Instant::now()), "two requests are in flight");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| rig.scheduler.wait_until_idle(Instant::now() + LONG));
        rig.permit(1);
        rig.next_start();
        assert!(!waiting.is_finished(), "one request is in flight");
        rig.permit(1);
        assert!(waiting.join().expect("no panic"));
    });
    all_succeed(first);
    let late = rig.submit("c");
    rig.permit(1);
    wait(late).expect("requests are still accepted");
}

#[test]
fn closing_executes_held_requests() {
    let rig = Setup::direct().hold(100).start();
    let answer = rig.submit("a");
    assert!(rig.scheduler.drain(Instant::now() + LONG));
    wait(answer).expect("success");
}

#[test]
fn draining_drops_the_model() {
    let witness = Arc::new(());
    let held = witness.clone();
    let rig = Setup::direct().instances(2).on_create(move |_| {
        let _ = &held;
        Ok(())
    });
    let rig = rig.start();
    assert!(rig.scheduler.drain(Instant::now() + LONG));
    drop(rig);
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn a_dropped_scheduler_answers_its_requests() {
    let rig = Setup::direct().gated().start();
    let answers = [rig.submit("a"), rig.submit("b")];
    rig.permit(2);
    drop(rig.scheduler);
    all_succeed(answers);
}

#[test]
fn without_a_working_instance_requests_fail_until_one_is_restarted() {
    let is_broken = Arc::new(AtomicBool::new(false));
    let flag = is_broken.clone();
    let rig = Setup::direct()
        .gated()
        .on_create(move |_| match flag.load(Ordering::SeqCst) {
            true => Err(Error::internal("out of memory")),
            false => Ok(()),
        })
        .start();
    let panicking = rig.submit("panic");
    rig.next_start();
    let queued = rig.submit("queued");
    is_broken.store(true, Ordering::SeqCst);
    rig.permit(1);
    assert_eq!(wait(panicking).expect_err("failed").code(), Code::Internal);
    for error in [wait(queued), wait(rig.submit("new"))].map(|a| a.expect_err("failed")) {
        assert_eq!(error.code(), Code::Unavailable);
        let text = "model 'probe' has no working instance: out of memory";
        assert!(error.message().ends_with(text), "{error}");
    }
    let s = rig.statistics.snapshot();
    assert_eq!((s.failures[FailureReason::Other as usize], s.pending), (2, 0));
    is_broken.store(false, Ordering::SeqCst);
    rig.permit(1);
    eventually("the instance is restarted", || wait(rig.submit("again")).is_ok());
}

#[test]
fn a_broken_scheduler_can_be_closed() {
    let clock = ManualClock::new();
    let rig = Setup::direct()
        .by(&clock)
        .on_create(|n| if n > 0 { Err(Error::internal("it never starts again")) } else { Ok(()) })
        .start();
    wait(rig.submit("panic")).expect_err("failed");
    // The clock stands still, so the backoff does not delay it.
    assert!(rig.scheduler.drain(clock.now() + LONG));
}
