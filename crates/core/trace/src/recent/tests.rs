//! The last traces of each model: which are kept, what they hold, and how much.

use std::sync::Arc;

use super::*;
use crate::{request_trace::Event, trace_memory::TraceMemory};

fn request(id: u64, parent_id: u64, model: Option<&str>) -> RequestTrace {
    let event = |(name, ns)| Event { name, ns };
    let events = [("HTTP_RECV_START", 10), ("REQUEST_START", 20), ("REQUEST_END", 90)];
    RequestTrace {
        id,
        parent_id,
        model: model.map(Arc::from),
        version: 3,
        request_id: format!("r{id}"),
        events: events.map(event).into_iter().collect(),
        ..RequestTrace::default()
    }
}

fn ids(recent: &RecentTraces, model: &str) -> Vec<u64> {
    recent.of_model(model).iter().map(|trace| trace.tree().rows[0].id).collect()
}

#[test]
fn the_last_traces_of_a_model_are_kept_the_newest_first() {
    let (recent, memory) = (RecentTraces::default(), TraceMemory::default());
    for id in 1..=25 {
        recent.keep("m", &[request(id, 0, Some("m"))], memory.hold());
    }
    recent.keep("other", &[request(99, 0, Some("other"))], memory.hold());
    assert_eq!(ids(&recent, "m"), (6..=25).rev().collect::<Vec<u64>>());
    assert_eq!((ids(&recent, "other"), ids(&recent, "none")), (vec![99], vec![]));
    assert_eq!(recent.count(), 26);
    let kept = recent.kept.lock_unpoisoned();
    assert_eq!((kept.traces.len(), kept.bytes), (21, memory.used()));
}

#[test]
fn a_trace_is_shown_with_every_model_that_it_passed() {
    let (recent, memory) = (RecentTraces::default(), TraceMemory::default());
    let requests = [
        request(1, 0, Some("chain")),
        request(2, 1, Some("step")),
        request(3, 2, Some("called")),
        request(4, 1, Some("step")),
    ];
    recent.keep("chain", &requests, memory.hold());
    for model in ["chain", "step", "called"] {
        let [trace] = &recent.of_model(model)[..] else { panic!("{model}") };
        let tree = trace.tree();
        let rows: Vec<_> = tree.rows.iter().map(|row| (row.id, row.depth)).collect();
        assert_eq!(rows, [(1, 0), (2, 1), (3, 2), (4, 1)]);
        assert_eq!(tree.rows[1].model.as_deref(), Some("step"));
        assert_eq!(tree.rows[1].version.as_deref(), Some("3"));
        assert_eq!((tree.rows[0].protocol, tree.rows[0].outcome), (Some("HTTP"), "no response"));
        assert_eq!(tree.rows[1].outcome, "ended");
    }
    // Twenty traces of a step push the old one out of its list only.
    for id in 10..30 {
        recent.keep("step", &[request(id, 0, Some("step"))], memory.hold());
    }
    assert_eq!((ids(&recent, "step").len(), ids(&recent, "called")), (20, vec![1]));
    assert_eq!(ids(&recent, "step")[19], 10);
}

#[test]
fn a_refused_request_is_one_of_the_model_that_it_asked_for() {
    let (recent, memory) = (RecentTraces::default(), TraceMemory::default());
    let mut refused = request(1, 0, None);
    refused.events.truncate(1);
    recent.keep("m", &[refused], memory.hold());
    let failed = RequestTrace { is_failed: true, ..request(2, 0, Some("m")) };
    recent.keep("m", &[failed], memory.hold());
    let outcomes: Vec<_> =
        recent.of_model("m").iter().map(|trace| trace.tree().rows[0].outcome).collect();
    assert_eq!(outcomes, ["failed", "not queued"]);
}

#[test]
fn the_requests_of_a_trace_and_their_ids_are_bounded() {
    let (recent, memory) = (RecentTraces::default(), TraceMemory::default());
    let mut requests: Vec<_> = (1..=150).map(|id| request(id, 1, Some("m"))).collect();
    requests[0].parent_id = 0;
    requests[0].request_id = "é".repeat(1 << 20);
    recent.keep("m", &requests, memory.hold());
    assert!(memory.used() < 80 << 10, "{}", memory.used());
    let tree = recent.of_model("m")[0].tree();
    assert_eq!((tree.rows.len(), tree.omitted_count), (100, 50));
    let id = tree.rows[0].request_id.as_deref().expect("an id");
    assert!(id.len() <= MOST_ID && id.starts_with('é') && id.ends_with('…'));
}

#[test]
fn all_traces_together_are_bounded_and_the_oldest_leave() {
    let (recent, memory) = (RecentTraces::default(), TraceMemory::default());
    let many: Vec<_> = (1..=100).map(|id| request(id, 0, None)).collect();
    for number in 0..400 {
        let model = format!("model-{number}");
        recent.keep(&model, &many, memory.hold());
        assert!(memory.used() <= MOST_BYTES);
    }
    let kept = recent.kept.lock_unpoisoned();
    assert!(kept.traces.len() > 20 && kept.traces.len() < 400, "{}", kept.traces.len());
    assert!(kept.traces.contains_key(&399) && !kept.traces.contains_key(&0));
    assert_eq!(kept.bytes, memory.used());
    drop(kept);
    let mut others = memory.hold();
    assert!(others.try_grow(crate::trace_memory::MOST - memory.used()));
    recent.keep("late", &[request(1, 0, Some("late"))], memory.hold());
    assert!(ids(&recent, "late").is_empty(), "there is no room");
    drop((recent, others));
    assert_eq!(memory.used(), 0);
}
