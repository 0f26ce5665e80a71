//! Load, reload, unload and exit, driven through the public API with a backend made for the purpose.
#![allow(clippy::expect_used)] // a test may stop where it stands

use std::{
    fs,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use galatea_engine::{ControlMode, LoadOverrides, StartupError};
use galatea_types::Code;

use crate::fixture::{CONFIG, add_model, ask, eventually, explicit, fixture, index, start, touch};

#[test]
fn all_models_are_loaded_at_start_and_the_highest_version_is_served() {
    let f = fixture(ControlMode::None, &[], |root| {
        add_model(root, "m", &[1, 3], CONFIG);
        add_model(root, "n", &[1], CONFIG);
    });
    f.engine.load_startup_models().expect("all load");
    assert_eq!(index(&f.engine), ["m:3:READY:", "n:1:READY:"]);
    let answer = ask(&f.engine, 7).expect("an answer");
    assert_eq!(
        (answer.model_version, answer.outputs[0].host().expect("host memory")),
        (3, &[7, 0, 0, 0][..])
    );
    assert!(f.engine.is_ready() && f.is_model_ready("n", Some(1)));
    assert!(!f.is_model_ready("n", Some(2)));
    let refused = f.engine.load_model("m", LoadOverrides::default()).expect_err("mode none");
    assert_eq!(refused.code(), Code::Unavailable);
    assert_eq!(
        refused.message(),
        "explicit model load / unload is not allowed if polling is enabled"
    );
}

#[test]
fn explicit_mode_loads_only_named_models() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    f.engine.load_startup_models().expect("nothing to load");
    assert_eq!(index(&f.engine), ["m:-:-:"]);
    assert_eq!(
        ask(&f.engine, 1).expect_err("not loaded").message(),
        "Request for unknown model: 'm' is not found"
    );
    f.engine.load_model("m", LoadOverrides::default()).expect("loads");
    ask(&f.engine, 1).expect("an answer");
    f.engine.unload_model("m", false).expect("unloads");
    eventually("unloaded", || index(&f.engine) == ["m:1:UNAVAILABLE:unloaded"]);
    assert_eq!(
        ask(&f.engine, 1).expect_err("unloaded").message(),
        "Request for unknown model: 'm' has no available versions"
    );
    assert!(f.engine.is_ready(), "what was unloaded on purpose does not make the server unready");
    f.engine.unload_model("never heard of", false).expect("no error");
    eventually("memory is free", || f.backend.live_models.load(Ordering::SeqCst) == 0);
}

#[test]
fn failed_loads_are_reported_with_tritons_texts() {
    let f = explicit(|root| {
        add_model(root, "m", &[1], CONFIG);
        fs::write(root.join("m/1/fails_to_load"), "").expect("file");
        add_model(root, "broken", &[1], "backend: \"copy\"\ninpt { }");
        add_model(root, "empty", &[], CONFIG);
    });
    let load = |name: &str| f.engine.load_model(name, LoadOverrides::default()).expect_err("fails");

    let error = load("m");
    assert_eq!(error.code(), Code::InvalidArg);
    let start = "load failed for model 'm': version 1 is at UNAVAILABLE state: Internal: ";
    assert!(error.message().starts_with(start), "{error}");
    assert!(error.message().ends_with("fails_to_load is there;\n"), "{error}");

    let error = load("broken");
    assert_eq!(error.code(), Code::Internal);
    assert!(
        error
            .message()
            .starts_with("failed to load 'broken', failed to poll from model repository")
    );
    assert!(error.message().contains("config.pbtxt:2:1"), "names the place: {error}");

    let error = load("empty");
    assert_eq!(error.code(), Code::InvalidArg);
    let reason = "at least one version must be available under the version policy of model 'empty'";
    let advice = "empty: there is no version folder; make the folder 'empty/1' and put the model's file into it as 'model.onnx'";
    assert_eq!(error.message(), format!("load failed for model 'empty': {reason} ({advice})\n"));
    let text = |version| {
        f.engine.model("empty", version).map(drop).expect_err("none").message().to_owned()
    };
    assert_eq!(text(None), "Request for unknown model: 'empty' has no available versions");
    assert_eq!(text(Some(1)), "Request for unknown model: 'empty' version 1 is not found");
    let error = load("nowhere");
    assert!(
        error
            .message()
            .starts_with("failed to load 'nowhere', failed to poll from model repository")
    );
    assert_eq!(
        load("../m").message(),
        "invalid model name '../m', model name must not contain path traversal characters"
    );
    assert!(!f.engine.is_ready(), "strict readiness");
}

