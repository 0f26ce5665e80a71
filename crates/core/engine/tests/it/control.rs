//! Loads, unloads and questions by clients that do not wait on a thread of their own.
#![allow(clippy::expect_used)] // a test may stop where it stands

use std::{
    fs,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use galatea_engine::LoadOverrides;
use galatea_types::Code;

use crate::fixture::{CONFIG, Fixture, add_model, ask, eventually, explicit, index, touch, wait};

/// `m`, whose load waits for the gate, and `n`, which is asked whether it is ready and is ready.
fn slow_and_quick() -> Fixture {
    let f = explicit(|root| {
        add_model(root, "m", &[1], CONFIG);
        add_model(root, "n", &[1], CONFIG);
        fs::write(root.join("n/1/is_never_held"), "").expect("file");
        fs::write(root.join("n/1/is_asked"), "").expect("file");
    });
    f.backend.load_gate.set(true);
    wait(f.engine.control().load("n".to_owned(), LoadOverrides::default())).expect("loads");
    f
}

fn loads_begun(f: &Fixture) -> u64 {
    f.backend.loads_begun.load(Ordering::SeqCst)
}

#[test]
fn waiting_loads_of_a_slow_model_block_neither_others_nor_the_exit() {
    let f = slow_and_quick();
    let control = f.engine.control();
    let load = |model: &str| control.load(model.to_owned(), LoadOverrides::default());
    let first = load("m");
    eventually("it began", || loads_begun(&f) == 2);
    let waiting: Vec<_> = (1..1200).map(|_| load("m")).collect();
    let engine = f.engine.clone();
    let rows = wait(control.query(move || index(&engine))).expect("answered");
    assert_eq!(rows, ["m:1:LOADING:", "n:1:READY:"]);
    assert!(wait(control.is_model_ready("n", None)).expect("it serves"));
    assert!(!wait(control.is_model_ready("m", None)).expect("it serves"));
    let n = f.engine.model("n", None).expect("ready");
    crate::fixture::start(&n, 1).blocking_recv().expect("answered").expect("an answer");
    drop(n);
    touch(f.root.path(), "n");
    wait(load("n")).expect("another model loads");
    wait(control.unload("n".to_owned(), false)).expect("and unloads");
    assert_eq!(loads_begun(&f), 3, "of m one load runs at a time");

    f.engine.begin_exit();
    f.backend.load_gate.set(false);
    assert!(f.engine.shutdown(Instant::now() + Duration::from_secs(20)), "the exit is clean");
    wait(first).expect("it had begun");
    for load in waiting {
        let error = wait(load).expect_err("the server is exiting");
        assert_eq!((error.code(), error.message()), (Code::Unavailable, "Server exiting"));
    }
}

#[test]
fn waiting_loads_of_the_same_model_are_done_once() {
    let f = slow_and_quick();
    let control = f.engine.control();
    let first = control.load("m".to_owned(), LoadOverrides::default());
    eventually("it began", || loads_begun(&f) == 2);
    let plain = || control.load("m".to_owned(), LoadOverrides::default());
    let (second, third) = (plain(), plain());
    let unload = control.unload("m".to_owned(), false);
    let fourth = plain();
    f.backend.load_gate.set(false);
    for load in [first, second, third, fourth] {
        wait(load).expect("loads");
    }
    wait(unload).expect("unloads");
    assert_eq!(
        loads_begun(&f),
        3,
        "the second and the third found it loaded, the fourth came after the unload"
    );
    ask(&f.engine, 1).expect("the last load counts");
}

#[test]
fn a_load_with_a_gone_caller_does_not_begin() {
    let f = slow_and_quick();
    let control = f.engine.control();
    let first = control.load("m".to_owned(), LoadOverrides::default());
    eventually("it began", || loads_begun(&f) == 2);
    let overrides = LoadOverrides { config: Some("{}".to_owned()), ..LoadOverrides::default() };
    drop(control.load("m".to_owned(), overrides));
    drop(control.load("m".to_owned(), LoadOverrides::default()));
    f.backend.load_gate.set(false);
    wait(first).expect("loads");
    wait(control.unload("m".to_owned(), false)).expect("after all that waited");
    assert_eq!(loads_begun(&f), 2);
}

#[test]
fn a_hanging_readiness_check_occupies_one_thread() {
    let f = slow_and_quick();
    let control = f.engine.control();
    f.backend.readiness_gate.set(true);
    let questions: Vec<_> = (0..1000).map(|_| control.is_model_ready("n", None)).collect();
    let by_number = control.is_model_ready("n", Some(1));
    let engine = f.engine.clone();
    let rows = wait(control.query(move || index(&engine))).expect("answered");
    assert_eq!(rows[1], "n:1:READY:");
    f.backend.readiness_gate.set(false);
    let asked_all = questions.into_iter().chain([by_number]);
    assert!(asked_all.map(wait).all(|is_ready| is_ready.expect("it serves")));
    let asked = f.backend.questions.load(Ordering::SeqCst);
    assert!(asked <= 2, "asked {asked} times: once for the first, once for all the others");
}
