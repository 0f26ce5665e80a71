//! Ensembles and the models they need: order, texts, reload, unload, shutdown.
#![allow(clippy::expect_used)] // a test may stop where it stands

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use galatea_config::testing::without_places;
use galatea_engine::{ControlMode, Engine, LoadOverrides};
use galatea_types::{
    Code, InferRequest, InferResponse, Refused, RequestContext, Responder, Result, Tensor,
};
use tokio::sync::oneshot;

use crate::fixture::{
    CONFIG, Fixture, add_model, eventually, explicit, fixture, index, request, touch,
};

/// A chain of models, each copying `IN` to `OUT`; `a@2` names a version.
fn chain(models: &[&str]) -> String {
    let mut steps = String::new();
    for (i, model) in models.iter().enumerate() {
        let (model, version) = model.split_once('@').unwrap_or((model, "-1"));
        let from = if i == 0 { "IN".to_owned() } else { format!("t{i}") };
        let to = if i + 1 == models.len() { "OUT".to_owned() } else { format!("t{}", i + 1) };
        steps.push_str(&format!(
            "step {{ model_name: \"{model}\" model_version: {version} \
             input_map {{ key: \"IN\" value: \"{from}\" }} output_map {{ key: \"OUT\" value: \"{to}\" }} }}\n"
        ));
    }
    let tensors = CONFIG.lines().filter(|l| l.starts_with("input") || l.starts_with("output"));
    let tensors: Vec<&str> = tensors.collect();
    format!(
        "platform: \"ensemble\"\nmax_batch_size: 4\n{}\nensemble_scheduling {{\n{steps}}}\n",
        tensors.join("\n")
    )
}

fn add_chain(root: &Path, name: &str, models: &[&str]) {
    add_model(root, name, &[1], &chain(models));
}

fn load(f: &Fixture, name: &str) -> Result<()> {
    f.engine.load_model(name, LoadOverrides::default())
}

fn start(
    engine: &Engine,
    model: &str,
    value: i32,
) -> Result<oneshot::Receiver<Result<InferResponse>>> {
    let (responder, answer) = Responder::unary();
    let request = InferRequest { model_name: model.into(), ..request(value) };
    let submitted = engine.model(model, None)?.infer(request, RequestContext::new(), responder);
    submitted.map_err(Refused::into_error)?;
    Ok(answer)
}

fn ask(engine: &Engine, model: &str, value: i32) -> Result<InferResponse> {
    start(engine, model, value)?.blocking_recv().expect("every request is answered")
}

fn executions(engine: &Engine, model: &str) -> u64 {
    let all = engine.statistics(Some(model), None).expect("statistics");
    all.iter().map(|s| s.statistics.execution_count).sum()
}

#[test]
fn ensembles_load_after_their_models_at_start() {
    let f = fixture(ControlMode::None, &[], |root| {
        add_chain(root, "a_outer", &["b_inner", "z"]);
        add_chain(root, "b_inner", &["y", "z"]);
        for model in ["y", "z"] {
            add_model(root, model, &[1], CONFIG);
        }
    });
    f.engine.load_startup_models().expect("all load");
    assert_eq!(
        index(&f.engine),
        ["a_outer:1:READY:", "b_inner:1:READY:", "y:1:READY:", "z:1:READY:"]
    );
    assert!(f.engine.is_ready() && f.is_model_ready("a_outer", None));
    let answer = ask(&f.engine, "a_outer", 7).expect("an answer");
    assert_eq!(
        (&*answer.model_name, answer.outputs[0].host().expect("host memory")),
        ("a_outer", &[7, 0, 0, 0][..])
    );
    assert_eq!(&*answer.outputs[0].shape, [1, 1]);
    let counts = ["a_outer", "b_inner", "y", "z"].map(|m| executions(&f.engine, m));
    assert_eq!(counts, [1, 1, 1, 2]);
    let config = f.engine.model("a_outer", None).expect("ready").config().clone();
    assert!(!config.is_decoupled() && config.raw().model_transaction_policy.is_some());
}

