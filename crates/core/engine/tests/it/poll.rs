//! Repositories that are looked at now and then: what is added, changed and removed.
#![allow(clippy::expect_used)] // a test may stop where it stands

use std::{fs, path::Path, sync::atomic::Ordering, time::Duration};

use galatea_engine::{
    ControlMode, EngineOptions, LoadOverrides, LocalRoot, PollOutcome, ReloadJitter,
};
use galatea_types::ManualClock;

use crate::fixture::{
    CONFIG, Fixture, add_model, ask, eventually, fixture, fixture_with, index, touch,
};

fn polling(fill: impl FnOnce(&Path)) -> Fixture {
    let f = fixture(ControlMode::Poll, &[], fill);
    f.engine.load_startup_models().expect("all load");
    f
}

/// Two looks, as the second finds what the first has seen.
fn look_twice(f: &Fixture) {
    f.engine.poll_repositories(true);
    assert_eq!(f.engine.poll_repositories(true), PollOutcome::Settled);
}

fn loads(f: &Fixture) -> u64 {
    f.backend.loads_begun.load(Ordering::SeqCst)
}

#[test]
fn models_are_loaded_and_unloaded_when_added_and_removed() {
    let f = polling(|root| {
        add_model(root, "m", &[1], CONFIG);
        add_model(root, "n", &[1], CONFIG);
    });
    look_twice(&f);
    assert_eq!((loads(&f), index(&f.engine)), (2, vec!["m:1:READY:".into(), "n:1:READY:".into()]));
    let refused = f.engine.load_model("m", LoadOverrides::default()).expect_err("mode poll");
    assert_eq!(
        refused.message(),
        "explicit model load / unload is not allowed if polling is enabled"
    );
    add_model(f.root.path(), "added", &[1], CONFIG);
    add_model(f.root.path(), "m", &[2], CONFIG);
    fs::remove_dir_all(f.root.path().join("n")).expect("removed");
    look_twice(&f);
    eventually("the rest is unloaded", || {
        index(&f.engine) == ["added:1:READY:", "m:1:UNAVAILABLE:unloaded", "m:2:READY:"]
    });
    assert!(f.engine.is_ready());
    let text =
        |version| f.engine.model("n", version).map(drop).expect_err("gone").message().to_owned();
    assert_eq!(text(None), "Request for unknown model: 'n' has no available versions");
    assert_eq!(text(Some(1)), "Request for unknown model: 'n' version 1 is not at ready state");
    assert_eq!(loads(&f), 4);
}

#[test]
fn instance_groups_change_without_a_reload() {
    let with = |count: u64| format!("{CONFIG} instance_group {{ count: {count} }}");
    let f = polling(|root| add_model(root, "m", &[1], &with(1)));
    ask(&f.engine, 1).expect("answered");
    for count in [3, 2] {
        add_model(f.root.path(), "m", &[1], &with(count));
        look_twice(&f);
        assert_eq!(f.backend.live_instances.lock().expect("no panic").len() as u64, count);
    }
    ask(&f.engine, 1).expect("answered");
    assert_eq!((loads(&f), f.backend.instances_made.load(Ordering::SeqCst)), (1, 3));
    let counted = f.engine.statistics(Some("m"), Some(1)).expect("statistics");
    assert_eq!(counted[0].statistics.inference_count, 2, "counts go on");
}

#[test]
fn a_version_that_is_still_being_copied_is_not_loaded() {
    let f = polling(|root| add_model(root, "m", &[1], CONFIG));
    let copied = f.root.path().join("m/2");
    fs::create_dir(&copied).expect("folder");
    for part in 1..5 {
        fs::write(copied.join("weights"), vec![0; part]).expect("written");
        assert_eq!(f.engine.poll_repositories(true), PollOutcome::Changing);
        assert_eq!(ask(&f.engine, 1).expect("an answer").model_version, 1);
    }
    assert_eq!(f.engine.poll_repositories(false), PollOutcome::Settled);
    assert_eq!(ask(&f.engine, 1).expect("an answer").model_version, 2);
    assert_eq!(loads(&f), 2);
}

#[test]
fn a_failed_change_keeps_the_ready_version_and_is_retried() {
    let f = polling(|root| add_model(root, "m", &[1], CONFIG));
    fs::write(f.root.path().join("m/1/fails_first"), "2").expect("file");
    look_twice(&f);
    let failed = || f.backend.failed_loads.load(Ordering::SeqCst);
    assert_eq!((failed(), f.engine.is_ready()), (1, true));
    ask(&f.engine, 1).expect("the old one is ready");
    f.engine.poll_repositories(false);
    assert_eq!(failed(), 1, "not at every look");
    f.engine.poll_repositories(true);
    assert_eq!(failed(), 2);
    f.engine.poll_repositories(true);
    assert_eq!((failed(), loads(&f)), (2, 2), "loaded in the end");
    fs::write(f.root.path().join("m/config.pbtxt"), "nonsense {").expect("file");
    look_twice(&f);
    ask(&f.engine, 1).expect("the old one is ready");
    assert_eq!(index(&f.engine), ["m:1:READY:"]);
    f.engine.poll_repositories(true);
    assert_eq!(loads(&f), 2);
}

