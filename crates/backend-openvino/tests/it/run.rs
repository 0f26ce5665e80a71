//! Answers that stay what they were, shapes and texts, and models that hand an input through.

use crate::support::{ask, floats, infer, instance, ir, model_folder};
use galatea_types::{DataType, Tensor};

fn tensor(name: &str, shape: &[i64], values: &[f32]) -> Tensor {
    Tensor::new(name, DataType::Fp32, shape, floats(values))
}

/// 256 x 256 numbers are handed on as they are, without a copy.
#[test]
fn large_answers_stay_when_the_next_one_comes() {
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
fn shapes_may_change_from_run_to_run_and_sizes_too() {
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
fn a_text_up_to_its_zero_byte_only() {
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