#[test]
fn an_explicit_load_also_loads_missing_models() {
    let f = explicit(|root| {
        add_chain(root, "outer", &["inner"]);
        add_chain(root, "inner", &["a", "b"]);
        add_model(root, "a", &[1], CONFIG);
        add_model(root, "b", &[1], CONFIG);
    });
    load(&f, "a").expect("loads");
    ask(&f.engine, "a", 1).expect("an answer");
    load(&f, "outer").expect("loads");
    assert_eq!(executions(&f.engine, "a"), 1, "it served already and was left alone");
    ask(&f.engine, "outer", 1).expect("an answer");

    f.engine.unload_model("outer", true).expect("unloads");
    let gone = [
        "a:1:READY:",
        "b:1:UNAVAILABLE:unloaded",
        "inner:1:UNAVAILABLE:unloaded",
        "outer:1:UNAVAILABLE:unloaded",
    ];
    eventually("all it alone needed is gone", || index(&f.engine) == gone);
}

#[test]
fn ensembles_are_loaded_and_unloaded_with_their_models() {
    let f = explicit(|root| {
        add_chain(root, "outer", &["inner"]);
        add_chain(root, "inner", &["a"]);
        add_model(root, "a", &[1], CONFIG);
    });
    load(&f, "outer").expect("loads");
    f.engine.unload_model("a", false).expect("unloads");
    let gone = ["a", "inner", "outer"].map(|m| format!("{m}:1:UNAVAILABLE:unloaded"));
    eventually("all is gone", || index(&f.engine) == gone);
    eventually("memory is free", || f.backend.live_models.load(Ordering::SeqCst) == 0);
    let error = ask(&f.engine, "outer", 1).expect_err("gone");
    assert_eq!(error.message(), "Request for unknown model: 'outer' has no available versions");
    load(&f, "a").expect("loads");
    ask(&f.engine, "outer", 1).expect("they are back");
    f.engine.unload_model("outer", false).expect("unloads");
    load(&f, "a").expect("reloads");
    eventually("unloaded by name, it stays away", || {
        index(&f.engine) == ["a:1:READY:", "inner:1:READY:", "outer:1:UNAVAILABLE:unloaded"]
    });
}

/// The unload arrives during a reload of the model, so the ensemble finds the model ready.
#[test]
fn an_ensemble_is_unloaded_if_its_model_is_unloaded_during_the_load() {
    let f = explicit(|root| {
        add_chain(root, "e", &["a"]);
        add_model(root, "a", &[1], CONFIG);
    });
    let is_ready = |name: &str| f.engine.model(name, None).is_ok();
    for _ in 0..20 {
        load(&f, "a").expect("loads");
        let begun = f.backend.loads_begun.load(Ordering::SeqCst);
        f.backend.load_gate.set(true);
        thread::scope(|scope| {
            touch(f.root.path(), "a");
            let reload = scope.spawn(|| load(&f, "a"));
            eventually("it began", || f.backend.loads_begun.load(Ordering::SeqCst) > begun);
            let unload = scope.spawn(|| f.engine.unload_model("a", false));
            let ensemble = scope.spawn(|| load(&f, "e"));
            f.backend.load_gate.set(false);
            reload.join().expect("no panic").expect("reloads");
            unload.join().expect("no panic").expect("unloads");
            // Loaded before the unload, or after it with the model, or it found nothing to be loaded on.
            let _ = ensemble.join().expect("no panic");
        });
        assert!(is_ready("a") || !is_ready("e"), "{:?}", index(&f.engine));
        let expected = u64::from(is_ready("a"));
        eventually("nothing uses an old one", || {
            f.backend.live_models.load(Ordering::SeqCst) == expected
        });
        f.engine.unload_model("e", false).expect("unloads");
        f.engine.unload_model("a", false).expect("unloads");
    }
}

