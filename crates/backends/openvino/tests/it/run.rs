//! Answers that stay what they were, shapes and texts, and models that hand an input through.

use crate::support::{ask, floats, infer, instance, ir, model_folder};
use galatea_types::{Code, DataType, Tensor};

fn tensor(name: &str, shape: &[i64], values: &[f32]) -> Tensor {
    Tensor::new(name, DataType::Fp32, shape, floats(values))
}

/// 256 x 256 numbers are passed on without a copy.
#[test]
fn large_outputs_are_not_overwritten_by_the_next_run() {
    for (model, inputs, output) in [
        (ir::identity(DataType::Fp32, &[256, 256]), &["X"][..], "X"),
        (ir::add_sub(DataType::Fp32, &[256, 256]), &["A", "B"], "SUM"),
    ] {
        let folder = model_folder(&model);
        let mut instance = instance(&folder, "");
        let mut answer = |value: f32| {
            let values = vec![value; 256 * 256];
            let given = inputs.iter().map(|name| tensor(name, &[256, 256], &values)).collect();
            infer(&mut *instance, ask(0, given, &[output])).expect("answered")
        };
        let answers = [1.0f32, 2.0, 3.0].map(|value| (value, answer(value)));
        for (value, answer) in answers {
            let expected = value * inputs.len() as f32;
            let data = answer.outputs[0].host().expect("host memory");
            assert_eq!(data, floats(&vec![expected; 256 * 256]), "{output}");
        }
    }
}

#[test]
fn shapes_and_batch_sizes_may_change_between_runs() {
    let folder = model_folder(&ir::add_sub(DataType::Fp32, &[-1, -1]));
    let mut instance = instance(&folder, "");
    for (rows, columns) in [(1, 3), (2, 3), (300, 200), (1, 3), (0, 3), (300, 200)] {
        let values: Vec<f32> = (0..rows * columns).map(|n| n as f32).collect();
        let shape = [rows, columns];
        let given = vec![tensor("A", &shape, &values), tensor("B", &shape, &values)];
        let answer =
            infer(&mut *instance, ask(0, given, &["SUM", "DIFFERENCE"])).expect("answered");
        let doubled: Vec<f32> = values.iter().map(|value| value * 2.0).collect();
        assert_eq!(*answer.outputs[0].shape, shape);
        assert_eq!(answer.outputs[0].host().expect("host"), floats(&doubled));
        assert_eq!(answer.outputs[1].host().expect("host"), floats(&vec![0.0; values.len()]));
    }
}

#[test]
fn texts_end_at_their_zero_byte() {
    let folder = model_folder(&ir::identity(DataType::Bytes, &[-1]));
    let mut instance = instance(&folder, "");
    let mut ask_texts = |texts: &[&str]| {
        let data = galatea_types::byte_strings::pack(texts).expect("short");
        let tensor = Tensor::new("X", DataType::Bytes, [texts.len() as i64], data);
        infer(&mut *instance, ask(0, vec![tensor.clone()], &["X"])).map(|answer| {
            assert_eq!(answer.outputs[0].host().expect("host"), tensor.host().expect("host"));
        })
    };
    ask_texts(&["", "a", "a text that is longer than sixteen bytes", "ä"]).expect("handed through");
    ask_texts(&[]).expect("none");
    let error = ask_texts(&["a\0b"]).expect_err("cut");
    assert!(error.message().contains("a text holds a zero byte"), "{error}");
}

/// The protocol writes it as `[ 1 ]`, as the completed configuration does.
#[test]
fn a_scalar_output_is_one_number() {
    let folder = model_folder(&ir::add_sub(DataType::Fp32, &[]));
    let mut instance = instance(&folder, "");
    let given = || vec![tensor("A", &[1], &[3.0]), tensor("B", &[1], &[2.0])];
    for _ in 0..2 {
        let answer =
            infer(&mut *instance, ask(0, given(), &["SUM", "DIFFERENCE"])).expect("answered");
        let found =
            answer.outputs.iter().map(|output| (&*output.shape, output.host().expect("host")));
        let found: Vec<_> = found.collect();
        assert_eq!(found, [(&[1][..], &floats(&[5.0])[..]), (&[1][..], &floats(&[1.0])[..])]);
    }
}

/// OpenVINO would silently compute with other values.
#[test]
fn values_that_openvino_would_corrupt_are_refused_with_their_index() {
    let bytes = |data_type, value: u128| match data_type {
        DataType::Uint32 => (value as u32).to_le_bytes().to_vec(),
        DataType::Fp64 => (value as f64).to_le_bytes().to_vec(),
        _ => (value as u64).to_le_bytes().to_vec(),
    };
    for (data_type, computed, value) in [
        (DataType::Int64, "INT32", 1 << 40),
        (DataType::Uint64, "INT32", 1 << 63),
        (DataType::Uint32, "INT32", 1 << 31),
        (DataType::Fp64, "FP32", u128::MAX),
    ] {
        let folder = model_folder(&ir::add_sub(data_type, &[-1]));
        let mut instance = instance(&folder, "");
        let mut ask_for = |values: [u128; 2]| {
            let data = values.map(|value| bytes(data_type, value)).concat();
            let given = ["A", "B"].map(|name| Tensor::new(name, data_type, [2], data.clone()));
            infer(&mut *instance, ask(0, given.to_vec(), &["SUM"]))
        };
        let fine = ask_for([1, 2]).expect("they fit");
        let sums = [2, 4].map(|value| bytes(data_type, value)).concat();
        assert_eq!(fine.outputs[0].host().expect("host"), sums, "{data_type}");
        let error = ask_for([1, value]).expect_err("damaged");
        let told = format!(
            "element 1 of input 'A' does not fit: OpenVINO computes {data_type} as {computed}"
        );
        assert!(error.message().contains(&told), "{error}");
        assert_eq!(error.code(), Code::InvalidArg);
    }
}
