//! Every text and the order of the checks.

use galatea_config::testing;

use super::{error::BATCH_DIMENSION_NOTE, *};

fn spec(name: &str, data_type: DataType, dims: &[i64]) -> String {
    testing::tensors("input", [name], data_type, dims)
}

fn config(max_batch_size: u32, inputs: &str) -> ModelConfig {
    testing::model_config(&format!(
        "backend: 'identity' max_batch_size: {max_batch_size} {inputs}
         output {{ name: 'OUT' data_type: TYPE_INT32 dims: 2 }}"
    ))
}

fn ints(name: &str, shape: &[i64], byte_size: usize) -> Tensor {
    Tensor::new(name, DataType::Int32, shape, vec![0u8; byte_size])
}

fn strings(shape: &[i64], data: &[u8]) -> Tensor {
    Tensor::new("S", DataType::Bytes, shape, data.to_vec())
}

#[track_caller]
fn check(config: &ModelConfig, inputs: Vec<Tensor>, expected: Result<u32, &str>) {
    let mut request = InferRequest::new("m");
    request.inputs = inputs;
    let got = prepare(request, config).map(|prepared| prepared.batch_size());
    match (got, expected) {
        (Ok(got), Ok(expected)) => assert_eq!(got, expected),
        (Err(error), Err(text)) => assert_eq!(error.message(), text),
        (got, _) => panic!("expected {expected:?}, got {got:?}"),
    }
}

#[test]
fn inputs_of_batching_models_are_checked() {
    let optional = "input { name: 'B' data_type: TYPE_INT32 dims: -1 optional: true }";
    let model = config(4, &format!("{} {optional}", spec("A", DataType::Int32, &[2])));
    check(&model, vec![ints("A", &[3, 2], 24)], Ok(3));
    check(&model, vec![ints("A", &[3, 2], 24), ints("B", &[3, 7], 84)], Ok(3));
    check(
        &model,
        vec![],
        Err(
            "[request id: <id_unknown>] expected number of inputs between 1 and 2 but got 0 inputs for model 'm'. \
             Got input(s) [], but missing required input(s) ['A']. Please provide all required input(s).",
        ),
    );
    check(
        &model,
        vec![ints("B", &[1, 2], 8)],
        Err(
            "[request id: <id_unknown>] expected number of inputs between 1 and 2 but got 1 inputs for model 'm'. \
             Got input(s) ['B'], but missing required input(s) ['A']. Please provide all required input(s).",
        ),
    );
    check(
        &model,
        vec![ints("X", &[1, 2], 8)],
        Err("unexpected inference input 'X' for model 'm' (its inputs: 'A', 'B')"),
    );
    check(
        &model,
        vec![ints("A", &[5, 2], 40)],
        Err("[request id: <id_unknown>] inference request batch-size must be <= 4 for 'm'"),
    );
    check(
        &model,
        vec![ints("A", &[0, 2], 0)],
        Err("[request id: <id_unknown>] inference request batch-size must be <= 4 for 'm'"),
    );
    check(
        &model,
        vec![ints("A", &[1, 2], 8), ints("B", &[2, 1], 8)],
        Err("[request id: <id_unknown>] input 'B' batch size does not match other inputs for 'm'"),
    );
    check(
        &model,
        vec![ints("A", &[], 4)],
        Err(
            "[request id: <id_unknown>] input 'A' has no shape but model requires batch dimension for 'm'",
        ),
    );
    let expected = format!(
        "[request id: <id_unknown>] unexpected shape for input 'A' for model 'm'. Expected [-1,2], got [1,3]. \
         {BATCH_DIMENSION_NOTE}"
    );
    check(&model, vec![ints("A", &[1, 3], 12)], Err(&expected));
    check(
        &model,
        vec![ints("A", &[1, 2], 9)],
        Err(
            "[request id: <id_unknown>] input byte size mismatch for input 'A' for model 'm'. Expected 8, got 9",
        ),
    );
}

