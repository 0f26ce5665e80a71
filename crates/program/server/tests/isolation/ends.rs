//! Isolated models whose process ends, cannot start, or refuses its model.

use std::{collections::BTreeMap, sync::Arc};

use galatea_backend::{
    ModelInstance, ReturnedRequests,
    testing::{Fixture, instance_spec, load_context, model_config, request, run_batch, tensors},
};
use galatea_config::parse_text;
use galatea_test_support::eventually;
use galatea_types::{Code, DataType, PreparedRequest, Tensor};

use crate::{
    children::{
        TIMEOUT, built_in, identity_fixture, instance, load, onnx, processes, settings, signal,
    },
    support::{Folder, onnx as models},
};

fn ask(values: &[u8]) -> PreparedRequest {
    let tensor = Tensor::new("INPUT0", DataType::Uint8, [1, values.len() as i64], values.to_vec());
    request("m", 1, vec![tensor])
}

#[track_caller]
fn echoes(instance: &mut dyn ModelInstance, values: &[u8]) {
    let response = run_batch(instance, vec![ask(values)]).remove(0).expect("a response");
    assert_eq!(response.outputs[0].host().expect("host memory"), values);
}

#[test]
fn an_exited_process_fails_only_its_own_requests() {
    let backend = built_in("identity");
    let model = load(&*backend, &identity_fixture());
    let (mut other, _alarms) = instance(&*model, 7);
    for (name, described) in
        [("SEGV", "SIGSEGV"), ("FPE", "SIGFPE"), ("ABRT", "SIGABRT"), ("KILL", "SIGKILL")]
    {
        let (mut victim, alarms) = instance(&*model, 0);
        echoes(&mut *victim, &[1, 2, 3]);
        assert!(signal(&instance_spec("m", 0).name, name), "the child gets SIG{name}");
        let reason = alarms.recv_timeout(TIMEOUT).expect("the alarm");
        for part in ["isolated process", "model 'm'", described, "restarted"] {
            assert!(reason.message().contains(part), "{reason}");
        }
        let error = run_batch(&mut *victim, vec![ask(&[1])]).remove(0).expect_err("it is dead");
        assert_eq!((error.code(), error.message()), (Code::Unavailable, reason.message()));
        drop(victim);
        echoes(&mut *other, &[4, 5]);
        echoes(&mut *instance(&*model, 0).0, &[6]);
    }
}

#[test]
fn requests_in_progress_fail_with_the_exit_of_their_process() {
    let mut fixture = identity_fixture();
    let text = "name: 'm' backend: 'identity'
         input { name: 'INPUT0' data_type: TYPE_UINT8 dims: [1, -1] }
         output { name: 'OUTPUT0' data_type: TYPE_UINT8 dims: [1, -1] }
         parameters { key: 'execute_delay_ms' value { string_value: '600000' } }";
    fixture.config = model_config(text);
    let model = load(&*built_in("identity"), &fixture);
    let (mut stuck, alarms) = instance(&*model, 1);
    let name = instance_spec("m", 1).name;
    let error = std::thread::scope(|scope| {
        let answers = scope.spawn(|| run_batch(&mut *stuck, vec![ask(&[1])]));
        // Asleep in its execution, whenever that is: before, the request fails just the same.
        eventually("the child runs", || processes(&name).len() == 1);
        assert!(signal(&name, "SEGV"));
        answers.join().expect("no panic").remove(0).expect_err("an error")
    });
    assert!(error.message().contains("SIGSEGV"), "{error}");
    assert!(alarms.recv_timeout(TIMEOUT).is_ok());
}

#[test]
fn a_backend_panic_ends_its_process() {
    let tensors = tensors("input", ["INPUT0"], DataType::Uint8, &[-1])
        + &tensors("output", ["OUTPUT0"], DataType::Uint8, &[-1]);
    let config = model_config(&format!(
        "name: 'm' backend: 'failing' max_batch_size: 8 {tensors}
         parameters {{ key: 'fail' value {{ string_value: 'panic' }} }}"
    ));
    let fixture = Fixture { config, ..identity_fixture() };
    let model = load(&*built_in("failing"), &fixture);
    let (mut panics, alarms) = instance(&*model, 2);
    let error = run_batch(&mut *panics, vec![ask(&[1])]).remove(0).expect_err("an error");
    assert!(error.message().contains("exited with code 101"), "{error}");
    assert!(alarms.recv_timeout(TIMEOUT).is_ok());
}

