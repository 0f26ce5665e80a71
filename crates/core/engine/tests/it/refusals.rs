//! When a configuration is refused: some of it is when the model is read from its repository (polled), the rest when a
//! version of it is loaded. Clients see the difference in the index, in readiness and in the reasons of ensembles.
#![allow(clippy::expect_used)] // a test may stop where it stands

use std::fs;

use galatea_config::testing::without_places;
use galatea_engine::{ControlMode, LoadOverrides};

use crate::fixture::{CONFIG, Fixture, add_model, explicit, fixture, index};

const NO_DIMS: &str = "backend: \"copy\"\ninput { name: \"IN\" data_type: TYPE_INT32 }";

/// The message of a load that must fail.
fn refusal(f: &Fixture, model: &str) -> String {
    let error = f.engine.load_model(model, LoadOverrides::default()).expect_err("refused");
    error.message().to_owned()
}

#[track_caller]
fn assert_refused_at_load(config: &str, reason: &str) {
    let f = explicit(|root| add_model(root, "m", &[1], config));
    let text = refusal(&f, "m");
    let start = "load failed for model 'm': version 1 is at UNAVAILABLE state: ";
    let told = text.strip_prefix(start).and_then(|t| t.strip_suffix(";\n")).expect("a reason");
    assert_eq!(without_places(told), format!("Invalid argument: {reason}"));
    assert!(told.starts_with(&format!("Invalid argument: {reason} (m/config.pbtxt:")), "{told}");
    assert_eq!(index(&f.engine), [format!("m:1:UNAVAILABLE:{told}")], "the same in the index");
    assert!(!f.engine.is_ready(), "a version that failed makes the server unready");
}

#[test]
fn fields_a_backend_may_complete_are_checked_at_load() {
    assert_refused_at_load(NO_DIMS, "model input 'IN' must specify 'dims' for m");
    let no_type = "backend: \"copy\"\ninput { name: \"IN\" dims: 1 }";
    assert_refused_at_load(no_type, "model input 'IN' must specify 'data_type' for m");
    let on_gpu = format!("{CONFIG} instance_group {{ kind: KIND_GPU }}");
    let reason = "instance group m_0 of model m has kind KIND_GPU but no GPUs are available";
    assert_refused_at_load(&on_gpu, reason);
    let batch_input = "batch_input { kind: BATCH_ELEMENT_COUNT target_name: \"B\" data_type: TYPE_INT8 source_input: \"IN\" }";
    let reason = "batch input data type must be TYPE_INT32 or TYPE_FP32 for m";
    assert_refused_at_load(&format!("{CONFIG} {batch_input}"), reason);
}

/// Triton checks the field at the same place, and only for models that use it.
#[test]
fn a_custom_batching_strategy_is_refused_by_name() {
    let dynamic = format!("{CONFIG} dynamic_batching {{}}");
    for file in ["1/batchstrategy.so", "batchstrategy.so"] {
        let f = explicit(|root| {
            add_model(root, "m", &[1], &dynamic);
            add_model(root, "direct", &[1], CONFIG);
            for model in ["m", "direct"] {
                fs::write(root.join(model).join(file), "").expect("written");
            }
        });
        let text = refusal(&f, "m");
        let reason = format!(
            "custom batching strategy '{file}' of model 'm' is not supported by this version of the server"
        );
        assert!(text.contains(&reason), "{text}");
        f.engine.load_model("direct", LoadOverrides::default()).expect("it joins nothing");
    }
    let parameter =
        "parameters { key: 'TRITON_BATCH_STRATEGY_PATH' value { string_value: '/tmp/x.so' } }";
    let f = explicit(|root| add_model(root, "m", &[1], &format!("{CONFIG} {parameter}")));
    let text = refusal(&f, "m");
    let reason = "parameter 'TRITON_BATCH_STRATEGY_PATH' of model 'm' is not supported by this version of the server: it \
                  runs no custom batching strategies (m/config.pbtxt:";
    assert!(text.contains(reason), "{text}");
}

