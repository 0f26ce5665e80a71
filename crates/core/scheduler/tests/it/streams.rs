//! Decoupled models: requests answered any number of times, also after their execution.

use std::{
    thread,
    time::{Duration, Instant},
};

use galatea_backend::testing::ResponseStream;
use galatea_scheduler::Scheduler as _;
use galatea_telemetry::FailureReason;
use galatea_test_support::eventually;
use galatea_types::{Error, RequestContext, Response};

use crate::probe::{LONG, Rig, Setup, named, wait};

fn streaming() -> Rig {
    Setup::direct().decoupled().start()
}

#[track_caller]
fn next(stream: &mut ResponseStream) -> Response {
    stream.blocking_recv().expect("a stream ends with a final response")
}

/// Number of responses with a body, and the last error, up to the end.
fn collect(mut stream: ResponseStream) -> (usize, Option<Error>) {
    let (mut count, mut error) = (0, None);
    loop {
        let response = next(&mut stream);
        if let Some(result) = response.result {
            count += 1;
            error = result.err().or(error);
        }
        if response.is_final {
            assert!(stream.blocking_recv().is_none(), "nothing follows the final response");
            return (count, error);
        }
    }
}

#[test]
fn a_stream_is_counted_once_before_its_last_response() {
    let rig = streaming();
    let mut stream = rig.submit_stream("stream");
    let mut sender = rig.next_stream();
    eventually("one execution is counted", || rig.statistics.snapshot().execution_count == 1);
    let s = rig.statistics.snapshot();
    assert_eq!((s.inference_count, s.success.count, s.pending), (1, 0, 0));
    sender.send(Ok(Default::default()));
    sender.send(Ok(Default::default()));
    assert!(!next(&mut stream).is_final && !next(&mut stream).is_final);
    assert_eq!(rig.scheduler.in_flight(), 1);
    sender.finish(None);
    let last = next(&mut stream);
    assert!(last.is_final && last.result.is_none());
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.inference_count, s.execution_count), (1, 1, 1));
    let counts = [s.queue, s.compute_input, s.compute_infer, s.compute_output].map(|c| c.count);
    assert_eq!(counts, [1; 4]);
    assert!(s.success.ns >= s.queue.ns + s.compute_infer.ns);
    eventually("nothing is in flight", || rig.scheduler.in_flight() == 0);
}

#[test]
fn a_stream_that_ends_during_its_execution_is_counted_at_once() {
    let rig = Setup::dynamic("").decoupled().hold(2).start();
    let streams = [rig.submit_stream("short stream"), rig.submit_stream("short stream")];
    for (index, stream) in (1..).zip(streams) {
        assert_eq!(collect(stream).0, 1);
        let s = rig.statistics.snapshot();
        assert!(s.success.count >= index);
        assert_eq!((s.execution_count, s.inference_count), (1, 2));
    }
    assert_eq!(rig.statistics.snapshot().batches.keys().collect::<Vec<_>>(), [&2]);
}

#[test]
fn streams_and_single_responses_share_a_batch() {
    let rig = Setup::dynamic("").decoupled().hold(3).start();
    let stream = rig.submit_stream("stream");
    let (single, failing) = (rig.submit("a"), rig.submit("fail"));
    wait(single).expect("success");
    wait(failing).expect_err("failure");
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.inference_count, s.execution_count), (1, 2, 1));
    assert_eq!((s.fail.count, s.compute_infer.count), (1, 1));
    rig.next_stream().finish(Some(Ok(Default::default())));
    assert_eq!(collect(stream).0, 1);
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.inference_count, s.execution_count), (2, 2, 1));
}

#[test]
fn an_error_makes_the_stream_a_failure() {
    let rig = streaming();
    let errors = [
        (Error::internal("it broke"), FailureReason::Backend),
        (Error::cancelled("it was cancelled"), FailureReason::Canceled),
    ];
    for (error, reason) in errors {
        let stream = rig.submit_stream("stream");
        let mut sender = rig.next_stream();
        sender.send(Ok(Default::default()));
        sender.send(Err(error.clone()));
        sender.finish(None);
        let (count, last_error) = collect(stream);
        assert_eq!((count, last_error.expect("an error").message()), (2, error.message()));
        assert_eq!(rig.statistics.snapshot().failures[reason as usize], 1);
    }
    // The execution of what failed first counts when it returns.
    eventually("two executions are counted", || rig.statistics.snapshot().execution_count == 2);
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.fail.count, s.inference_count), (0, 2, 2));
}

#[test]
fn streams_of_a_failed_execution_are_no_inferences() {
    let rig = streaming();
    assert!(collect(rig.submit_stream("failed stream")).1.is_some());
    eventually("one execution is counted", || rig.statistics.snapshot().execution_count == 1);
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.fail.count, s.inference_count), (0, 1, 0));
}

#[test]
fn an_abandoned_stream_sender_ends_the_stream_with_an_error() {
    let rig = streaming();
    let stream = rig.submit_stream("stream");
    drop(rig.next_stream());
    assert!(collect(stream).1.is_some());
    eventually("nothing is in flight", || rig.scheduler.in_flight() == 0);
    assert_eq!(rig.statistics.snapshot().fail.count, 1);
}