#[test]
fn a_changed_model_is_reloaded_with_its_ensemble() {
    let f = explicit(|root| {
        add_chain(root, "e", &["a", "b"]);
        add_model(root, "a", &[1], CONFIG);
        add_model(root, "b", &[1], CONFIG);
    });
    let loads = || f.backend.loads_begun.load(Ordering::SeqCst);
    load(&f, "e").expect("loads");
    ask(&f.engine, "e", 1).expect("an answer");
    load(&f, "e").expect("nothing changed");
    assert_eq!((loads(), executions(&f.engine, "e")), (2, 1));
    touch(f.root.path(), "a");
    load(&f, "e").expect("loads");
    assert_eq!((loads(), executions(&f.engine, "e")), (3, 0), "the ensemble is on the new one");
}

/// Ensembles of every kind that cannot be had.
fn add_invalid(root: &Path) {
    add_model(root, "a", &[1], CONFIG);
    add_model(root, "small", &[1], &CONFIG.replace("max_batch_size: 4", "max_batch_size: 2"));
    add_model(root, "text", &[1], &CONFIG.replace("TYPE_INT32", "TYPE_STRING"));
    add_model(root, "wide", &[1], &CONFIG.replace("dims: 1", "dims: 2"));
    add_model(root, "broken", &[1], CONFIG);
    fs::write(root.join("broken/1/fails_to_load"), "").expect("file");
    add_model(root, "empty", &[], CONFIG);
    for (name, models) in [
        ("on_nothing", &["nothing"][..]),
        ("on_broken", &["a", "broken"]),
        ("on_that", &["on_broken"]),
        ("on_empty", &["empty"]),
        ("on_version", &["a@9"]),
        ("on_small", &["small"]),
        ("on_text", &["a", "text"]),
        ("on_wide", &["a", "wide"]),
        ("c1", &["c2"]),
        ("c2", &["a", "c3"]),
        ("c3", &["c1"]),
        ("on_c", &["c3"]),
    ] {
        add_chain(root, name, models);
    }
    let missing = chain(&["a"]).replace("key: \"IN\"", "key: \"WHAT\"");
    add_model(root, "no_input", &[1], &missing);
    let missing = chain(&["a"]).replace("key: \"OUT\"", "key: \"WHAT\"");
    add_model(root, "no_output", &[1], &missing);
    let two = CONFIG
        .replace("output {", "input { name: \"IN2\" data_type: TYPE_INT32 dims: 1 }\noutput {");
    add_model(root, "two", &[1], &two);
    add_chain(root, "unmapped", &["two"]);
}

#[test]
fn ensembles_that_cannot_be_loaded_are_reported() {
    let f = explicit(add_invalid);
    for (name, expected) in [
        (
            "on_nothing",
            "ensemble on_nothing contains models that are not available or ambiguous: nothing",
        ),
        (
            "on_empty",
            "ensemble 'on_empty' depends on 'empty' which has no loaded version. Model 'empty' loading failed \
             with error: at least one version must be available under the version policy of model 'empty'",
        ),
        (
            "on_version",
            "ensemble 'on_version' depends on 'a' whose required version 9 is not loaded.",
        ),
        (
            "on_small",
            "ensemble on_small allows maximum batch size 4, but it contains model small which only allows \
             maximum batch size to be 2",
        ),
        (
            "on_text",
            "in ensemble on_text, ensemble tensor t1: inconsistent data type: TYPE_INT32 is inferred from \
             model a while TYPE_STRING is inferred from model text",
        ),
        (
            "on_wide",
            "in ensemble on_wide, ensemble tensor t1: inconsistent shape: [-1,1] is inferred from model a while \
             [-1,2] is inferred from model wide",
        ),
        (
            "no_input",
            "in ensemble no_input, ensemble tensor IN is mapping to non-existing input WHAT in model a",
        ),
        (
            "no_output",
            "in ensemble no_output, ensemble tensor OUT is mapped from non-existing output WHAT in model a",
        ),
        (
            "unmapped",
            "in ensemble unmapped, input IN2 in model two is not mapped to any ensemble tensors",
        ),
        ("c1", "circular dependency between ensembles: c1 -> ... -> c3 -> c1"),
    ] {
        let error = load(&f, name).expect_err(name);
        assert_eq!(error.code(), Code::InvalidArg);
        let text = without_places(error.message());
        assert_eq!(text, format!("load failed for model '{name}': {expected}\n"));
        assert!(!f.is_model_ready(name, None));
    }
}

