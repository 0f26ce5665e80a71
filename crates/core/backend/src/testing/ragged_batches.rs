//! Ragged batches of a model that returns sum and difference of its inputs `A` and `B`, all in one dimension.

use galatea_types::{
    DataType::{Fp32, Int32},
    Tensor,
};

use super::{ask, floats, run_batch};
use crate::ModelInstance;

/// The configuration of such an FP32 model, without its backend.
pub const RAGGED: &str = "max_batch_size: 8
    input { name: 'A' data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
    input { name: 'B' data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
    output { name: 'SUM' data_type: TYPE_FP32 dims: -1 }
    output { name: 'DIFFERENCE' data_type: TYPE_FP32 dims: -1 }
    batch_output { target_name: [ 'SUM', 'DIFFERENCE' ] source_input: 'A' }";

/// The configuration of such an INT32 model whose `B` is made from the batch.
pub const RAGGED_WITH_BATCH_INPUT: &str = "max_batch_size: 8
    input { name: 'A' data_type: TYPE_INT32 dims: -1 allow_ragged_batch: true }
    batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: 'B' data_type: TYPE_INT32 source_input: 'A' }
    output { name: 'SUM' data_type: TYPE_INT32 dims: -1 }
    output { name: 'DIFFERENCE' data_type: TYPE_INT32 dims: -1 }
    batch_output { target_name: [ 'SUM', 'DIFFERENCE' ] source_input: 'A' }";

/// Checks that requests of different shapes are one run, and that each gets its own part.
///
/// # Panics
/// If not.
pub fn check_ragged(instance: &mut dyn ModelInstance) {
    let tensor = |name: &str, size: usize, value: f32| {
        let length = i64::try_from(size).unwrap_or_default();
        Tensor::new(name, Fp32, [1, length], floats(&vec![value; size]))
    };
    let sizes = [(2, 2.0), (4, 4.0), (1, 1.0), (3, 3.0)];
    let request = |(size, value): (usize, f32)| {
        let inputs = vec![tensor("A", size, value), tensor("B", size, 1.0)];
        ask(1, inputs, &["SUM", "DIFFERENCE"])
    };
    let answers = run_batch(instance, sizes.map(request).into());
    for (answer, (size, value)) in answers.into_iter().zip(sizes) {
        let expected = [tensor("SUM", size, value + 1.0), tensor("DIFFERENCE", size, value - 1.0)];
        assert_eq!(answer.map(|answer| answer.outputs).ok(), Some(expected.into()));
    }
}

/// Checks that an input made from the batch has one number per request.
///
/// # Panics
/// If not.
pub fn check_batch_input(instance: &mut dyn ModelInstance) {
    let number =
        |name: &str, value: i32| Tensor::new(name, Int32, [1, 1], value.to_le_bytes().to_vec());
    let requests = [10, 20, 30].map(|value| ask(1, vec![number("A", value)], &["SUM"]));
    let answers = run_batch(instance, requests.into());
    for (answer, sum) in answers.into_iter().zip([11, 22, 33]) {
        assert_eq!(answer.map(|answer| answer.outputs).ok(), Some(vec![number("SUM", sum)]));
    }
}