#[test]
fn fields_no_backend_completes_are_checked_at_poll() {
    for (config, reason) in [
        (
            "backend: \"copy\" max_batch_size: -1",
            "'max_batch_size' must be non-negative value for m",
        ),
        (
            "backend: \"copy\" dynamic_batching { preferred_batch_size: 8 }",
            "dynamic batching preferred size must be <= max batch size for m",
        ),
        (
            "backend: \"copy\" name: \"n\"",
            "unexpected directory name 'm' for model 'n', directory name must equal model name",
        ),
    ] {
        let f = explicit(|root| add_model(root, "m", &[1], config));
        let polled = "failed to load 'm', failed to poll from model repository";
        let text = refusal(&f, "m");
        let told = text.strip_prefix(polled).and_then(|t| t.strip_prefix(": ")).expect("a reason");
        assert!(told.starts_with(&format!("{reason} (m/config.pbtxt:1:")), "{told}");
        assert_eq!(without_places(told), reason);
        assert_eq!(index(&f.engine), [format!("m:-:UNAVAILABLE:{told}")], "the same in the index");
        assert!(f.engine.is_ready(), "as in Triton");
    }
}

#[test]
fn a_missing_backend_is_reported_before_missing_fields() {
    for config in [
        "backend: \"nosuch\" input { name: \"IN\" }",
        "backend: \"nosuch\" instance_group { kind: KIND_GPU }",
    ] {
        let f = explicit(|root| add_model(root, "m", &[1], config));
        let text = refusal(&f, "m");
        let expected = "load failed for model 'm': version 1 is at UNAVAILABLE state: Invalid argument: unable to find \
                        backend library for backend 'nosuch', try specifying runtime on the model configuration.";
        assert!(text.starts_with(expected), "{text}");
    }
}

/// Common mistakes in the backend field get their advice.
#[test]
fn misspelled_and_unsupported_backends_get_advice() {
    for (config, place, advice) in [
        ("backend: \"cpoy\"", "1:10", "did you mean `backend: \"copy\"`?"),
        ("\n  backend: \"onnx\"", "2:12", "did you mean `backend: \"onnxruntime\"`?"),
        ("backend: \"vllm\"", "1:10", "Triton's backend `vllm` is not part of Galatea: "),
        ("backend: \"tensorrt\" platform: \"tensorrt_plan\"", "1:10", "is not part of Galatea: "),
        ("backend: \"ensemble\"", "1:10", "write `platform: \"ensemble\"` in its place"),
    ] {
        let f = explicit(|root| add_model(root, "m", &[1], config));
        let text = refusal(&f, "m");
        assert!(text.contains(&format!(" (m/config.pbtxt:{place}: ")), "{text}");
        assert!(text.contains("unable to find backend library") && text.contains(advice), "{text}");
    }
}

#[test]
fn impossible_instances_are_refused_before_the_backend_is_called() {
    let f = explicit(|root| {
        add_model(root, "m", &[1], &format!("{NO_DIMS} instance_group {{ kind: KIND_GPU }}"));
        fs::write(root.join("m/1/fails_to_complete"), "").expect("file");
    });
    let text = refusal(&f, "m");
    assert!(text.contains("has kind KIND_GPU but no GPUs are available"), "{text}");
}

#[test]
fn an_ensemble_reports_why_its_model_was_refused() {
    let tensors = "input { name: \"IN\" data_type: TYPE_INT32 dims: 1 } output { name: \"OUT\" data_type: TYPE_INT32 dims: 1 }";
    let step = "step { model_name: \"m\" model_version: -1 input_map { key: \"IN\" value: \"IN\" } \
                output_map { key: \"OUT\" value: \"OUT\" } }";
    let ensemble = format!("platform: \"ensemble\" {tensors} ensemble_scheduling {{ {step} }}");
    let f = explicit(|root| {
        add_model(root, "m", &[1], NO_DIMS);
        add_model(root, "e", &[1], &ensemble);
    });
    let text = "load failed for model 'e': ensemble 'e' depends on 'm' which has no loaded version. Model 'm' loading \
                failed with error: version 1 is at UNAVAILABLE state: Invalid argument: model input 'IN' must specify \
                'dims' for m;\n";
    assert_eq!(without_places(&refusal(&f, "e")), text);
}