#[test]
fn inputs_of_models_without_batching_are_checked() {
    let model = config(0, &spec("A", DataType::Int32, &[-1, 2]));
    check(&model, vec![ints("A", &[0, 2], 0)], Ok(1));
    check(
        &model,
        vec![ints("A", &[2], 8)],
        Err(
            "[request id: <id_unknown>] unexpected shape for input 'A' for model 'm'. Expected [-1,2], got [2]. ",
        ),
    );
    check(
        &model,
        vec![ints("A", &[-1, 2], 8)],
        Err(
            "[request id: <id_unknown>] All input dimensions should be specified for input 'A' for model 'm', got [-1,2]",
        ),
    );
    check(
        &model,
        vec![ints("A", &[i64::MAX, 2], 8)],
        Err(
            "[request id: <id_unknown>] the shape [9223372036854775807,2] of input 'A' for model 'm' has more \
             elements than can be addressed",
        ),
    );
    let mut wrong_type = ints("A", &[1, 2], 8);
    wrong_type.data_type = DataType::Fp32;
    check(
        &model,
        vec![wrong_type],
        Err(
            "[request id: <id_unknown>] inference input 'A' data-type is 'FP32', but model 'm' expects 'INT32'",
        ),
    );
}

#[test]
fn an_item_without_batch_dimension_is_not_taken_for_a_large_batch() {
    let model = config(4, &spec("A", DataType::Int32, &[-1, 3]));
    let text = "[request id: <id_unknown>] inference request batch-size must be <= 4 for 'm'";
    let item = " (input 'A': [224,3] is the shape of one item without its batch dimension: send [1,224,3])";
    check(&model, vec![ints("A", &[224, 3], 0)], Err(&format!("{text}{item}")));
    check(&model, vec![ints("A", &[5, 1, 3], 0)], Err(text));
}

#[test]
fn the_batch_dimension_is_separated() {
    let of = |got: &[i64], dims: &[i64], has_batching| {
        error::batch_reading(&got.into(), &dims.into(), has_batching).trim().to_owned()
    };
    let missing = "The request has the shape of one item without its batch dimension: send [1,2].";
    assert_eq!(of(&[2], &[2], true), missing);
    assert_eq!(of(&[3], &[2], true), "");
    let not_taken = "The model takes no batch dimension, its max_batch_size is 0: send [7,2].";
    assert_eq!(of(&[1, 7, 2], &[-1, 2], false), not_taken);
    assert_eq!(of(&[3, 7, 2], &[-1, 2], false), "", "several items");
    assert_eq!(of(&[], &[2], false), "");
}

#[test]
fn string_tensors_are_checked() {
    let model = config(0, &spec("S", DataType::Bytes, &[2]));
    check(&model, vec![strings(&[2], b"\x01\0\0\0a\0\0\0\0")], Ok(1));
    check(
        &model,
        vec![strings(&[2], b"\x01\0\0\0a\0\0")],
        Err(
            "[request id: <id_unknown>] incomplete string length indicator for inference input 'S' for model 'm', \
             expecting 4 bytes but only 2 bytes available. Please make sure the string length indicator is in one buffer.",
        ),
    );
    check(
        &model,
        vec![strings(&[2], b"\x09\0\0\0a")],
        Err(
            "[request id: <id_unknown>] incomplete string data for inference input 'S' for model 'm', expecting \
             string of length 9 but only 1 bytes available. Please make sure the string is in one buffer.",
        ),
    );
    check(
        &model,
        vec![strings(&[2], b"\0\0\0\0")],
        Err(
            "[request id: <id_unknown>] expected 2 string elements for inference input 'S' for model 'm', got 1",
        ),
    );
    check(
        &model,
        vec![strings(&[2], &[0; 12])],
        Err(
            "[request id: <id_unknown>] unexpected number of string elements 3 for inference input 'S' for model \
             'm', expecting 2",
        ),
    );
}

#[test]
fn unknown_requested_outputs_are_refused() {
    let model = config(0, "");
    let mut request = InferRequest::new("m");
    request.outputs = vec!["OUT".into()];
    assert!(prepare(request.clone(), &model).is_ok());
    request.outputs = vec!["nope".into()];
    let error = prepare(request, &model).expect_err("unknown output");
    assert_eq!(
        error.message(),
        "unexpected inference output 'nope' for model 'm' (its outputs: 'OUT')"
    );
}