#[test]
fn a_broken_model_is_refused_with_its_file() {
    let folder = Folder::with_file("model.onnx", b"not a model");
    let config = model_config(&format!(
        "name: 'm' backend: 'onnxruntime' {} {}",
        tensors("input", ["X"], DataType::Fp32, &[1]),
        tensors("output", ["Y"], DataType::Fp32, &[1]),
    ));
    let fixture = Fixture { backend_config: settings(&[]), ..Fixture::new(config, folder.path()) };
    let backend = onnx();
    let model = backend.load(load_context(&fixture)).expect("nothing is read here");
    let error = model.new_instance(&instance_spec("m", 0)).err().expect("an error");
    assert!(error.message().contains("model.onnx"), "{error}");
}

#[test]
fn a_configuration_is_completed_in_a_child_process() {
    let folder = Folder::with_file("model.onnx", &models::identity(DataType::Fp32));
    let raw = parse_text("name: 'm' backend: 'onnxruntime'").expect("text");
    let (version_dir, settings) = (folder.version_dir(), settings(&[]));
    let context = galatea_backend::CompletionContext {
        model_name: "m",
        model_dir: folder.path(),
        version: 1,
        version_dir: &version_dir,
        backend_config: &settings,
        paths: &galatea_backend::PathRules::anywhere(),
    };
    let completed = onnx().complete_config(raw.clone().into(), &context).expect("completed");
    let here = crate::support::backend().complete_config(raw.into(), &context).expect("completed");
    assert_eq!(completed, here);
    assert!(completed.has_inputs() && completed.has_outputs());
}

#[test]
fn models_that_cannot_be_isolated_are_refused() {
    let refused = |fixture: &Fixture| {
        let loaded = built_in("repeat").load(load_context(fixture));
        loaded.err().expect("refused")
    };
    let decoupled = "name: 'm' backend: 'repeat' model_transaction_policy { decoupled: true }
         input { name: 'IN' data_type: TYPE_INT32 dims: -1 }
         output { name: 'OUT' data_type: TYPE_INT32 dims: 1 }";
    let mut fixture = Fixture { config: model_config(decoupled), ..identity_fixture() };
    assert!(refused(&fixture).message().contains("decoupled"));
    fixture.backend_config = BTreeMap::from([("isolation".to_owned(), "thread".to_owned())]);
    assert!(refused(&fixture).message().contains("isolation must be 'process' or 'none'"));
}

#[test]
fn the_child_command_cannot_be_run_by_hand() {
    for arguments in [&[][..], &["m", "i", "0", "1", "2", "3"], &["m", "i", "90", "91", "92", "93"]]
    {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_galatea"))
            .arg("model-worker")
            .args(arguments)
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("for the server's own use"), "{text}");
    }
}

/// Every request is accounted for, even if the process ends in between.
#[test]
fn a_prefetched_request_is_answered_or_taken_back() {
    let model = load(&*built_in("identity"), &identity_fixture());
    let (mut victim, _alarms) = instance(&*model, 5);
    let mut batches = [0, 1].map(|number| {
        let pending = galatea_backend::testing::pending(ask(&[number as u8])).0;
        galatea_backend::Batch::new(Arc::from("m"), 1, vec![pending]).numbered(number)
    });
    let [first, second] = &mut batches;
    let pipeline = victim.pipeline().expect("it is in a process");
    pipeline.begin(first);
    assert!(pipeline.hand_over(second), "there is room");
    let waiting = pipeline.waiting();
    signal(&instance_spec("m", 5).name, "KILL");
    pipeline.complete(first);
    let is_answered = |batch: &galatea_backend::Batch| {
        batch.outcomes().all(|(_, o)| matches!(o, galatea_backend::Outcome::Answered(_)))
    };
    assert!(is_answered(first));
    if waiting.take_first_back(1) != ReturnedRequests::Batch(1) {
        pipeline.complete(second);
        assert!(is_answered(second));
    }
}
