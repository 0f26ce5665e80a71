//! Configurations that do not fit their model, and files that are none.

use std::collections::BTreeMap;

use crate::support::{complete, ir, load, load_error, model_folder};
use galatea_backend::{InstanceSpec, testing::instance_spec};
use galatea_config::InstanceKind;
use galatea_types::DataType;

fn port(side: &str, name: &str, data_type: &str, dims: &str) -> String {
    format!("{side} {{ name: '{name}' data_type: TYPE_{data_type} dims: {dims} }} ")
}

fn pair(data_type: &str, dims: &str) -> String {
    ["A", "B"].map(|name| port("input", name, data_type, dims)).concat()
        + &port("output", "SUM", data_type, dims)
}

#[test]
fn mismatched_tensors_are_refused_by_name() {
    let folder = model_folder(&ir::add_sub(DataType::Fp32, &[-1, 4]));
    let inputs = pair("FP32", "[ -1, 4 ]");
    for (text, expected) in [
        (
            port("input", "A", "FP32", "[ -1, 4 ]") + &port("output", "SUM", "FP32", "[ -1, 4 ]"),
            "unable to load model 'm', configuration expects 1 inputs, model provides 2",
        ),
        (
            inputs.replace("'SUM'", "'SUMM'"),
            "unexpected inference output 'SUMM', allowed outputs are: DIFFERENCE, SUM",
        ),
        (
            pair("FP32", "[ -1, 5 ]"),
            "model 'm', tensor 'A': the model expects 2 dimensions (shape [-1,4]) but the model configuration specifies 2 \
             dimensions (shape [-1,5])",
        ),
        (
            pair("STRING", "[ -1, 4 ]"),
            "unable to load model 'm', configuration expects datatype TYPE_STRING for input 'A', model provides TYPE_FP32",
        ),
        (
            format!("{inputs} instance_group {{ kind: KIND_GPU gpus: 1 }}"),
            "unable to load model 'm', Triton openVINO backend supports only CPU device: instance group 'm_0' is for GPUs \
             (KIND_GPU)",
        ),
        (
            format!(
                "{inputs} parameters {{ key: 'TARGET_DEVICE' value {{ string_value: 'GPU' }} }}"
            ),
            "expected the parameter 'TARGET_DEVICE' to be CPU, got GPU",
        ),
    ] {
        assert_eq!(load_error(&folder, &text), expected);
    }
}

#[test]
fn data_types_are_converted_like_triton() {
    let folder = model_folder(&ir::add_sub(DataType::Fp32, &[-1, 4]));
    load(&folder, &pair("INT32", "[ -1, 4 ]")).expect("converted");
}

#[test]
fn files_that_are_not_models_are_refused() {
    let model = ir::add_sub(DataType::Fp32, &[-1, 4]);
    let inputs = pair("FP32", "[ -1, 4 ]");
    for cut in [0, 10, model.len() / 2, model.len() - 4] {
        let error = load_error(&model_folder(&model[..cut]), &inputs);
        assert!(error.contains("failed to load model 'm'"), "{error}");
        assert!(error.contains("the model's file cannot be loaded"), "{error}");
    }
    let empty = model_folder(&model);
    std::fs::remove_file(empty.version_dir().join("model.xml")).unwrap();
    assert!(load_error(&empty, &inputs).starts_with("unable to find '"));
}

#[test]
fn missing_or_truncated_weights_are_refused_by_name() {
    let model = ir::biased(1000);
    let text = port("input", "X", "FP32", "1000") + &port("output", "Y", "FP32", "1000");
    let missing = load_error(&model_folder(&model), &text);
    assert!(
        missing.contains("the file 'model.bin' with the weights of the model is missing"),
        "{missing}"
    );
    let short = model_folder(&model).and_file("model.bin", &[0; 1000]);
    let short = load_error(&short, &text);
    assert!(short.contains("'model.bin' with the weights of the model has 1000 bytes"), "{short}");
}

#[test]
fn omitted_fields_are_completed() {
    let folder = model_folder(&ir::add_sub(DataType::Fp32, &[-1, 4]));
    let raw = complete(&folder, "", &BTreeMap::new()).expect("completed");
    let names: Vec<_> = raw.input.iter().map(|input| (&*input.name, &*input.dims)).collect();
    assert_eq!(names, [("A", &[-1, 4][..]), ("B", &[-1, 4])]);
    assert_eq!((raw.max_batch_size, raw.scheduling_choice.is_some()), (0, false));
    let batched = model_folder(
        &String::from_utf8(ir::add_sub(DataType::Fp32, &[-1, 4]))
            .unwrap()
            .replace(
                "</port>",
                "<rt_info><attribute name=\"layout\" version=\"0\" layout=\"[N,C]\"/></rt_info></port>",
            )
            .into_bytes(),
    );
    let raw = complete(&batched, "", &BTreeMap::new()).expect("completed");
    assert_eq!((raw.max_batch_size, raw.scheduling_choice.is_some()), (4, true));
    assert_eq!(raw.output[0].dims, [4]);
    let eight = BTreeMap::from([("default-max-batch-size".to_owned(), "8".to_owned())]);
    assert_eq!(complete(&batched, "", &eight).expect("completed").max_batch_size, 8);
}

/// Streams are created for a number of instances: another number needs a reload, unless the configuration sets the streams.
#[test]
fn instances_can_be_added_only_with_a_configured_number_of_streams() {
    let folder = model_folder(&ir::add_sub(DataType::Fp32, &[-1, 4]));
    let cpu = |count| (0..count).map(|index| instance_spec("m", index)).collect::<Vec<_>>();
    let inputs = pair("FP32", "[ -1, 4 ]") + "instance_group { count: 2 kind: KIND_CPU } ";
    let model = load(&folder, &inputs).expect("loads");
    assert!(model.can_have(&cpu(2)) && !model.can_have(&cpu(1)) && !model.can_have(&cpu(3)));
    let said = inputs + "parameters { key: 'NUM_STREAMS' value { string_value: '2' } }";
    let model = load(&folder, &said).expect("loads");
    assert!(model.can_have(&cpu(1)) && model.can_have(&cpu(5)));
    let gpu = InstanceSpec { kind: InstanceKind::Gpu, ..instance_spec("m", 1) };
    assert!(!model.can_have(&[gpu]));
}
