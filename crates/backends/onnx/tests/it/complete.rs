//! Configurations filled in from the model.

use std::collections::BTreeMap;

use crate::support::{
    Folder, complete, model_folder,
    onnx::{self, Builder},
};
use galatea_config::RawModelConfig;
use galatea_proto::inference::model_config::SchedulingChoice;
use galatea_types::DataType::{Bytes, Fp32, Int64};

fn completed(folder: &Folder, text: &str) -> RawModelConfig {
    complete(folder, text, &BTreeMap::new()).expect("completed")
}

#[test]
fn completion_fills_in_a_model_that_can_batch() {
    let config = completed(&model_folder(&onnx::add_sub(Fp32)), "");
    assert_eq!(config.max_batch_size, 4);
    assert!(matches!(config.scheduling_choice, Some(SchedulingChoice::DynamicBatching(_))));
    let inputs: Vec<_> =
        config.input.iter().map(|i| (i.name.as_str(), i.data_type, &i.dims[..])).collect();
    assert_eq!(inputs, [("A", 11, &[-1][..]), ("B", 11, &[-1][..])]);
    let outputs: Vec<_> = config.output.iter().map(|o| (o.name.as_str(), &o.dims[..])).collect();
    assert_eq!(outputs, [("SUM", &[-1][..]), ("DIFFERENCE", &[-1][..])]);
}

#[test]
fn completion_uses_the_default_batch_size_of_the_command_line() {
    let folder = model_folder(&onnx::identity(Fp32));
    let of = |size: &str| {
        let settings = BTreeMap::from([("default-max-batch-size".to_owned(), size.to_owned())]);
        complete(&folder, "", &settings)
    };
    assert_eq!(of("16").unwrap().max_batch_size, 16);
    let one = of("1").unwrap();
    assert_eq!((one.max_batch_size, one.scheduling_choice), (1, None));
    let none = of("0").unwrap();
    assert_eq!((none.max_batch_size, &none.input[0].dims[..]), (0, &[-1, -1][..]));
    let error = of("many").unwrap_err();
    let expected = "failed to convert default-max-batch-size 'many' to integral number";
    assert_eq!(error.message(), expected);
}

#[test]
fn completion_keeps_configured_fields() {
    let folder = model_folder(&onnx::identity(Bytes));
    let config = completed(&folder, "max_batch_size: 2 sequence_batching {}");
    assert_eq!(config.max_batch_size, 2);
    assert!(matches!(config.scheduling_choice, Some(SchedulingChoice::SequenceBatching(_))));
    assert_eq!(config.input[0].data_type, 13);
    let half = completed(&folder, r#"input { name: "X" data_type: TYPE_STRING dims: 3 }"#);
    assert_eq!((&half.input[0].dims[..], &half.output[0].dims[..]), (&[3][..], &[-1][..]));
    let whole = r#"input { name: "X" data_type: TYPE_STRING dims: [-1, 3] }
        output { name: "Y" data_type: TYPE_STRING dims: [-1, -1] }"#;
    assert_eq!(completed(&folder, whole).max_batch_size, 0, "both sides given: left alone");
}

#[test]
fn completion_disables_batching_for_a_model_that_cannot_batch() {
    let graph = Builder::default()
        .input("X", Fp32, &[-1, 3])
        .input("S", Int64, &[])
        .output("Y", Fp32, &[-1, 3])
        .output("T", Int64, &[])
        .node("Identity", &["X"], &["Y"])
        .node("Identity", &["S"], &["T"]);
    let folder = model_folder(&graph.bytes());
    let config = completed(&folder, "");
    assert_eq!((config.max_batch_size, config.scheduling_choice.is_none()), (0, true));
    assert_eq!(config.input[0].dims, [-1, 3]);
    assert_eq!((&config.input[1].dims[..], &config.input[1].reshape), (&[1][..], &None));
    let error = complete(&folder, "max_batch_size: 8", &BTreeMap::new()).unwrap_err();
    let expected = "autofill failed for model 'm': model does not support batching while non-zero \
                    max_batch_size is specified";
    assert_eq!(error.message(), expected);
    crate::support::load(&folder, "").expect("loads as completed");
}

#[test]
fn completion_handles_inputs_with_only_a_batch_dimension() {
    let graph = Builder::default().input("X", Fp32, &[-1]).output("Y", Fp32, &[-1]).node(
        "Identity",
        &["X"],
        &["Y"],
    );
    let folder = model_folder(&graph.bytes());
    let config = completed(&folder, "");
    assert_eq!(config.input[0].dims, [1]);
    assert_eq!(config.input[0].reshape.as_ref().unwrap().shape, [0i64; 0]);
    crate::support::load(&folder, "").expect("loads as completed");
}

#[test]
fn completion_ignores_initialisers_listed_as_inputs() {
    let graph = Builder::default()
        .input("X", Fp32, &[-1, 1])
        .input("W", Fp32, &[1])
        .constant("W", Fp32, &[1], &crate::support::floats(&[2.0]))
        .output("Y", Fp32, &[-1, 1])
        .node("Mul", &["X", "W"], &["Y"]);
    let config = completed(&model_folder(&graph.bytes()), "");
    assert_eq!(config.input.len(), 1);
    assert_eq!(config.input[0].name, "X");
}
