//! Ragged batches: inputs in one dimension, outputs divided by the shapes of an input.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use galatea_backend::testing::run_batch;
use galatea_types::{
    DataType::{Fp32, Int32},
    Tensor,
};
use support::{ask, floats, instance, ir, load_error, model_folder};

const CONFIG: &str = "max_batch_size: 8
    input { name: 'A' data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
    input { name: 'B' data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
    output { name: 'SUM' data_type: TYPE_FP32 dims: -1 }
    output { name: 'DIFFERENCE' data_type: TYPE_FP32 dims: -1 }
    batch_output { target_name: [ 'SUM', 'DIFFERENCE' ] source_input: 'A' }";

fn tensor(name: &str, size: usize, value: f32) -> Tensor {
    Tensor::new(name, Fp32, [1, size as i64], floats(&vec![value; size]))
}

#[test]
fn requests_of_different_shapes_are_one_run() {
    let mut instance = instance(&model_folder(&ir::add_sub(Fp32, &[-1])), CONFIG);
    let sizes = [2, 4, 1, 3];
    let request = |n: usize| {
        ask(1, vec![tensor("A", n, n as f32), tensor("B", n, 1.0)], &["SUM", "DIFFERENCE"])
    };
    let answers = run_batch(&mut *instance, sizes.map(request).into());
    for (answer, n) in answers.into_iter().zip(sizes) {
        let (sum, difference) = (n as f32 + 1.0, n as f32 - 1.0);
        let expected = [tensor("SUM", n, sum), tensor("DIFFERENCE", n, difference)];
        assert_eq!(answer.expect("answered").outputs, expected);
    }
}

/// `B` is made from the batch: as many numbers as there are requests.
#[test]
fn what_is_made_from_the_batch_is_an_input_of_the_model() {
    let text = "max_batch_size: 8
        input { name: 'A' data_type: TYPE_INT32 dims: -1 allow_ragged_batch: true }
        batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: 'B' data_type: TYPE_INT32 source_input: 'A' }
        output { name: 'SUM' data_type: TYPE_INT32 dims: -1 }
        output { name: 'DIFFERENCE' data_type: TYPE_INT32 dims: -1 }
        batch_output { target_name: [ 'SUM', 'DIFFERENCE' ] source_input: 'A' }";
    let mut instance = instance(&model_folder(&ir::add_sub(Int32, &[-1])), text);
    let number =
        |name: &str, value: i32| Tensor::new(name, Int32, [1, 1], value.to_le_bytes().to_vec());
    let requests = [10, 20, 30].map(|value| ask(1, vec![number("A", value)], &["SUM"]));
    let answers = run_batch(&mut *instance, requests.into());
    for (answer, sum) in answers.into_iter().zip([11, 22, 33]) {
        assert_eq!(answer.expect("answered").outputs, [number("SUM", sum)]);
    }
}

#[test]
fn a_model_of_two_dimensions_is_refused() {
    let error = load_error(&model_folder(&ir::add_sub(Fp32, &[-1, -1])), CONFIG);
    assert!(error.contains("tensor 'A': the model expects 2 dimensions"), "{error}");
}
