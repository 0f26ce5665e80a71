//! Ragged batches: inputs in one dimension, outputs divided by the shapes of an input.

use crate::support::{instance, ir, load_error, model_folder};
use galatea_backend::testing::{RAGGED, RAGGED_WITH_BATCH_INPUT, check_batch_input, check_ragged};
use galatea_types::DataType::{Fp32, Int32};

#[test]
fn requests_of_different_shapes_run_together() {
    check_ragged(&mut *instance(&model_folder(&ir::add_sub(Fp32, &[-1])), RAGGED));
}

#[test]
fn batch_inputs_are_passed_to_the_model() {
    let text = RAGGED_WITH_BATCH_INPUT;
    check_batch_input(&mut *instance(&model_folder(&ir::add_sub(Int32, &[-1])), text));
}

#[test]
fn a_model_with_two_dimensions_is_refused() {
    let error = load_error(&model_folder(&ir::add_sub(Fp32, &[-1, -1])), RAGGED);
    assert!(error.contains("tensor 'A': the model expects 2 dimensions"), "{error}");
}