#[test]
fn ensembles_follow_their_models() {
    let f = polling(|root| {
        add_model(root, "a", &[1], CONFIG);
        let step = "step { model_name: \"a\" model_version: -1 input_map { key: \"IN\" value: \"IN\" } \
                    output_map { key: \"OUT\" value: \"OUT\" } }";
        let tensors = CONFIG.replace("backend: \"copy\"", "platform: \"ensemble\"");
        add_model(root, "m", &[1], &format!("{tensors}\nensemble_scheduling {{ {step} }}"));
    });
    ask(&f.engine, 1).expect("an answer");
    touch(f.root.path(), "a");
    look_twice(&f);
    assert_eq!(loads(&f), 2);
    ask(&f.engine, 1).expect("on the new one");
    eventually("the old one is gone", || f.backend.live_models.load(Ordering::SeqCst) == 1);
    fs::rename(f.root.path().join("a"), f.root.path().join("b")).expect("renamed");
    f.engine.poll_repositories(true);
    eventually("unloaded", || !index(&f.engine).iter().any(|row| row.starts_with("a:")));
    ask(&f.engine, 1).expect_err("nothing to run on");
    fs::rename(f.root.path().join("b"), f.root.path().join("a")).expect("renamed");
    look_twice(&f);
    ask(&f.engine, 1).expect("it is back");
}

#[test]
fn a_duplicate_name_is_unloaded_and_a_missing_repository_keeps_its_models() {
    let other = tempfile::tempdir().expect("folder");
    add_model(other.path(), "n", &[1], CONFIG);
    let options = EngineOptions {
        control_mode: ControlMode::Poll,
        repositories: vec![LocalRoot::at(other.path())],
        ..EngineOptions::default()
    };
    let f = fixture_with(options, |root| add_model(root, "m", &[1], CONFIG));
    f.engine.load_startup_models().expect("all load");
    add_model(other.path(), "m", &[1], CONFIG);
    look_twice(&f);
    let twice = "m:-:UNAVAILABLE:model appears in two or more repositories";
    eventually("unloaded", || index(&f.engine) == [twice, "n:1:READY:"]);
    ask(&f.engine, 1).expect_err("which one?");
    fs::remove_dir_all(other.path().join("m")).expect("removed");
    look_twice(&f);
    ask(&f.engine, 1).expect("there is one again");
    let away = other.path().with_extension("away");
    fs::rename(other.path(), &away).expect("renamed");
    look_twice(&f);
    assert_eq!(index(&f.engine), ["m:1:READY:", "n:1:READY:"]);
    fs::rename(&away, other.path()).expect("renamed");
}

/// Servers with one repository and one clock that load changes within a minute.
fn fleet(clock: &ManualClock) -> Vec<Fixture> {
    let mut fleet: Vec<Fixture> = Vec::new();
    for seed in 1..=3 {
        let options = EngineOptions {
            control_mode: ControlMode::Poll,
            repositories: fleet
                .first()
                .map(|f| LocalRoot::at(f.root.path()) as _)
                .into_iter()
                .collect(),
            reload_jitter: ReloadJitter { longest: Duration::from_secs(60), seed },
            clock: clock.clock(),
            ..EngineOptions::default()
        };
        let is_first = fleet.is_empty();
        let f = fixture_with(options, |root| {
            if is_first {
                add_model(root, "m", &[1], CONFIG);
            }
        });
        f.engine.load_startup_models().expect("loaded");
        fleet.push(f);
    }
    fleet
}

#[test]
fn servers_of_one_repository_load_a_change_one_after_the_other() {
    let clock = ManualClock::new();
    let (fleet, start) = (fleet(&clock), clock.now());
    assert!(fleet.iter().all(|f| loads(f) == 1), "the start does not wait");
    add_model(fleet[0].root.path(), "m", &[2], CONFIG);
    for f in &fleet {
        assert_eq!(f.engine.poll_repositories(true), PollOutcome::Changing);
    }
    let mut waits: Vec<_> = fleet
        .iter()
        .map(|f| match f.engine.poll_repositories(false) {
            PollOutcome::Waiting(left) => (left, f),
            other => panic!("{other:?}"),
        })
        .collect();
    waits.sort_by_key(|(left, _)| *left);
    for (number, (left, f)) in waits.iter().enumerate() {
        clock.set(start + *left - Duration::from_millis(1));
        assert!(matches!(f.engine.poll_repositories(true), PollOutcome::Waiting(_)));
        assert_eq!(ask(&f.engine, 1).expect("an answer").model_version, 1);
        clock.set(start + *left);
        for (_, other) in &waits {
            other.engine.poll_repositories(false);
        }
        let loaded = waits.iter().filter(|(_, f)| loads(f) == 2).count();
        assert_eq!(loaded, number + 1, "one server at a time");
        for (place, (_, f)) in waits.iter().enumerate() {
            let version = ask(&f.engine, 1).expect("an answer").model_version;
            assert_eq!(version, if place <= number { 2 } else { 1 });
        }
        assert_eq!(f.engine.poll_repositories(true), PollOutcome::Settled);
    }
    assert!(waits.iter().all(|(left, _)| *left < Duration::from_secs(60)));
}