#[test]
fn a_failed_completion_fails_the_versions() {
    let f = explicit(|root| {
        add_model(root, "m", &[1, 3], CONFIG);
        fs::write(root.join("m/3/fails_to_complete"), "").expect("file");
        add_model(root, "bare", &[1], "backend: \"copy\"\ninput { name: \"IN\" }");
        fs::write(root.join("bare/1/fails_to_complete"), "").expect("file");
    });
    let load = |name: &str| f.engine.load_model(name, LoadOverrides::default()).expect_err("fails");

    let error = load("m");
    assert_eq!(error.code(), Code::InvalidArg);
    assert_eq!(
        error.message(),
        "load failed for model 'm': version 3 is at UNAVAILABLE state: Internal: m/3/fails_to_complete: the backend cannot complete it;\n"
    );
    let error = load("bare");
    assert_eq!(error.code(), Code::InvalidArg);
    assert!(error.message().ends_with("the backend cannot complete it;\n"), "{error}");
}

#[test]
fn requests_in_progress_are_answered_before_an_unload() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    f.engine.load_model("m", LoadOverrides::default()).expect("loads");
    f.backend.gate.set(true);
    let model = f.engine.model("m", None).expect("ready");
    let answers: Vec<_> = (0..5).map(|i| start(&model, i)).collect();
    drop(model);
    f.engine.unload_model("m", false).expect("unloads");
    assert_eq!(index(&f.engine), ["m:1:UNLOADING:"]);
    f.backend.gate.set(false);
    for (i, answer) in (0..5i32).zip(answers) {
        let answer = answer.blocking_recv().expect("answered").expect("an answer");
        assert_eq!(answer.outputs[0].host().expect("host memory")[..], i.to_le_bytes());
    }
    eventually("unloaded", || index(&f.engine) == ["m:1:UNAVAILABLE:unloaded"]);
}

#[test]
fn reloads_under_traffic_fail_no_request() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    f.engine.load_model("m", LoadOverrides::default()).expect("loads");
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    ask(&f.engine, 3).expect("not one request fails");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 0..20 {
            let before = answered.load(Ordering::Relaxed);
            touch(f.root.path(), "m");
            f.engine.load_model("m", LoadOverrides::default()).expect("reloads");
            eventually("traffic goes on", || answered.load(Ordering::Relaxed) > before + round);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(f.backend.loads_begun.load(Ordering::SeqCst), 21);
    assert_eq!(index(&f.engine), ["m:1:READY:"]);
    eventually("old ones are gone", || f.backend.live_models.load(Ordering::SeqCst) == 1);
}

#[test]
fn a_model_is_reloaded_only_if_one_of_its_files_changed() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    let load = || f.engine.load_model("m", LoadOverrides::default()).expect("loads");
    let loads = || f.backend.loads_begun.load(Ordering::SeqCst);
    for _ in 0..3 {
        load();
    }
    assert_eq!(loads(), 1, "three calls, one load");
    touch(f.root.path(), "m");
    load();
    load();
    assert_eq!(loads(), 2);
    fs::create_dir(f.root.path().join("m/1/__pycache__")).expect("folder");
    load();
    assert_eq!(loads(), 2, "what Python writes when it loads a model is no change of the model");
    fs::write(f.root.path().join("m/1/fails_to_load"), "").expect("file");
    f.engine.load_model("m", LoadOverrides::default()).expect_err("broken");
    f.engine.load_model("m", LoadOverrides::default()).expect_err("broken, and tried again");
    fs::remove_file(f.root.path().join("m/1/fails_to_load")).expect("removed");
    load();
    assert_eq!(loads(), 2, "the files are those of what is ready");
    f.engine.unload_model("m", false).expect("unloads");
    load();
    assert_eq!(loads(), 3);
}

