//! Operators and types that the library has not.

use galatea_types::DataType::{Bf16, Fp32};

use crate::support::{load_error, model_folder, onnx::Builder};

#[test]
fn an_operator_without_support_for_a_data_type_is_named() {
    let graph = Builder::default().input("X", Bf16, &[-1, 2]).output("Y", Bf16, &[-1, 2]);
    let error = load_error(&model_folder(&graph.node("Add", &["X", "X"], &["Y"]).bytes()), "");
    assert!(error.contains("ONNX Runtime cannot compute Add of opset "), "{error}");
    assert!(error.contains(" for BF16"), "{error}");
    assert!(
        error
            .contains("write `backend: \"openvino\"` and `default_model_filename: \"model.onnx\"`"),
        "{error}"
    );
}

#[test]
fn a_missing_operator_is_named() {
    let graph = Builder::default().input("X", Fp32, &[-1, 2]).output("Y", Fp32, &[-1, 2]);
    let error = load_error(&model_folder(&graph.node("NoSuchOp", &["X"], &["Y"]).bytes()), "");
    assert!(error.contains("ONNX Runtime has no operator NoSuchOp in opset "), "{error}");
}
