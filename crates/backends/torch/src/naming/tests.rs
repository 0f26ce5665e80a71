//! Which argument each input is, under every naming.

use galatea_config::testing;

use super::*;

fn config(inputs: &[&str], outputs: &[&str]) -> ModelConfig {
    let tensor = |field: &str, name: &&str| {
        let is_text = name.starts_with("text");
        let data_type = if is_text { DataType::Bytes } else { DataType::Fp32 };
        testing::tensors(field, [name], data_type, &[-1])
    };
    let inputs: String = inputs.iter().map(|name| tensor("input", name)).collect();
    let outputs: String = outputs.iter().map(|name| tensor("output", name)).collect();
    testing::model_config(&format!("backend: 'pytorch' {inputs} {outputs}"))
}

fn argument(name: &str, takes: ArgumentKind) -> Argument {
    let type_name = match takes {
        ArgumentKind::Tensor => "Tensor",
        ArgumentKind::Strings => "str[]",
        ArgumentKind::Dictionary => "Dict(str, Tensor)",
        ArgumentKind::Other => "int",
    };
    Argument { name: name.into(), type_name: type_name.into(), takes, has_default: false }
}

fn tensors(names: &[&str]) -> Vec<Argument> {
    names.iter().map(|name| argument(name, ArgumentKind::Tensor)).collect()
}

#[track_caller]
fn check_positions_of(inputs: &[&str], arguments: &[&str], expected: &[usize]) {
    let assigned = Inputs::assign(&config(inputs, &[]), &tensors(arguments)).expect("fits");
    assert_eq!(assigned, Inputs { form: ForwardForm::Positional, positions: expected.to_vec() });
}

#[track_caller]
fn check_error(inputs: &[&str], arguments: &[Argument], expected: &str) {
    let error = Inputs::assign(&config(inputs, &[]), arguments).expect_err("does not fit");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn inputs_are_matched_by_argument_name_then_index_then_order() {
    check_positions_of(&["b", "a"], &["a", "b"], &[1, 0]);
    check_positions_of(&["INPUT__1", "INPUT__0"], &["a", "b"], &[1, 0]);
    check_positions_of(&["x__1", "y__0"], &["a", "b"], &[1, 0]);
    // One that is no argument, and one that has no index.
    check_positions_of(&["b", "other"], &["a", "b"], &[0, 1]);
    check_positions_of(&["INPUT__1", "other"], &["a", "b"], &[0, 1]);
    check_positions_of(&["INPUT__one", "INPUT__0"], &["a", "b"], &[0, 1]);
    // An argument may itself be named like an index.
    check_positions_of(&["INPUT__1", "INPUT__0"], &["INPUT__1", "INPUT__0"], &[0, 1]);
}

#[test]
fn counts_indices_and_kinds_must_match() {
    check_error(
        &["a"],
        &tensors(&["a", "b"]),
        "unable to load model 'm', configuration expects 1 inputs, model provides 2",
    );
    check_error(
        &["INPUT__0", "INPUT__2"],
        &tensors(&["a", "b"]),
        "unable to load model 'm', input 'INPUT__2' refers to argument 2 of forward(), but the configuration \
         has 2 inputs: their indices must be 0 to 1",
    );
    check_error(
        &["x__0", "y__0"],
        &tensors(&["a", "b"]),
        "unable to load model 'm', inputs 'x__0' and 'y__0' both refer to argument 0 of forward()",
    );
    check_error(
        &["text"],
        &tensors(&["a"]),
        "unable to load model 'm', input 'text' is TYPE_STRING, but argument 'a' of forward() takes Tensor",
    );
    check_error(
        &["a", "b"],
        &[argument("a", ArgumentKind::Tensor), argument("b", ArgumentKind::Other)],
        "An input of type 'int' was detected in the model. Only a single input of type Dict(str, Tensor) or \
         input(s) of type Tensor are supported.",
    );
    check_error(
        &["a", "b"],
        &[argument("a", ArgumentKind::Dictionary), argument("b", ArgumentKind::Dictionary)],
        "Multiple inputs of kind DictType were detected. Only a single input of type Dict(str, Tensor) is \
         supported.",
    );
    check_error(
        &[],
        &tensors(&["a"]),
        "model configuration must contain at least one input, none were specified.",
    );
}

#[test]
fn a_dictionary_accepts_any_input_names() {
    let arguments = [argument("d", ArgumentKind::Dictionary)];
    let assigned = Inputs::assign(&config(&["x", "y__7"], &[]), &arguments).expect("fits");
    assert_eq!(assigned.form, ForwardForm::Dictionary);
}

#[test]
fn arguments_with_a_default_may_be_omitted() {
    let mut arguments =
        vec![argument("a", ArgumentKind::Tensor), argument("scale", ArgumentKind::Other)];
    arguments[1].has_default = true;
    let assigned = Inputs::assign(&config(&["a"], &[]), &arguments).expect("fits");
    assert_eq!(assigned.positions, [0]);
}

#[test]
fn outputs_are_matched_by_index_or_order() {
    let positions = |names: &[&str]| output_positions(&config(&[], names)).expect("fits");
    assert_eq!(positions(&["OUTPUT__1", "OUTPUT__0"]), [1, 0]);
    assert_eq!(positions(&["label", "OUTPUT__0"]), [0, 1]);
    assert_eq!(positions(&["a__b", "OUTPUT__0"]), [0, 1]);
    assert!(output_positions(&config(&[], &[])).is_err());
}