#[test]
fn a_server_with_a_refused_model_is_not_ready() {
    let f = fixture(ControlMode::None, &[], |root| {
        add_model(root, "good", &[1], CONFIG);
        add_model(root, "m", &[1], NO_DIMS);
    });
    f.engine.load_startup_models().expect_err("one fails");
    assert!(!f.engine.is_ready());
    assert!(f.is_model_ready("good", None) && !f.is_model_ready("m", None));
}

#[test]
fn the_runtime_field_must_name_the_backends_library() {
    let own = format!("{CONFIG} runtime: 'libtriton_copy.so'");
    let f = explicit(|root| add_model(root, "m", &[1], &own));
    f.engine.load_model("m", LoadOverrides::default()).expect("the backend's own");
    let refused = |runtime: &str, what: &str, or: &str| {
        let reason = format!(
            "unable to find {what} '{runtime}' for model 'm': the backend 'copy' is part of this server, and no other \
             library is opened for it. Remove 'runtime' from the configuration{or}"
        );
        assert_refused_at_load(&format!("{CONFIG} runtime: '{runtime}'"), &reason);
    };
    refused("nosuch.so", "backend library", "");
    refused("../copy/libtriton_copy.so", "backend library", "");
    let or = ", or use backend 'python' for a model.py";
    refused("model.py", "Python backend based backend library", or);
}

/// A configuration with the agent `checksum` over `m/1/data`.
fn with_checksum(md5: &str) -> String {
    let parameter = format!("parameters {{ key: 'MD5:1/data' value: '{md5}' }}");
    format!("{CONFIG} model_repository_agents {{ agents {{ name: 'checksum' {parameter} }} }}")
}

#[test]
fn a_file_with_a_wrong_checksum_is_refused_at_poll() {
    let of_abc = "900150983cd24fb0d6963f7d28e17f72";
    let f = explicit(|root| {
        add_model(root, "m", &[1], &with_checksum(of_abc));
        fs::write(root.join("m/1/data"), "abc").expect("file");
    });
    f.engine.load_model("m", LoadOverrides::default()).expect("it is the file that was meant");
    fs::write(f.root.path().join("m/1/data"), "another").expect("file");
    let text = "failed to load 'm', failed to poll from model repository: Mismatched MD5 hash for file 1/data, expect: \
                900150983cd24fb0d6963f7d28e17f72, got: b32d73e56ec99bc5ec8f83871cde708a";
    assert_eq!(refusal(&f, "m"), text);
    assert_eq!(index(&f.engine), ["m:1:READY:"], "what was loaded still serves");
}

#[test]
fn an_unknown_agent_fails_the_load() {
    let agent = "model_repository_agents { agents { name: 'nosuch' } }";
    let f = explicit(|root| add_model(root, "m", &[1], &format!("{CONFIG} {agent}")));
    let text = "failed to load 'm', failed to poll from model repository: unable to find \
                'libtritonrepoagent_nosuch.so' for repo agent 'nosuch'";
    assert!(refusal(&f, "m").starts_with(text));
    assert!(index(&f.engine)[0].starts_with("m:-:UNAVAILABLE:unable to find"));
}

#[test]
fn a_load_request_cannot_get_a_digest_of_a_file_outside_its_model() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    let agent = r#"{"agents":[{"name":"checksum","parameters":{"MD5:../../etc/hostname":"0"}}]}"#;
    let config = format!(r#"{{"backend":"copy","model_repository_agents":{agent}}}"#);
    let overrides = LoadOverrides { config: Some(config), ..LoadOverrides::default() };
    let error = f.engine.load_model("m", overrides).expect_err("refused");
    let text = "the file '../../etc/hostname' of the agent 'checksum' must be a relative path that stays inside of the \
                model's folder";
    assert!(error.message().ends_with(text), "{error}");
}