#[test]
fn unchanged_versions_are_kept() {
    let all = |more: &str| format!("{CONFIG} version_policy {{ all {{}} }} {more}");
    let f = explicit(|root| add_model(root, "m", &[1, 2], &all("")));
    let root = f.root.path().join("m");
    let loads_and_versions = || {
        f.engine.load_model("m", LoadOverrides::default()).expect("loads");
        let model = f.engine.model("m", None).expect("ready");
        (f.backend.loads_begun.load(Ordering::SeqCst), model.ready_versions().to_vec())
    };
    assert_eq!(loads_and_versions(), (2, vec![1, 2]));
    start(&f.engine.model("m", Some(1)).expect("ready"), 1).blocking_recv().ok();
    add_model(f.root.path(), "m", &[3], &all(""));
    assert_eq!(loads_and_versions(), (3, vec![1, 2, 3]));
    assert_eq!(*f.engine.model("m", Some(1)).expect("ready").ready_versions(), [1, 2, 3]);
    let counted = f.engine.statistics(Some("m"), Some(1)).expect("statistics");
    assert_eq!(counted[0].statistics.inference_count, 1, "it is the same");
    fs::write(root.join("2/weights"), "x").expect("file");
    assert_eq!(loads_and_versions(), (4, vec![1, 2, 3]));
    fs::remove_dir_all(root.join("2")).expect("removed");
    assert_eq!(loads_and_versions(), (4, vec![1, 3]));
    let rows = ["m:1:READY:", "m:2:UNAVAILABLE:unloaded", "m:3:READY:"];
    eventually("unloaded", || index(&f.engine) == rows);
    add_model(f.root.path(), "m", &[], &all("# the same"));
    assert_eq!(loads_and_versions(), (4, vec![1, 3]));
    fs::write(root.join("labels.txt"), "x").expect("file");
    assert_eq!(loads_and_versions(), (6, vec![1, 3]), "what all versions share");
    add_model(f.root.path(), "m", &[], &all("metric_tags { key: 'a' value: 'b' }"));
    assert_eq!(loads_and_versions(), (8, vec![1, 3]), "another configuration");
    add_model(f.root.path(), "m", &[4], &all("metric_tags { key: 'a' value: 'b' }"));
    fs::write(root.join("4/fails_to_load"), "").expect("file");
    f.engine.load_model("m", LoadOverrides::default()).expect_err("one fails");
    assert_eq!(f.backend.loads_begun.load(Ordering::SeqCst), 8);
    for version in [1, 3] {
        start(&f.engine.model("m", Some(version)).expect("ready"), 1).blocking_recv().ok();
    }
    f.engine.unload_model("m", false).expect("unloads");
    eventually("all are gone", || f.backend.live_models.load(Ordering::SeqCst) == 0);
}

#[test]
fn the_configuration_of_a_load_request_is_kept_until_a_file_changes() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    let config = r#"{"backend":"copy","max_batch_size":7,
        "input":[{"name":"IN","data_type":"TYPE_INT32","dims":[1]}],
        "output":[{"name":"OUT","data_type":"TYPE_INT32","dims":[1]}]}"#;
    let with_config =
        || LoadOverrides { config: Some(config.to_owned()), ..LoadOverrides::default() };
    let loaded = |overrides| {
        f.engine.load_model("m", overrides).expect("loads");
        let size = f.engine.model("m", None).expect("ready").config().max_batch_size();
        (size, f.backend.loads_begun.load(Ordering::SeqCst))
    };
    assert_eq!(loaded(LoadOverrides::default()), (4, 1));
    assert_eq!(loaded(with_config()), (7, 2));
    assert_eq!(loaded(LoadOverrides::default()), (7, 2), "nothing changed");
    touch(f.root.path(), "m");
    assert_eq!(loaded(LoadOverrides::default()), (4, 3), "the repository's again");
    let mut with_files = with_config();
    with_files.files.insert("1/anything".to_owned(), vec![1].into());
    assert_eq!(loaded(with_files), (7, 4));
    assert_eq!(loaded(LoadOverrides::default()), (4, 5), "files do not stay");
}

