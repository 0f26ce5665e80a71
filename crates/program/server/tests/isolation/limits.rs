//! Isolated ONNX models that ask for more memory than they may have, or divide as no processor can.

use galatea_backend::{
    ModelInstance,
    testing::{Fixture, model_config, request, run_batch},
};
use galatea_types::{DataType, InferResponse, PreparedRequest, Result, Tensor};

use crate::{
    children::{TIMEOUT, instance, load, onnx, settings},
    support::{Folder, onnx::Builder},
};

/// Answers as many ones as its input says.
fn expanding() -> Vec<u8> {
    Builder::default()
        .input("X", DataType::Int64, &[1])
        .output("Y", DataType::Fp32, &[-1])
        .constant("one", DataType::Fp32, &[1], &1_f32.to_le_bytes())
        .node("Expand", &["one", "X"], &["Y"])
        .bytes()
}

fn dividing() -> Vec<u8> {
    Builder::default()
        .input("A", DataType::Int32, &[1])
        .input("B", DataType::Int32, &[1])
        .output("Y", DataType::Int32, &[1])
        .node("Div", &["A", "B"], &["Y"])
        .bytes()
}

fn fixture(folder: &Folder, tensors: &str, others: &[(&str, &str)]) -> Fixture {
    let config = model_config(&format!("name: 'm' backend: 'onnxruntime' {tensors}"));
    Fixture { backend_config: settings(others), ..Fixture::new(config, folder.path()) }
}

fn int32(name: &str, value: i32) -> Tensor {
    Tensor::new(name, DataType::Int32, [1], value.to_le_bytes().to_vec())
}

fn run(instance: &mut dyn ModelInstance, request: &PreparedRequest) -> Result<InferResponse> {
    run_batch(instance, vec![request.clone()]).remove(0)
}

/// The first request is refused, and whatever it did to its process, the second is answered by the model.
#[track_caller]
fn fails_alone(fixture: &Fixture, index: usize, bad: PreparedRequest, good: PreparedRequest) {
    let model = load(&*onnx(), fixture);
    let (mut first, alarms) = instance(&*model, index);
    run(&mut *first, &good).expect("a response");
    run(&mut *first, &bad).expect_err("more than it can do");
    if run(&mut *first, &good).is_err() {
        alarms.recv_timeout(TIMEOUT).expect("the alarm of a process that ended");
        drop(first);
        run(&mut *instance(&*model, index).0, &good).expect("a response");
    }
}

#[test]
fn memory_over_the_limit_is_refused_only_to_that_model() {
    let folder = Folder::with_file("model.onnx", &expanding());
    let tensors = "input { name: 'X' data_type: TYPE_INT64 dims: 1 }
                   output { name: 'Y' data_type: TYPE_FP32 dims: -1 }";
    let fixture = fixture(&folder, tensors, &[("isolation_memory_limit", "805306368")]);
    let count = |n: i64| {
        request("m", 1, vec![Tensor::new("X", DataType::Int64, [1], n.to_le_bytes().to_vec())])
    };
    fails_alone(&fixture, 4, count(1 << 29), count(3));
}

#[test]
fn a_division_fault_stays_in_its_process() {
    let folder = Folder::with_file("model.onnx", &dividing());
    let tensors = "input [ { name: 'A' data_type: TYPE_INT32 dims: 1 },
                           { name: 'B' data_type: TYPE_INT32 dims: 1 } ]
                   output { name: 'Y' data_type: TYPE_INT32 dims: 1 }";
    let fixture = fixture(&folder, tensors, &[]);
    let divide = |a, b| request("m", 1, vec![int32("A", a), int32("B", b)]);
    fails_alone(&fixture, 6, divide(i32::MIN, -1), divide(6, 3));
}