#[test]
fn draining_waits_for_streams_and_keeps_their_instance() {
    let rig = Setup::direct().decoupled().instances(2).start();
    let stream = rig.submit_stream("stream");
    let mut sender = rig.next_stream();
    assert!(!rig.scheduler.drain(Instant::now()));
    // The other instance has had every opportunity to go.
    assert!(!rig.scheduler.drain(Instant::now() + Duration::from_millis(5)));
    assert!(!rig.has_dropped_any());
    sender.send(Ok(Default::default()));
    sender.finish(None);
    assert!(rig.scheduler.drain(Instant::now() + LONG));
    rig.next_drop();
    rig.next_drop();
    assert_eq!(collect(stream).0, 1);
}

#[test]
fn an_alarm_ends_the_wait_for_streams_of_a_failed_instance() {
    let rig = streaming();
    let stream = rig.submit_stream("stream");
    let sender = rig.next_stream();
    rig.scheduler.close();
    rig.next_made().alarm();
    rig.next_drop();
    assert!(!rig.scheduler.drain(Instant::now()), "the stream is still open");
    drop(sender);
    assert!(rig.scheduler.drain(Instant::now() + LONG));
    assert!(collect(stream).1.is_some());
}

#[test]
fn a_panic_does_not_end_streams_kept_elsewhere() {
    let rig = Setup::dynamic("").decoupled().hold(2).start();
    let stream = rig.submit_stream("stream");
    let panicking = rig.submit("panic");
    wait(panicking).expect_err("failure");
    let mut sender = rig.next_stream();
    sender.send(Ok(Default::default()));
    sender.finish(None);
    assert_eq!(collect(stream).0, 1);
    wait(rig.submit("a")).expect("success");
    eventually("nothing is in flight", || rig.scheduler.in_flight() == 0);
}

#[test]
fn streams_keep_their_order_of_arrival() {
    let rig = Setup::dynamic("preferred_batch_size: 1 preserve_ordering: true").decoupled().start();
    let mut streams = ["stream", "stream"].map(|id| rig.submit_stream(id));
    let single = rig.submit("a");
    let [mut first, mut second] = [rig.next_stream(), rig.next_stream()];
    second.send(Ok(Default::default()));
    first.send(Ok(Default::default()));
    assert!(!next(&mut streams[0]).is_final, "the first streams");
    second.send(Ok(Default::default()));
    eventually("two are in flight", || rig.scheduler.in_flight() == 2);
    assert!(streams[1].try_recv().is_err(), "the second waits for the first");
    first.finish(None);
    assert!(next(&mut streams[0]).is_final);
    assert!(!next(&mut streams[1]).is_final && !next(&mut streams[1]).is_final);
    drop(second);
    assert!(next(&mut streams[1]).is_final);
    wait(single).expect("success");
}

#[test]
fn requests_cancelled_while_queued_are_not_streamed() {
    let rig = Setup::direct().decoupled().gated().start();
    let first = rig.submit("a");
    rig.next_start();
    let context = RequestContext::new();
    context.cancellation.cancel();
    let cancelled = rig.submit_in(named("stream", 1), context);
    rig.permit(1);
    wait(first).expect("success");
    wait(cancelled).expect_err("cancelled");
    let s = rig.statistics.snapshot();
    assert_eq!(s.failures[FailureReason::Canceled as usize], 1);
}

/// Another thread ends streams before, while and after their execution returns.
#[test]
fn many_concurrent_streams_are_complete() {
    const REQUESTS: u64 = 400;
    const SUBMITTERS: u64 = 4;
    for setup in [Setup::direct(), Setup::dynamic("preserve_ordering: true")] {
        let rig = setup.decoupled().instances(2).start();
        thread::scope(|scope| {
            let rig = &rig;
            for submitter in 0..SUBMITTERS {
                scope.spawn(move || {
                    for n in 0..REQUESTS {
                        let ids = ["stream", "short stream", "a", "stream"];
                        let id = ids[usize::try_from((n + submitter) % 4).expect("small")];
                        let (count, error) = collect(rig.submit_stream(id));
                        assert!(error.is_none() && count == 1, "{id}");
                    }
                });
            }
            scope.spawn(move || {
                for _ in 0..SUBMITTERS * REQUESTS / 2 {
                    rig.next_stream().finish(Some(Ok(Default::default())));
                }
            });
        });
        assert!(rig.scheduler.drain(Instant::now() + LONG));
        let s = rig.statistics.snapshot();
        assert_eq!(s.success.count, SUBMITTERS * REQUESTS);
        assert_eq!((s.inference_count, s.compute_infer.count), (s.success.count, s.success.count));
        let in_batches: u64 = s.batches.iter().map(|(size, b)| size * b.compute_infer.count).sum();
        assert_eq!((in_batches, s.pending), (s.inference_count, 0));
        assert_eq!(rig.scheduler.in_flight(), 0);
    }
}
