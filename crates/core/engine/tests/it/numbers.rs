//! Every number, text and list of the configuration's schema, set to what a stranger might choose: the load ends, well or
//! with a reason, and the server goes on.
#![allow(clippy::expect_used)] // a test may stop where it stands

use std::{fs, sync::Arc, time::Duration};

use galatea_engine::{
    BackendRegistry, ControlMode, Engine, EngineOptions, LoadOverrides, LocalRoot,
};
use galatea_types::{
    CorrelationId, DataType, InferRequest, InferResponse, RequestContext, Responder, Result, Tensor,
};
use serde_json::{Value, json};
use tokio::sync::oneshot::{Receiver, error::TryRecvError};

use crate::{
    config_fields::{ConfigField, number_fields, text_fields},
    fixture::{add_model, eventually, wait},
};

const ADD_SUB: &str = "backend: \"identity\"
    input { name: \"INPUT0\" data_type: TYPE_INT32 dims: 2 }
    output { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: 2 }";

/// A server with the built-in backends and the model `ok`; its own repository folder.
struct Server {
    engine: Arc<Engine>,
    _root: tempfile::TempDir,
}

fn server() -> Server {
    let root = tempfile::tempdir().expect("folder");
    add_model(root.path(), "ok", &[1], ADD_SUB);
    add_model(root.path(), "m", &[1], ADD_SUB);
    let mut registry = BackendRegistry::default();
    for backend in galatea_backend_builtin::ALL {
        registry.register(backend.name(), move || Ok(backend.open()));
    }
    let options = EngineOptions {
        repositories: vec![LocalRoot::at(root.path())],
        control_mode: ControlMode::Explicit,
        startup_models: vec!["ok".to_owned()],
        ..EngineOptions::default()
    };
    let engine = Engine::new(options, registry);
    engine.load_startup_models().expect("it loads");
    Server { engine, _root: root }
}

/// Configurations in which everything is there that a number could be part of.
fn bases() -> [Value; 4] {
    let tensor = |name: &str| json!([{"name": name, "data_type": "TYPE_INT32", "dims": [2]}]);
    let direct = json!({
        "backend": "identity", "max_batch_size": 8,
        "input": tensor("INPUT0"), "output": tensor("OUTPUT0"),
        "instance_group": [{"kind": "KIND_CPU", "count": 1}],
        "model_warmup": [{"name": "w", "batch_size": 1, "count": 1,
            "inputs": {"INPUT0": {"data_type": "TYPE_INT32", "dims": [2], "zero_data": true}}}],
    });
    let with = |field: &str, value: Value| {
        let mut base = direct.clone();
        base[field] = value;
        base
    };
    let policy = json!({"timeout_action": "DELAY", "default_timeout_microseconds": 1_000_000,
        "allow_timeout_override": true, "max_queue_size": 10});
    let dynamic = with(
        "dynamic_batching",
        json!({"preferred_batch_size": [4],
        "max_queue_delay_microseconds": 100, "priority_levels": 2, "default_priority_level": 1,
        "default_queue_policy": policy, "priority_queue_policy": {"1": policy}}),
    );
    let sequences = with(
        "sequence_batching",
        json!({"max_sequence_idle_microseconds": 1,
        "control_input": [{"name": "START", "control": [{"kind": 0, "int32_false_true": [0, 1]}]}],
        "state": [{"input_name": "A", "output_name": "B", "data_type": "TYPE_FP32", "dims": [2],
            "initial_state": [{"data_type": "TYPE_FP32", "dims": [2], "zero_data": true, "name": "i"}]}],
        "oldest": {"max_candidate_sequences": 4, "preferred_batch_size": [4]}}),
    );
    let ensemble = json!({
        "platform": "ensemble", "input": tensor("INPUT0"), "output": tensor("OUTPUT0"),
        "ensemble_scheduling": {"max_inflight_requests": 2, "step": [{"model_name": "ok",
            "model_version": -1, "input_map": {"INPUT0": "INPUT0"}, "output_map": {"OUTPUT0": "OUTPUT0"}}]},
    });
    [direct, dynamic, sequences, ensemble]
}

fn base_of(field: &ConfigField) -> Value {
    let [direct, dynamic, sequences, ensemble] = bases();
    match field.path().split('.').next() {
        Some("dynamic_batching" | "max_batch_size" | "instance_group") => dynamic,
        Some("sequence_batching") => sequences,
        Some("ensemble_scheduling") => ensemble,
        _ => direct,
    }
}

fn request(model: &str, batch: Option<i64>) -> InferRequest {
    let mut request = InferRequest::new(model);
    let data = [1i32, 2].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
    let shape: Vec<i64> = batch.into_iter().chain([2]).collect();
    request.inputs = vec![Tensor::new("INPUT0", DataType::Int32, shape, data)];
    request
}

fn start(engine: &Engine, request: InferRequest) -> Receiver<Result<InferResponse>> {
    let model = engine.model(&request.model_name, None).expect("ready");
    let (responder, answer) = Responder::unary();
    if let Err(refused) = model.infer(request, RequestContext::new(), responder) {
        refused.answer();
    }
    answer
}

fn answered(mut answer: Receiver<Result<InferResponse>>, what: &str) -> Result<InferResponse> {
    let mut outcome = Err(TryRecvError::Empty);
    eventually(what, || {
        outcome = answer.try_recv();
        !matches!(outcome, Err(TryRecvError::Empty))
    });
    outcome.expect("every request is answered")
}

impl Server {
    /// Loads `m` with this configuration, uses it, and unloads it; true if it could be loaded.
    fn survives(&self, what: &str, config: &Value) -> bool {
        let overrides = LoadOverrides { config: Some(config.to_string()), ..Default::default() };
        let loaded = wait(self.engine.control().load("m".to_owned(), overrides));
        if let Err(error) = &loaded {
            let is_panic =
                error.message().contains("panic") || error.message().contains("ended without");
            assert!(!is_panic, "{what}: {error}");
        } else {
            let has_batching = self.engine.model("m", None).expect(what).config().has_batching();
            let answer = start(&self.engine, request("m", has_batching.then_some(1)));
            wait(self.engine.control().unload("m".to_owned(), false)).expect(what);
            // A delay that never ends is over when the model is unloaded. Any answer will do.
            let _ = answered(answer, what);
        }
        eventually(what, || {
            let rows = self.engine.repository_index(false).expect("started");
            let is_done = |state| matches!(state, None | Some("UNAVAILABLE"));
            rows.iter().filter(|row| row.name == "m").all(|row| is_done(row.state))
        });
        answered(start(&self.engine, request("ok", None)), what).expect(what);
        loaded.is_ok()
    }
}

/// `VmHWM` (the most memory so far, in KiB) or `Threads` of this process.
fn status(field: &str) -> usize {
    let text = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find(|line| line.starts_with(field)).expect(field);
    let number = line.split_whitespace().nth(1).and_then(|n| n.parse().ok());
    number.expect("a number")
}

#[track_caller]
fn assert_small(server: Server, memory_before: usize) {
    assert!(server.engine.shutdown(std::time::Instant::now() + Duration::from_secs(20)));
    let grown = (status("VmHWM") - memory_before) / 1024;
    assert!(grown < 400, "{grown} MiB more than at the start");
}

#[test]
fn no_number_in_a_configuration_ends_the_server() {
    let (server, memory) = (server(), status("VmHWM"));
    for base in [&bases()[0], &bases()[1], &bases()[3]] {
        assert!(
            server.survives("a base", base),
            "what is changed below must load as it is: {base}"
        );
    }
    let fields = number_fields();
    assert!(fields.len() >= 43, "the schema has {} numbers", fields.len());
    let mut loaded = 0;
    for field in &fields {
        for value in field.extremes() {
            let config = field.set_in(&base_of(field), &value);
            loaded += usize::from(server.survives(&format!("{} = {value}", field.path()), &config));
        }
        eventually("its threads have ended", || status("Threads") < 100);
    }
    assert!(
        loaded > 190,
        "only {loaded} of the configurations could be loaded: the test tests nothing"
    );
    assert_small(server, memory);
}

#[test]
fn no_long_list_or_text_in_a_configuration_ends_the_server() {
    let (server, memory) = (server(), status("VmHWM"));
    let long = Value::from("x".repeat(1 << 20));
    for field in text_fields() {
        server.survives(&field.path(), &field.set_in(&base_of(&field), &long));
    }
    for field in number_fields().into_iter().chain(text_fields()) {
        let value = field.extremes().swap_remove(1);
        if let Some(config) = field.repeat_in(&base_of(&field), &value, 1000) {
            server.survives(&format!("{} a thousand times", field.path()), &config);
        }
        eventually("its threads have ended", || status("Threads") < 100);
    }
    assert_small(server, memory);
}

#[test]
fn the_product_of_versions_and_instances_is_bounded() {
    let server = server();
    let mut config = bases()[0].clone();
    config["instance_group"] = json!([{"kind": "KIND_CPU", "count": 1000}]);
    config["version_policy"] = json!({"all": {}});
    let files = (1..=5).map(|version| (format!("{version}/x"), vec![0].into())).collect();
    let overrides = LoadOverrides { config: Some(config.to_string()), files };
    let error = server.engine.load_model("m", overrides).expect_err("5000 threads");
    let text = "model 'm' would have 5000 instances in 5 versions, the limit is 4096: let 'version_policy' choose \
                fewer versions (config#/version_policy)";
    assert!(error.message().ends_with(&format!("{text};\n")), "{error}");
}

#[test]
fn no_number_in_a_request_ends_the_server() {
    let server = server();
    let load = |config: &Value| {
        let overrides = LoadOverrides { config: Some(config.to_string()), ..Default::default() };
        wait(server.engine.control().load("m".to_owned(), overrides)).expect("loads");
    };
    for base in [&bases()[1], &bases()[0]] {
        load(base);
        for number in [0, 1, 2, 1 << 31, 1 << 32, 1 << 63, u64::MAX] {
            for batch in [0, 1, -1, i64::MAX, i64::MIN] {
                let mut request = request("m", Some(batch));
                request.priority = number;
                request.timeout = Some(Duration::from_micros(number));
                request.correlation_id = CorrelationId::Number(number);
                let _ = answered(start(&server.engine, request), "an answer");
            }
        }
    }
    answered(start(&server.engine, request("ok", None)), "ok").expect("an answer");
    assert!(server.engine.shutdown(std::time::Instant::now() + Duration::from_secs(20)));
}
