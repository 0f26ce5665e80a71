//! Instances that are handed the next requests while they execute one.

use std::{sync::atomic::Ordering, thread, time::Instant};

use galatea_scheduler::Scheduler;
use galatea_telemetry::FailureReason;
use galatea_types::Responder;

use crate::{
    pipe::Rig,
    probe::{LONG, TraceLog, all_succeed, named, submit, submit_in, wait},
};

#[test]
fn a_prefetched_request_still_counts_as_pending() {
    let rig = Rig::start(1);
    let (first, [b]) = rig.with_waiting(["b"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin a"]);
    assert_eq!(rig.pending(), 1, "it is not executed yet");
    let (trace, (responder, c)) = (TraceLog::default(), Responder::unary());
    submit_in(&rig.scheduler, named("c", 1), trace.context(), responder);
    assert_eq!(rig.pending(), 2);
    rig.permit(&["a"]);
    assert_eq!([rig.next(), rig.next()], ["ahead c", "begin b"]);
    assert_eq!(rig.pending(), 1);
    let b_ends = Instant::now();
    rig.permit(&["b", "c"]);
    all_succeed(first);
    all_succeed([b, c]);
    let timeline = trace.only();
    assert!(timeline.compute_start.is_some_and(|start| start >= b_ends), "it waited until then");
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.execution_count, s.inference_count, s.pending), (4, 4, 4, 0));
    assert_eq!(s.batches.keys().collect::<Vec<_>>(), [&1]);
}