#[test]
fn a_failed_reload_keeps_the_old_version_ready() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    f.engine.load_model("m", LoadOverrides::default()).expect("loads");
    fs::write(f.root.path().join("m/1/fails_to_load"), "").expect("file");
    f.engine.load_model("m", LoadOverrides::default()).expect_err("broken");
    ask(&f.engine, 1).expect("the old version is ready");
    fs::write(f.root.path().join("m/config.pbtxt"), "nonsense").expect("file");
    f.engine.load_model("m", LoadOverrides::default()).expect_err("broken");
    ask(&f.engine, 1).expect("the old version is ready");
    assert_eq!(index(&f.engine), ["m:1:READY:"]);
}

#[test]
fn a_load_may_override_configuration_and_files() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    let config = r#"{"backend":"copy","max_batch_size":0,
        "input":[{"name":"IN","data_type":"TYPE_INT32","dims":[1]}],
        "output":[{"name":"OUT","data_type":"TYPE_INT32","dims":[1]}]}"#;
    let overrides = LoadOverrides {
        config: Some(config.to_owned()),
        files: [("7/anything".to_owned(), vec![1, 2, 3].into())].into(),
    };
    f.engine.load_model("m", overrides.clone()).expect("loads");
    let model = f.engine.model("m", None).expect("ready");
    assert_eq!((model.version(), model.config().max_batch_size()), (7, 0));
    drop(model);
    let folder = f.backend.loaded_from.lock().expect("no panic").clone();
    assert!(folder.join("anything").is_file(), "a model may read its files after it was loaded");
    f.engine.unload_model("m", false).expect("unloads");
    eventually("the files are gone", || !folder.exists());
    let without_config = LoadOverrides { config: None, ..overrides };
    let error = f.engine.load_model("m", without_config).expect_err("needs a config");
    assert!(error.message().contains("Load parameter 'config' must be specified"), "{error}");
}

#[test]
fn shutdown_answers_requests_in_progress_and_refuses_later_ones() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    f.engine.load_model("m", LoadOverrides::default()).expect("loads");
    f.backend.gate.set(true);
    let model = f.engine.model("m", None).expect("ready");
    let answer = start(&model, 9);
    drop(model);
    assert!(!f.engine.shutdown(Instant::now()), "one request is still held back");
    let late = ask(&f.engine, 1).expect_err("too late");
    assert_eq!((late.code(), late.message()), (Code::Unavailable, "Server exiting"));
    assert!(!f.engine.is_ready() && !f.engine.is_live());
    f.backend.gate.set(false);
    assert!(f.engine.shutdown(Instant::now() + Duration::from_secs(20)));
    answer.blocking_recv().expect("answered").expect("an answer");
    assert_eq!(f.backend.live_models.load(Ordering::SeqCst), 0);
}

#[test]
fn shutdown_ends_with_the_last_response() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    f.engine.load_model("m", LoadOverrides::default()).expect("loads");
    f.backend.gate.set(true);
    let answer = start(&f.engine.model("m", None).expect("ready"), 9);
    thread::scope(|scope| {
        // It is notified: nobody waits this long.
        const DAY: Duration = Duration::from_secs(86400);
        let shutdown = scope.spawn(|| f.engine.shutdown(Instant::now() + DAY));
        eventually("the exit began", || !f.engine.is_live());
        assert!(!shutdown.is_finished(), "one request is still in flight");
        assert_eq!(index(&f.engine), ["m:1:READY:"], "a request in flight may need the model");
        f.backend.gate.set(false);
        assert!(shutdown.join().expect("no panic"));
    });
    answer.blocking_recv().expect("answered").expect("an answer");
}

#[test]
fn shutdown_waits_for_versions_replaced_by_a_reload() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    f.engine.load_model("m", LoadOverrides::default()).expect("loads");
    f.backend.gate.set(true);
    let answer = start(&f.engine.model("m", None).expect("ready"), 9);
    touch(f.root.path(), "m");
    f.engine.load_model("m", LoadOverrides::default()).expect("loads again");
    assert!(!f.engine.shutdown(Instant::now()), "the version before still has a request");
    eventually("the later one is gone", || f.backend.live_models.load(Ordering::SeqCst) == 1);
    assert!(!f.engine.shutdown(Instant::now()), "the version before still has one");
    f.backend.gate.set(false);
    assert!(f.engine.shutdown(Instant::now() + Duration::from_secs(20)));
    answer.blocking_recv().expect("answered").expect("an answer");
    assert_eq!(f.backend.live_models.load(Ordering::SeqCst), 0);
}