#[test]
fn a_step_cannot_name_a_folder_outside_the_repository() {
    let outside = tempfile::tempdir().expect("folder");
    add_model(outside.path(), "m", &[1], CONFIG);
    let name = format!("../{}/m", outside.path().file_name().expect("a name").display());
    let f = explicit(|root| add_chain(root, "e", &[&name]));
    let error = load(&f, "e").expect_err("no such model");
    let reason =
        format!("ensemble e contains models that are not available or ambiguous: {name}\n");
    assert!(without_places(error.message()).ends_with(&reason), "{error}");
}

#[test]
fn a_step_with_an_unknown_model_gets_the_nearest_name() {
    let f = explicit(|root| {
        add_model(root, "resize", &[1], CONFIG);
        add_chain(root, "e", &["rezise"]);
    });
    let error = load(&f, "e").expect_err("no such model");
    let text = fs::read_to_string(f.root.path().join("e/config.pbtxt")).expect("text");
    let line = text.lines().position(|line| line.contains("\"rezise\"")).expect("the step") + 1;
    let start = format!(
        "load failed for model 'e': ensemble e contains models that are not available or ambiguous: rezise \
         (e/config.pbtxt:{line}:"
    );
    let end = ": the repository has no model `rezise`: did you mean `resize`?)\n";
    assert!(error.message().starts_with(&start) && error.message().ends_with(end), "{error}");
}

#[test]
fn the_failure_of_a_model_fails_every_dependent_ensemble() {
    let f = explicit(add_invalid);
    let error = load(&f, "on_c").expect_err("a circle below");
    assert!(
        error.message().contains(
            "'on_c' depends on 'c3' which is not valid. Model 'c3' failed with error: circular"
        ),
        "{error}"
    );
    let error = load(&f, "on_that").expect_err("two levels up");
    let start = "load failed for model 'on_that': ensemble 'on_that' depends on 'on_broken' which is not valid. \
                 Model 'on_broken' failed with error: ensemble 'on_broken' depends on 'broken' which has no \
                 loaded version. Model 'broken' loading failed with error: version 1 is at UNAVAILABLE state: \
                 Internal: ";
    assert!(error.message().starts_with(start), "{error}");
    load(&f, "on_nothing").expect_err("it depends on nothing");
    let listed = index(&f.engine);
    let listed: Vec<_> = listed.iter().map(|row| without_places(row)).collect();
    assert!(listed.contains(&"on_nothing:-:UNAVAILABLE:ensemble on_nothing contains models that are not available or ambiguous: nothing".to_owned()), "{listed:?}");
}

#[test]
fn a_reload_that_no_longer_matches_unloads_the_ensemble() {
    let f = explicit(|root| {
        add_chain(root, "e", &["a"]);
        add_model(root, "a", &[1], CONFIG);
    });
    load(&f, "e").expect("loads");
    let config = f.root.path().join("a/config.pbtxt");
    fs::write(&config, CONFIG.replace("TYPE_INT32", "TYPE_FP32")).expect("config");
    load(&f, "a").expect("the model itself is sound");
    eventually("the ensemble is gone", || {
        index(&f.engine) == ["a:1:READY:", "e:1:UNAVAILABLE:unloaded"]
    });
    fs::write(&config, CONFIG).expect("config");
    load(&f, "a").expect("reloads");
    ask(&f.engine, "e", 1).expect("it is back");
}

