//! Watching an engine without models: its events, and how many may watch.

use std::task::Waker;

use galatea_engine::{BackendRegistry, EngineOptions};
use galatea_test_support::{eventually, eventually_some};

use super::*;

fn engine() -> Arc<Engine> {
    Engine::new(EngineOptions::default(), BackendRegistry::default())
}

fn poll(watcher: &mut Watcher) -> Poll<Option<Bytes>> {
    watcher.poll_next(&mut Context::from_waker(Waker::noop()))
}

/// The next event, or `None` at the end of them.
fn next(watcher: &mut Watcher) -> Option<String> {
    let event =
        eventually_some("there is an event or the events have ended", || match poll(watcher) {
            Poll::Ready(event) => Some(event),
            Poll::Pending => None,
        });
    event.map(|event| String::from_utf8(event.to_vec()).expect("text"))
}

#[test]
fn a_new_watcher_gets_the_state_and_then_changes() {
    let engine = engine();
    let sources = ConsoleSources { restricted: vec!["trace"], ..ConsoleSources::default() };
    let console = Console::of(Shared::new(&engine, sources, Duration::from_millis(300)));
    let mut first = console.watch().expect("room");
    let state = next(&mut first).expect("an event");
    assert!(state.starts_with("event: state\ndata: {\"sequence\":1,"), "{state}");
    assert!(state.ends_with("}\n\n") && state.contains("\"restricted\":[\"trace\"]"), "{state}");
    let mut second = console.watch().expect("room");
    let same = next(&mut second).expect("an event");
    let number = |event: &str| event.split([':', ',']).nth(3).map(str::to_owned);
    let change = next(&mut first).expect("an event");
    assert!(change.starts_with("event: change\ndata: {\"sequence\":2,"), "{change}");
    // The state of the second is one that the first has seen, or will see.
    let mut seen = vec![number(&state), number(&change)];
    while !seen.contains(&number(&same)) {
        seen.push(number(&next(&mut first).expect("an event")));
    }
}

#[test]
fn watchers_over_the_limit_are_refused_until_one_leaves() {
    let engine = engine();
    let console = Console::new(&engine, ConsoleSources::default());
    let mut watchers: Vec<_> = (0..MOST_WATCHERS).map(|_| console.watch().expect("room")).collect();
    let refused = console.watch().expect_err("no room").to_string();
    assert!(refused.starts_with("64 consoles are open"), "{refused}");
    watchers.pop();
    console.watch().expect("room again");
}

#[test]
fn a_watcher_that_does_not_read_is_disconnected_alone() {
    let mut hall = Watchers::default();
    let (slow, mut waiting) = mpsc::channel(MOST_WAITING);
    hall.present.push(slow);
    let (quick, mut read) = mpsc::channel(MOST_WAITING);
    hall.present.push(quick);
    for _ in 0..=MOST_WAITING {
        hall.send(&Bytes::from_static(b"x"));
        read.try_recv().expect("an event");
    }
    assert_eq!(hall.count(), 1);
    let mut watcher = Watcher({
        for _ in 0..MOST_WAITING {
            waiting.try_recv().expect("what had come before");
        }
        waiting
    });
    assert_eq!(next(&mut watcher), None);
}

#[test]
fn recording_stops_without_watchers_and_events_end_with_the_engine() {
    let console = {
        let engine = engine();
        let often = Duration::from_millis(20);
        let console = Console::of(Shared::new(&engine, ConsoleSources::default(), often));
        let mut watcher = console.watch().expect("room");
        next(&mut watcher).expect("an event");
        drop(watcher);
        eventually("the watcher is gone", || console.shared.hall.lock_unpoisoned().count() == 0);
        console
    };
    let mut watcher = console.watch().expect("room");
    assert_eq!(next(&mut watcher), None);
}

#[test]
fn a_later_watcher_gets_the_history_before_a_fault() {
    let time = galatea_types::ManualClock::new();
    let options = EngineOptions { clock: time.clock(), ..EngineOptions::default() };
    let engine = Engine::new(options, BackendRegistry::default());
    let console = Console::new(&engine, ConsoleSources::default());
    let ticks = |state: &str| {
        let history: serde_json::Value =
            serde_json::from_str(state.lines().nth(1)?.get(6..)?).ok()?;
        Some(history["history"]["times_ms"].as_array()?.len())
    };
    eventually("the history has a point, though nobody watched", || {
        time.advance(Duration::from_secs(5));
        let mut watcher = console.watch().expect("room");
        let state = next(&mut watcher).expect("an event");
        ticks(&state).expect("a history") > 1
    });
}

/// The requests that succeeded in each point of a model.
fn history_of(state: &str) -> Vec<u64> {
    let data = state.lines().nth(1).expect("data").strip_prefix("data: ").expect("data");
    let state: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let points = state["history"]["models"]["m/1"].as_array().cloned().unwrap_or_default();
    points.iter().map(|point| point[0].as_u64().unwrap_or(0)).collect()
}

#[test]
fn sent_changes_are_never_older_than_the_history() {
    let test = crate::testing::TestEngine::with(&["m"]);
    let (second, minutes) = (Duration::from_secs(1), Duration::from_secs(300));
    // Without a thread: the test says when what happens.
    let shared = Shared::new(&test.engine, ConsoleSources::default(), second);
    let mut watch = Sampling { sampler: None, next_at: test.time.now(), empty_looks: 0 };
    let mut history = History::new(test.time.clock());
    let mut state = |wait: Duration| {
        test.time.advance(wait);
        shared.step(&mut watch, &mut history, &test.engine);
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        shared.hall.lock_unpoisoned().newcomers.push(sender);
        shared.step(&mut watch, &mut history, &test.engine);
        history_of(&next(&mut Watcher(receiver)).expect("an event"))
    };
    test.work("m", 7, 0);
    assert_eq!(state(Duration::ZERO), [7]);
    test.work("m", 2, 0);
    // A point is taken while nobody watches, and before the sample of the one who did is forgotten.
    assert_eq!(state(Duration::from_secs(5)), [9, 0]);
    test.work("m", 1, 0);
    assert_eq!(state(second), [9, 1]);
    test.work("m", 1, 0);
    assert_eq!(state(minutes), [9, 2, 0]);
}
