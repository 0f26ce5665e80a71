//! Every row acts, and leaves alone what it is not about. That every other field is honoured is held by `reference`.

use super::*;
use crate::{
    CheckContext, MissingGpus, NormalizeContext, normalize, parse_text, testing::model_config,
};

const ONNX: &str = "backend: 'onnxruntime' max_batch_size: 8 dynamic_batching {}
    output { name: 'OUT' data_type: TYPE_FP32 dims: -1 }";
const PYTHON: &str = "backend: 'python' max_batch_size: 8 dynamic_batching {}
    input { name: 'IN' data_type: TYPE_FP32 dims: -1 }
    output { name: 'OUT' data_type: TYPE_FP32 dims: -1 }";
const ENSEMBLE: &str = "platform: 'ensemble' output { name: 'OUT' data_type: TYPE_FP32 dims: -1 }";

/// For each row, in order: the smallest configuration it is about, and one beside it that it leaves alone.
const EXAMPLES: &[(&str, &str, &str, &str)] = &[
    (
        "batch_input",
        PYTHON,
        "batch_input { kind: BATCH_ITEM_SHAPE target_name: 'S' data_type: TYPE_INT32 source_input: 'IN' }",
        "",
    ),
    ("batch_output", PYTHON, "batch_output { target_name: 'OUT' source_input: 'IN' }", ""),
    (
        "parameters.pad_batches",
        PYTHON,
        "parameters { key: 'pad_batches' value { string_value: 'true' } }",
        "parameters { key: 'pad_batches' value { string_value: 'false' } }",
    ),
    ("cc_model_filenames", ONNX, "cc_model_filenames { key: '8.0' value: 'a.onnx' }", ""),
    (
        "optimization.graph.level",
        PYTHON,
        "optimization { graph { level: 1 } }",
        "optimization { graph { level: 0 } }",
    ),
    (
        "optimization.execution_accelerators",
        PYTHON,
        "optimization { execution_accelerators { gpu_execution_accelerator { name: 'tensorrt' } } }",
        "optimization { execution_accelerators {} }",
    ),
    (
        "optimization.cuda",
        ONNX,
        "optimization { cuda { graph_spec { batch_size: 1 } } }",
        "optimization { cuda {} }",
    ),
    (
        "optimization.gather_kernel_buffer_threshold",
        ONNX,
        "optimization { gather_kernel_buffer_threshold: 4 }",
        "",
    ),
    (
        "optimization.eager_batching",
        ONNX,
        "optimization { eager_batching: true }",
        "optimization { input_pinned_memory { enable: false } }",
    ),
    (
        "instance_group.secondary_devices",
        ONNX,
        "instance_group { secondary_devices { kind: KIND_NVDLA } }",
        "",
    ),
    ("instance_group.passive", ONNX, "instance_group { passive: true }", ""),
    (
        "ensemble_scheduling.step.model_namespace",
        ENSEMBLE,
        "input { name: 'IN' data_type: TYPE_FP32 dims: 4 } ensemble_scheduling {
           step { model_name: 'a' model_namespace: 'n'
                  input_map { key: 'X' value: 'IN' } output_map { key: 'Y' value: 'OUT' } } }",
        "input { name: 'IN' data_type: TYPE_FP32 dims: 4 } ensemble_scheduling {
           step { model_name: 'a'
                  input_map { key: 'X' value: 'IN' } output_map { key: 'Y' value: 'OUT' } } }",
    ),
    ("model_operations", PYTHON, "model_operations { op_library_filename: 'libops.so' }", ""),
    (
        "dynamic_batching",
        "backend: 'python'",
        "dynamic_batching { max_queue_delay_microseconds: 100 }",
        "dynamic_batching { default_queue_policy { max_queue_size: 2 } }",
    ),
];

#[test]
fn every_row_of_the_warning_table_has_effect() {
    assert_eq!(ROWS.len(), EXAMPLES.len());
    for (row, &(field, base, with, without)) in ROWS.iter().zip(EXAMPLES) {
        assert_eq!(row.field, field, "examples are in the order of the rows");
        let text = format!("{field} of model 'm' {}", row.sentence);
        assert_eq!(texts(&model_config(&format!("{base} {with}")).warnings()), [text]);
        assert!(model_config(&format!("{base} {without}")).warnings().is_empty(), "{field}");
    }
}

fn texts(warnings: &[Diagnostic]) -> Vec<String> {
    warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn tensors_listed_twice_are_reported() {
    let tensors = |side: &str, names: &[&str]| -> String {
        let one = |name| format!("{side} {{ name: '{name}' data_type: TYPE_FP32 dims: 1 }}\n");
        names.iter().map(one).collect()
    };
    let text = format!(
        "backend: 'python'\n{}{}",
        tensors("input", &["A", "B", "A", "A"]),
        tensors("output", &["A", "A"])
    );
    let warnings = model_config(&text).warnings();
    let fields: Vec<_> = warnings.iter().map(|found| found.field.to_string()).collect();
    assert_eq!(fields, ["input[2].name", "input[3].name", "output[1].name"]);
    assert!(warnings[0].text.starts_with("input 'A' of model 'm' is listed twice"));
    let once =
        format!("backend: 'python'\n{}{}", tensors("input", &["A"]), tensors("output", &["A"]));
    assert!(model_config(&once).warnings().is_empty());
}

#[test]
fn several_warnings_are_all_reported() {
    let config = model_config(&format!(
        "{ONNX} optimization {{ eager_batching: true gather_kernel_buffer_threshold: 1 }}"
    ));
    let warnings = config.warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
}

#[test]
fn groups_with_missing_gpus_give_one_warning() {
    let warnings = |text: &str| -> Vec<String> {
        let tensors = "input { name: 'IN' data_type: TYPE_FP32 dims: 4 } \
                       output { name: 'OUT' data_type: TYPE_FP32 dims: 4 }";
        let context = NormalizeContext { directory_name: "m", ..NormalizeContext::default() };
        let raw = parse_text(&format!("{tensors} {text}")).expect("a text");
        let normalized = normalize(raw, &context).expect("complete");
        let context = CheckContext {
            directory_name: "m",
            supports_gpus: true,
            missing_gpus: MissingGpus::UseCpu,
            ..CheckContext::default()
        };
        let config = ModelConfig::check(normalized, &context).expect("valid");
        config.warnings().into_iter().map(|found| found.text).collect()
    };
    let start = "instance_group of model 'm' asks for GPUs that this server does not have:";
    assert_eq!(
        warnings("backend: 'onnxruntime' instance_group { kind: KIND_GPU }"),
        [format!("{start} 1 instance runs (group 'm_0') on the CPU")]
    );
    for backend in ["onnxruntime", "pytorch", "python"] {
        let text = format!(
            "backend: '{backend}'
             instance_group [ {{ kind: KIND_CPU }}, {{ name: 'a' kind: KIND_GPU gpus: [ 0, 1 ] count: 2
               secondary_devices {{ kind: KIND_NVDLA }} }}, {{ name: 'b' kind: KIND_GPU }} ]
             optimization {{ cuda {{ graphs: true }} execution_accelerators {{ gpu_execution_accelerator [
               {{ name: 'tensorrt' }}, {{ name: 'gpu_io' }} ] }} }}"
        );
        assert_eq!(
            warnings(&text),
            [format!(
                "{start} 5 instances run (groups 'a', 'b') on the CPU, without accelerator 'tensorrt', accelerator \
                 'gpu_io', optimization.cuda, secondary_devices"
            )],
            "{backend}"
        );
    }
    assert_eq!(warnings("backend: 'python' instance_group { kind: KIND_CPU }"), [""; 0]);
}
