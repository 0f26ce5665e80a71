//! Every request that is observed gives its observer its timeline, once, however the request ends.

use galatea_scheduler::Scheduler;
use galatea_types::{RequestContext, Timeline};

use crate::probe::{Rig, Setup, TraceLog, named, wait};

fn is_ascending(timeline: &Timeline) -> bool {
    let instants = [
        Some(timeline.received),
        timeline.queued,
        timeline.compute_start,
        timeline.input_done,
        timeline.output_start,
        timeline.end,
    ];
    instants.iter().flatten().is_sorted()
}

#[track_caller]
fn trace_of(rig: &Rig, id: &str) -> Timeline {
    let noted = TraceLog::default();
    // Whether it succeeds is tested elsewhere.
    let _ = wait(rig.submit_in(named(id, 1), noted.context()));
    noted.only()
}

#[test]
fn executed_requests_are_traced_with_any_result() {
    let rig = Setup::direct().start();
    for id in ["a", "fail", "cancel", "mute", "panic"] {
        let timeline = trace_of(&rig, id);
        assert!(is_ascending(&timeline), "{id}: {timeline:?}");
        assert!(timeline.queued.is_some() && timeline.compute_start.is_some(), "{id}");
        assert!(timeline.end.is_some(), "{id}");
    }
}

#[test]
fn streams_are_traced_at_their_end() {
    let rig = Setup::direct().decoupled().start();
    let noted = TraceLog::default();
    let answer = rig.submit_in(named("stream", 1), noted.context());
    let mut sender = rig.next_stream();
    sender.mark_input_done();
    assert_eq!(noted.count(), 0, "it has not ended");
    sender.finish(Some(Ok(Default::default())));
    wait(answer).expect("success");
    let timeline = noted.only();
    assert!(is_ascending(&timeline) && timeline.input_done.is_some(), "{timeline:?}");
}

#[test]
fn requests_that_are_not_executed_are_traced() {
    let rig = Setup::direct().gated().start();
    let first = rig.submit("first");
    rig.next_start();
    let (noted, cancelled) = (TraceLog::default(), RequestContext::new().cancellation);
    let context = RequestContext { cancellation: cancelled.clone(), ..noted.context() };
    let skipped = rig.submit_in(named("skipped", 1), context);
    cancelled.cancel();
    rig.permit(2);
    wait(first).expect("success");
    wait(skipped).expect_err("cancelled");
    let timeline = noted.only();
    assert!(timeline.compute_start.is_none() && timeline.end.is_some(), "{timeline:?}");

    rig.scheduler.close();
    let refused = TraceLog::default();
    wait(rig.submit_in(named("late", 1), refused.context())).expect_err("refused");
    assert!(refused.only().end.is_some());
}
