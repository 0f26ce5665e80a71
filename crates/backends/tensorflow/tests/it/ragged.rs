//! Ragged batches: inputs in one dimension, outputs divided by the shapes of an input.

use crate::support::{graph, instance, load_error, model_folder};
use galatea_backend::testing::{RAGGED, RAGGED_WITH_BATCH_INPUT, check_batch_input, check_ragged};
use galatea_types::DataType::{self, Fp32, Int32};

/// `SUM` and `DIFFERENCE` of `A` and `B`, all of one dimension.
fn add_sub(data_type: DataType) -> Vec<u8> {
    graph::Builder::default()
        .input("A", data_type, &[-1])
        .input("B", data_type, &[-1])
        .node("AddV2", "sum", &["in_A", "in_B"], data_type)
        .node("Sub", "difference", &["in_A", "in_B"], data_type)
        .output("SUM", "sum", data_type, &[-1])
        .output("DIFFERENCE", "difference", data_type, &[-1])
        .bytes()
}

#[test]
fn requests_of_different_shapes_run_together() {
    check_ragged(&mut *instance(
        &model_folder(&add_sub(Fp32)),
        &format!("platform: 'tensorflow_savedmodel' {RAGGED}"),
    ));
}

#[test]
fn batch_inputs_are_passed_to_the_model() {
    let text = &format!("platform: 'tensorflow_savedmodel' {RAGGED_WITH_BATCH_INPUT}");
    check_batch_input(&mut *instance(&model_folder(&add_sub(Int32)), text));
}

#[test]
fn a_model_with_two_dimensions_is_refused() {
    let error = load_error(
        &model_folder(&graph::add_sub(Fp32).bytes()),
        &format!("platform: 'tensorflow_savedmodel' {RAGGED}"),
    );
    assert!(
        error.contains("with shape [-1]  for ragged input 'A', model provides [-1,-1]"),
        "{error}"
    );
}