#[test]
fn reloads_of_a_step_under_traffic_fail_no_request() {
    let f = explicit(|root| {
        add_chain(root, "e", &["a", "b", "a"]);
        add_model(root, "a", &[1], CONFIG);
        add_model(root, "b", &[1], CONFIG);
    });
    load(&f, "e").expect("loads");
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    ask(&f.engine, "e", 3).expect("not one request fails");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 0..10 {
            let before = answered.load(Ordering::Relaxed);
            touch(f.root.path(), "a");
            load(&f, "a").expect("reloads");
            eventually("traffic goes on", || answered.load(Ordering::Relaxed) > before + round);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(f.backend.loads_begun.load(Ordering::SeqCst), 12);
    eventually("old ones are gone", || f.backend.live_models.load(Ordering::SeqCst) == 2);
}

/// One request held back in the first of two steps.
fn in_flight() -> (Fixture, oneshot::Receiver<Result<InferResponse>>) {
    let f = explicit(|root| {
        add_chain(root, "e", &["a", "b"]);
        add_model(root, "a", &[1], CONFIG);
        add_model(root, "b", &[1], CONFIG);
    });
    load(&f, "e").expect("loads");
    f.backend.gate.set(true);
    let answer = start(&f.engine, "e", 9).expect("it is there");
    (f, answer)
}

#[test]
fn requests_in_progress_run_their_later_steps_during_the_exit() {
    let (f, answer) = in_flight();
    assert!(!f.engine.shutdown(Instant::now()), "one request is still held back");
    let late = ask(&f.engine, "e", 1).expect_err("too late");
    assert_eq!(late.message(), "Server exiting");
    f.backend.gate.set(false);
    assert!(f.engine.shutdown(Instant::now() + Duration::from_secs(20)));
    answer.blocking_recv().expect("answered").expect("an answer");
    assert_eq!(f.backend.live_models.load(Ordering::SeqCst), 0);
}

#[test]
fn requests_in_progress_run_their_later_steps_during_an_unload() {
    let (f, answer) = in_flight();
    f.engine.unload_model("b", false).expect("unloads");
    let index = index(&f.engine);
    assert_eq!(index[1..], ["b:1:UNLOADING:", "e:1:UNLOADING:"]);
    f.backend.gate.set(false);
    let answer = answer.blocking_recv().expect("answered").expect("an answer");
    assert_eq!(answer.outputs[0].host().expect("host memory")[..], 9i32.to_le_bytes());
    eventually("unloaded", || f.backend.live_models.load(Ordering::SeqCst) == 1);
}

#[test]
fn an_error_about_a_step_names_the_ensemble() {
    let f = explicit(|root| {
        add_model(root, "a", &[1], &CONFIG.replace("dims: 1", "dims: -1"));
        add_model(root, "b", &[1], CONFIG);
        let wide = chain(&["a", "b"]).replacen("dims: 1", "dims: -1", 1);
        add_model(root, "e", &[1], &wide);
    });
    load(&f, "e").expect("shapes are checked when they are known");
    let (responder, answer) = Responder::unary();
    let mut wide = request(1);
    wide.inputs = vec![Tensor::new("IN", galatea_types::DataType::Int32, [1, 2], vec![0; 8])];
    let model = f.engine.model("e", None).expect("ready");
    assert!(model.infer(wide, RequestContext::new(), responder).is_ok());
    let error = answer.blocking_recv().expect("answered").expect_err("too wide");
    let start =
        "in ensemble 'e', [request id: <id_unknown>] unexpected shape for input 'IN' for model 'b'";
    assert!(error.code() == Code::InvalidArg && error.message().starts_with(start), "{error}");
}