#[test]
fn requests_prefetched_by_a_failing_instance_do_not_fail() {
    let rig = Rig::start(1);
    let (mut first, [b]) = rig.with_waiting_behind("end", ["b"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin end"]);
    rig.permit_all();
    wait(first.remove(1)).expect_err("it ended with that");
    all_succeed(first);
    wait(b).expect("it had not begun");
}

#[test]
fn no_request_is_prefetched_while_an_instance_is_free() {
    let rig = Rig::start(2);
    let long = rig.submit("long");
    assert_eq!(rig.next(), "begin long");
    for id in ["a", "b", "c"] {
        let answer = rig.submit(id);
        assert_eq!(rig.next(), format!("begin {id}"));
        rig.permit(&[id]);
        wait(answer).expect("it does not wait behind the long one");
    }
    rig.permit_all();
    wait(long).expect("success");
}

#[test]
fn a_free_instance_takes_over_requests_prefetched_by_another() {
    let rig = Rig::start(2);
    let [x, y] = rig.begin_two();
    let [a, b] = ["a", "b"].map(|id| rig.submit(id));
    rig.permit(&["x"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin a"]);
    rig.permit(&["y"]);
    assert_eq!(rig.next(), "begin b", "by the other instance");
    assert_eq!(rig.pending(), 0);
    rig.permit(&["b"]);
    all_succeed([x, y, b]);
    assert_eq!(rig.statistics.snapshot().success.count, 3, "a is still executed");
    rig.permit(&["a"]);
    wait(a).expect("success");
}

#[test]
fn several_prefetched_requests_begin_in_order() {
    let rig = Rig::start_deep(1, 3);
    let (first, rest) = rig.with_waiting(["b", "c", "d", "e"]);
    assert_eq!([rig.next(), rig.next(), rig.next()], ["ahead b", "ahead c", "ahead d"]);
    assert_eq!(rig.next(), "begin a");
    assert_eq!(rig.pending(), 4, "none of them is executed yet");
    rig.permit(&["a"]);
    assert_eq!([rig.next(), rig.next()], ["ahead e", "begin b"]);
    assert_eq!(rig.pending(), 3);
    rig.permit_all();
    assert_eq!([rig.next(), rig.next(), rig.next()], ["begin c", "begin d", "begin e"]);
    all_succeed(first);
    all_succeed(rest);
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.execution_count, s.pending), (6, 6, 0));
}

/// The instance begins them one by one, first in first out.
#[test]
fn all_prefetched_requests_go_to_a_free_instance() {
    let rig = Rig::start_deep(2, 3);
    let [x, y] = rig.begin_two();
    let ids = ["a", "b", "c", "d", "e", "f"];
    let answers = ids.map(|id| rig.submit(id));
    rig.permit(&["x"]);
    assert_eq!(
        [rig.next(), rig.next(), rig.next(), rig.next()],
        ["ahead b", "ahead c", "ahead d", "begin a"]
    );
    rig.permit(&["y", "e", "f"]);
    let begun: Vec<_> = (0..3).map(|_| rig.next_begun()).collect();
    assert_eq!(begun, ["begin e", "begin f", "begin b"], "and not after a");
    for (permitted, waiting, next) in [("b", 2, "begin c"), ("c", 1, "begin d")] {
        assert_eq!(rig.pending(), waiting);
        rig.permit(&[permitted]);
        assert_eq!(rig.next_begun(), next);
    }
    rig.permit_all();
    all_succeed([x, y]);
    all_succeed(answers);
}

/// The first request that cannot be prefetched is the first to be executed.
#[test]
fn no_request_overtakes_one_that_cannot_be_prefetched() {
    let rig = Rig::start_deep(1, 3);
    let (first, rest) = rig.with_waiting(["full", "b", "c"]);
    assert_eq!(rig.next(), "begin a");
    assert_eq!(rig.pending(), 3);
    rig.permit(&["a"]);
    assert_eq!([rig.next(), rig.next(), rig.next()], ["ahead b", "ahead c", "begin full"]);
    rig.permit_all();
    all_succeed(first);
    all_succeed(rest);
}

/// The other instance always prefetches the next request before it is free.
#[test]
fn requests_behind_a_long_one_are_not_overtaken_without_bound() {
    let rig = Rig::start(2);
    let first = rig.begin_two();
    let ids = ["0", "1", "a", "b", "2", "3", "4", "5", "6", "7", "8", "9"];
    let others = ids.map(|id| rig.submit(id));
    rig.permit(&["y"]);
    assert_eq!([rig.next(), rig.next()], ["ahead 1", "begin 0"]);
    rig.permit(&["x"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin a"]);
    rig.permit(&["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    let mut begun = std::iter::repeat_with(|| rig.next_begun());
    let place = begun.position(|event| event == "begin b").expect("it is begun");
    assert!((2..=6).contains(&place), "begun as number {place}");
    rig.permit_all();
    all_succeed(first);
    all_succeed(others);
}

#[test]
fn abandoned_requests_are_not_executed() {
    let rig = Rig::start(1);
    let (first, [b]) = rig.with_waiting(["b"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin a"]);
    let (c, d) = (rig.submit("c"), rig.submit("d"));
    drop(b);
    assert_eq!(rig.scheduler.release_abandoned(), 1);
    assert_eq!(rig.pending(), 2);
    drop(c);
    rig.permit(&["a"]);
    assert_eq!(rig.next(), "begin d", "not c");
    rig.permit(&["d"]);
    all_succeed(first);
    wait(d).expect("success");
    let s = rig.statistics.snapshot();
    assert_eq!((s.failures[FailureReason::Canceled as usize], s.pending), (2, 0));
}

#[test]
fn a_panic_fails_only_requests_that_were_begun() {
    let rig = Rig::start(1);
    let first = rig.submit("first");
    assert_eq!(rig.next(), "begin first");
    let [panicking, b, c] = ["panic", "b", "c"].map(|id| rig.submit(id));
    rig.permit(&["first"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin panic"]);
    rig.permit(&["panic"]);
    let error = wait(panicking).expect_err("failed");
    assert!(error.message().contains("failed unexpectedly while executing"), "{error}");
    assert_eq!([rig.next(), rig.next()], ["ahead c", "begin b"], "in another instance");
    rig.permit_all();
    all_succeed([first, b, c]);
    let s = rig.statistics.snapshot();
    let failed = s.failures[FailureReason::Backend as usize];
    assert_eq!((s.success.count, failed, s.pending), (3, 1, 0));
}

#[test]
fn a_request_that_cannot_be_prefetched_is_executed_next() {
    let rig = Rig::start(1);
    let (first, [full, b]) = rig.with_waiting(["full", "b"]);
    assert_eq!(rig.next(), "begin a");
    assert_eq!(rig.pending(), 2);
    rig.permit(&["a"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin full"]);
    rig.permit_all();
    all_succeed(first);
    all_succeed([full, b]);
}

#[test]
fn a_request_that_cannot_be_sent_is_answered_once() {
    let rig = Rig::start(1);
    let (first, [bad, b]) = rig.with_waiting(["bad", "b"]);
    assert_eq!(rig.next(), "begin a");
    assert_eq!(wait(bad).expect_err("bad").message(), "cannot be sent");
    assert_eq!(rig.pending(), 1);
    rig.permit_all();
    all_succeed(first);
    wait(b).expect("success");
    assert_eq!(rig.statistics.snapshot().fail.count, 1);
}

#[test]
fn failures_stay_with_their_request() {
    let rig = Rig::start(1);
    let first = rig.submit("first");
    assert_eq!(rig.next(), "begin first");
    let traced = ["mute", "fail", "b"].map(|id| {
        let (trace, (responder, answer)) = (TraceLog::default(), Responder::unary());
        submit_in(&rig.scheduler, named(id, 1), trace.context(), responder);
        (trace, answer)
    });
    let traces = traced.each_ref().map(|(trace, _)| trace.clone());
    let [mute, failing, fine] = traced.map(|(_, answer)| answer);
    rig.permit_all();
    all_succeed([first, fine]);
    assert!(wait(mute).expect_err("failed").message().contains("gave no response"));
    assert_eq!(wait(failing).expect_err("failed").message(), "asked to fail");
    assert_eq!(rig.statistics.snapshot().fail.count, 2);
    assert!(traces.iter().all(|trace| trace.only().end.is_some()));
}

#[test]
fn every_request_is_executed_and_answered_once() {
    const SUBMITTERS: usize = 6;
    const REQUESTS: usize = 300;
    for instances in [1, 3] {
        let rig = Rig::start(instances);
        rig.permit_all();
        thread::scope(|scope| {
            for submitter in 0..SUBMITTERS {
                let rig = (&rig.scheduler, submitter);
                scope.spawn(move || {
                    let (scheduler, submitter) = rig;
                    let submit = |id: &str| {
                        let (responder, answer) = Responder::unary();
                        submit(scheduler, named(id, 1), responder);
                        (id.to_owned(), answer)
                    };
                    for n in 0..REQUESTS / 3 {
                        let ids = [0, 1, 2].map(|i| format!("{submitter}-{n}-{i}"));
                        let answers = ids.map(|id| submit(&id));
                        for (id, answer) in answers {
                            assert_eq!(wait(answer).expect("success").id, id);
                        }
                    }
                });
            }
        });
        assert!(rig.scheduler.drain(Instant::now() + LONG));
        assert_eq!(rig.stage.executed.load(Ordering::SeqCst), SUBMITTERS * REQUESTS);
        let s = rig.statistics.snapshot();
        assert_eq!(s.success.count, (SUBMITTERS * REQUESTS) as u64);
        assert_eq!((s.execution_count, s.pending), (s.success.count, 0));
        assert_eq!(rig.scheduler.in_flight(), 0);
    }
}