#[test]
fn a_model_that_finishes_loading_during_the_exit_is_unloaded() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    f.backend.load_gate.set(true);
    thread::scope(|scope| {
        let load = scope.spawn(|| f.engine.load_model("m", LoadOverrides::default()));
        eventually("the load began", || index(&f.engine) == ["m:1:LOADING:"]);
        assert!(!f.engine.shutdown(Instant::now()), "it is loading");
        f.backend.load_gate.set(false);
        load.join().expect("no panic").expect("it began before the exit");
        assert!(f.engine.shutdown(Instant::now() + Duration::from_secs(20)));
    });
    assert_eq!(index(&f.engine), ["m:1:UNAVAILABLE:unloaded"]);
    assert_eq!(f.backend.live_models.load(Ordering::SeqCst), 0);
}

#[test]
fn a_failed_start_names_models_and_reasons() {
    let f = fixture(ControlMode::None, &[], |root| {
        add_model(root, "good", &[1], CONFIG);
        add_model(root, "bad", &[1], CONFIG);
        fs::write(root.join("bad/1/fails_to_load"), "").expect("file");
        let step = "step { model_name: \"bad\" model_version: -1 input_map { key: \"IN\" value: \"IN\" } \
                    output_map { key: \"OUT\" value: \"OUT\" } }";
        let tensors = CONFIG.replace("backend: \"copy\"", "platform: \"ensemble\"");
        let ensemble = format!("{tensors}\nensemble_scheduling {{ {step} }}");
        add_model(root, "an_ensemble", &[1], &ensemble);
    });
    let error = f.engine.load_startup_models().expect_err("two of three fail");
    let StartupError::Models(failed) = &error else { panic!("{error}") };
    let names: Vec<&str> = failed.failures.iter().map(|failure| failure.model.as_str()).collect();
    assert_eq!((failed.ready_count, &names[..]), (1, &["bad", "an_ensemble"][..]));
    let text = error.to_string();
    let start = "failed to load 2 of 3 models (bad, an_ensemble): load failed for model 'bad': version 1 is at \
                 UNAVAILABLE state: Internal: ";
    assert!(text.starts_with(start) && text.ends_with("fails_to_load is there"), "{text}");
    ask_named(&f.engine, "good").expect("the others are ready");
}

fn ask_named(engine: &galatea_engine::Engine, name: &str) -> galatea_types::Result<()> {
    let model = engine.model(name, None)?;
    start(&model, 1).blocking_recv().expect("every request is answered").map(drop)
}

#[test]
fn statistics_count_successful_requests() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    f.engine.load_model("m", LoadOverrides::default()).expect("loads");
    for i in 0..3 {
        ask(&f.engine, i).expect("an answer");
    }
    let all = f.engine.statistics(None, None).expect("statistics");
    assert_eq!((all.len(), all[0].name.as_str(), all[0].version), (1, "m", 1));
    let s = &all[0].statistics;
    assert_eq!((s.success.count, s.inference_count, s.execution_count, s.pending), (3, 3, 3, 0));
    assert!(s.success.ns >= s.queue.ns + s.compute_infer.ns);
    let error = f.engine.statistics(Some("x"), None).expect_err("unknown");
    assert_eq!(error.message(), "requested model 'x' is not available");
    let error = f.engine.statistics(Some("m"), Some(2)).expect_err("unknown version");
    assert_eq!(error.message(), "requested model version is not available for model 'm'");
}

#[test]
fn unsupported_configurations_are_refused_before_the_backend_is_called() {
    let refused = format!("{CONFIG} instance_group {{ kind: KIND_CPU profile: 'x' }}");
    let slow_at_most = format!("{CONFIG} optimization {{ eager_batching: true }}");
    let f = explicit(|root| {
        add_model(root, "m", &[1], &refused);
        add_model(root, "n", &[1], &slow_at_most);
    });
    let error = f.engine.load_model("m", LoadOverrides::default()).expect_err("refused");
    let start = "load failed for model 'm': version 1 is at UNAVAILABLE state: Invalid argument: instance group m_0 of \
                 model m and platform specifies profile field which is only supported for TensorRT models";
    assert!(error.message().starts_with(start), "{error}");
    f.engine.load_model("n", LoadOverrides::default()).expect("it loads, with a warning");
}
