//! What the log has of requests that failed: one line each, and few lines of a model that keeps failing.

use std::sync::{Mutex, Once};

use log::{LevelFilter, Log, Metadata, Record};

use crate::probe::{Setup, wait};

/// Keeps every line that is logged in this process.
struct Kept(Mutex<Vec<String>>);

static KEPT: Kept = Kept(Mutex::new(Vec::new()));

impl Log for Kept {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let line = format!("{}: {}", record.level(), record.args());
        self.0.lock().expect("no panic").push(line);
    }

    fn flush(&self) {}
}

/// Lines about a model of this name, which no other test has.
fn lines_about(model: &str) -> Vec<String> {
    let lines = KEPT.0.lock().expect("no panic");
    let name = format!("'{model}'");
    lines.iter().filter(|line| line.contains(&name)).cloned().collect()
}

/// A scheduler whose model has this name.
fn named(setup: Setup, model: &str) -> crate::probe::Rig {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        log::set_logger(&KEPT).expect("no other logger");
        log::set_max_level(LevelFilter::Info);
    });
    let model = model.to_owned();
    setup.changed(move |raw| raw.name = model).start()
}

#[test]
fn a_failed_request_is_logged_once_with_its_causes() {
    let rig = named(Setup::direct(), "failing");
    wait(rig.submit("a")).expect("success");
    wait(rig.submit("cancel")).expect_err("failed");
    wait(rig.submit("fail with cause")).expect_err("failed");
    assert_eq!(
        lines_about("failing"),
        ["ERROR: model 'failing' version 3, request id fail with cause: Internal: asked to fail: \
          the cause"]
    );
}

#[test]
fn a_failed_stream_is_logged_once() {
    let rig = named(Setup::direct().decoupled(), "failing_stream");
    let _stream = rig.submit_stream("stream");
    let mut sender = rig.next_stream();
    sender.send(Err(galatea_types::Error::unknown("first")));
    sender.finish(Some(Err(galatea_types::Error::internal("second"))));
    assert_eq!(
        lines_about("failing_stream"),
        ["ERROR: model 'failing_stream' version 3, request id stream: Unknown: first"]
    );
}

#[test]
fn a_refused_request_is_not_logged() {
    use galatea_scheduler::Scheduler as _;
    let rig = named(Setup::direct(), "refusing");
    rig.scheduler.close();
    rig.submit_refused("late");
    assert!(lines_about("refusing").is_empty());
}

#[test]
fn a_model_that_keeps_failing_does_not_flood_the_log() {
    let rig = named(Setup::direct(), "flooding");
    for _ in 0..1000 {
        wait(rig.submit("fail")).expect_err("failed");
    }
    let lines = lines_about("flooding").len();
    assert!((10..500).contains(&lines), "{lines} lines");
}
