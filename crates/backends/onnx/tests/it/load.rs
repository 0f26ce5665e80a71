//! What loads, what is refused, and with which words.

use std::{collections::BTreeMap, fs};

use crate::support::{
    Folder, ask, backend, complete, configure, context, floats, infer, instance, load, load_error,
    model_folder,
    onnx::{self, Builder},
};
use galatea_backend::{InstanceSpec, testing::instance_spec};
use galatea_backend_onnx::OnnxBackend;
use galatea_config::{Diagnostic, InstanceKind};
use galatea_types::{Code, DataType, Tensor};

use DataType::{Fp32, Int64};

const IDENTITY: &str = r#"max_batch_size: 8
    input { name: "X" data_type: TYPE_FP32 dims: -1 }
    output { name: "Y" data_type: TYPE_FP32 dims: -1 }"#;

fn identity() -> Folder {
    model_folder(&onnx::identity(Fp32))
}

/// `Y = X` of the given dimensions on both sides.
fn identity_of(input: &[i64], output: &[i64]) -> Folder {
    let graph = Builder::default().input("X", Fp32, input).output("Y", Fp32, output);
    model_folder(&graph.node("Identity", &["X"], &["Y"]).bytes())
}

#[track_caller]
fn assert_refused(folder: &Folder, text: &str, expected: &str) {
    assert_eq!(load_error(folder, text), expected);
}

#[test]
fn a_file_that_is_not_a_library_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &std::path::Path| {
        OnnxBackend::open(path, &BTreeMap::new()).err().expect("an error").message().to_owned()
    };
    let missing = folder.path().join("libnone.so");
    let error = open(&missing);
    assert!(error.contains(&missing.display().to_string()), "{error}");
    assert!(error.contains("No such file"), "{error}");
    let text = folder.path().join("libtext.so");
    fs::write(&text, "no library").unwrap();
    assert!(open(&text).contains("libtext.so"));
    let libc = open(std::path::Path::new("libc.so.6"));
    assert!(libc.contains("libc.so.6") && libc.contains("OrtGetApiBase"), "{libc}");
}

#[test]
fn unknown_tensor_names_are_refused() {
    let renamed = IDENTITY.replace("\"X\"", "\"Z\"");
    assert_refused(&identity(), &renamed, "unexpected inference input 'Z', allowed inputs are: X");
    let renamed = IDENTITY.replace("\"Y\"", "\"Z\"");
    assert_refused(
        &identity(),
        &renamed,
        "unexpected inference output 'Z', allowed outputs are: Y",
    );
}

#[test]
fn wrong_data_types_are_refused() {
    let typed = IDENTITY.replacen("TYPE_FP32", "TYPE_INT64", 1);
    let expected = "unable to load model 'm', configuration expects datatype TYPE_INT64 for input 'X', \
                    model provides TYPE_FP32";
    assert_refused(&identity(), &typed, expected);
}

#[test]
fn wrong_tensor_counts_are_refused() {
    let folder = model_folder(&onnx::add_sub(Fp32));
    let text = r#"max_batch_size: 8
        input { name: "A" data_type: TYPE_FP32 dims: -1 }
        output { name: "SUM" data_type: TYPE_FP32 dims: -1 }"#;
    let expected = "unable to load model 'm', configuration expects 1 inputs, model provides 2";
    assert_refused(&folder, text, expected);
}

#[test]
fn wrong_dimensions_are_refused() {
    let fixed = identity_of(&[-1, 4], &[-1, 4]);
    let expected = "model 'm', tensor 'X': the model expects 2 dimensions (shape [-1,4]) but the model \
                    configuration specifies 2 dimensions (an initial batch dimension because \
                    max_batch_size > 0 followed by the explicit tensor shape, making complete shape \
                    [-1,5])";
    assert_refused(&fixed, &IDENTITY.replace("dims: -1", "dims: 5"), expected);
    let unbatched = IDENTITY.replace("max_batch_size: 8", "");
    let expected = "model 'm', tensor 'X': the model expects 2 dimensions (shape [-1,4]) but the model \
                    configuration specifies 1 dimensions (shape [-1])";
    assert_refused(&fixed, &unbatched, expected);
    let expected = "model 'm', tensor 'X': for the model to support batching the shape should have at \
                    least 1 dimension and the first dimension must be -1; but shape expected by the \
                    model is [2,4]";
    assert_refused(&identity_of(&[2, 4], &[2, 4]), &IDENTITY.replace("-1", "4"), expected);
}

#[test]
fn inputs_may_fix_open_dimensions_but_outputs_may_not() {
    let inputs_fixed = IDENTITY.replacen("dims: -1", "dims: 5", 1);
    load(&identity(), &inputs_fixed).expect("loads");
    let error = load_error(&identity(), &IDENTITY.replace("dims: -1", "dims: 5"));
    assert!(error.starts_with("model 'm', tensor 'Y': the model expects 2 dimensions"), "{error}");
}

#[test]
fn a_missing_model_file_is_named() {
    let folder = Folder::with_file("other.onnx", &onnx::identity(Fp32));
    let error = load_error(&folder, IDENTITY);
    let path = folder.version_dir().join("model.onnx");
    assert_eq!(error, format!("failed to stat file {}", path.display()));
    std::fs::create_dir(&path).expect("folder");
    let error = load_error(&folder, IDENTITY);
    let inside = path.join("model.onnx");
    assert_eq!(error, format!("unable to find '{}' for model instance 'm'", inside.display()));
    let named =
        format!("backend: \"onnxruntime\" default_model_filename: \"other.onnx\" {IDENTITY}");
    load(&folder, &named).expect("loads under its own name");
}

#[test]
fn sequence_type_tensors_are_refused() {
    let graph = Builder::default().input("X", Fp32, &[-1]).sequence_output("Y", Fp32).node(
        "SequenceConstruct",
        &["X"],
        &["Y"],
    );
    let folder = model_folder(&graph.bytes());
    let text = r#"input { name: "X" data_type: TYPE_FP32 dims: -1 }
        output { name: "Y" data_type: TYPE_FP32 dims: -1 }"#;
    let expected = "unable to load model 'm', output 'Y' is a sequence, which is not supported";
    assert_refused(&folder, text, expected);
    let error = configure(&folder, "").expect_err("nothing to complete it with");
    assert_eq!(error.message(), expected);
    let advice = Diagnostic::of(&error).and_then(|found| found.advice.clone()).expect("advice");
    for way_out in
        ["options={'zipmap': False}", "list in config.pbtxt the inputs and only the outputs"]
    {
        assert!(advice.contains(way_out), "{advice}");
    }
}

#[test]
fn optional_inputs_with_batching_are_refused() {
    let graph = Builder::default()
        .input("X", Fp32, &[-1])
        .input("W", Fp32, &[1])
        .constant("W", Fp32, &[1], &floats(&[2.0]))
        .output("Y", Fp32, &[-1])
        .node("Mul", &["X", "W"], &["Y"]);
    let text = r#"max_batch_size: 4
        input { name: "X" data_type: TYPE_FP32 dims: 1 reshape {} }
        input { name: "W" data_type: TYPE_FP32 dims: 1 optional: true }
        output { name: "Y" data_type: TYPE_FP32 dims: 1 reshape {} }"#;
    let expected = "unable to load model 'm', optional input 'W' is not supported for models that \
                    support batching";
    assert_refused(&model_folder(&graph.bytes()), text, expected);
}

#[test]
fn bad_parameters_are_refused() {
    let with = |key: &str, value: &str| {
        format!("{IDENTITY} parameters {{ key: \"{key}\" value {{ string_value: \"{value}\" }} }}")
    };
    let expected = "failed to convert intra_op_thread_count 'two' to integral number";
    assert_refused(&identity(), &with("intra_op_thread_count", "two"), expected);
    let expected = "failed to convert enable_mem_arena 'maybe' to boolean value";
    assert_refused(&identity(), &with("enable_mem_arena", "maybe"), expected);
}

#[test]
fn every_parameter_is_accepted() {
    let mut text = IDENTITY.to_owned();
    for (key, value) in [
        ("intra_op_thread_count", "2"),
        ("inter_op_thread_count", "2"),
        ("execution_mode", "1"),
        ("enable_mem_arena", "1"),
        ("enable_mem_pattern", "0"),
        ("memory.enable_memory_arena_shrinkage", "cpu:0"),
        ("session.use_device_allocator_for_initializers", "1"),
        ("session.intra_op.allow_spinning", "0"),
        ("something.else", "is passed over"),
    ] {
        text += &format!(" parameters {{ key: \"{key}\" value {{ string_value: \"{value}\" }} }}");
    }
    for level in [-1, 0, 1, 2] {
        let text = format!("{text} optimization {{ graph {{ level: {level} }} }}");
        let mut instance = instance(&identity(), &text);
        let input = Tensor::new("X", Fp32, [1, 2], floats(&[1.0, 2.0]));
        let answer = infer(&mut *instance, ask(1, vec![input], &[])).expect("answer");
        assert_eq!(answer.outputs[0].host().expect("host memory"), floats(&[1.0, 2.0]));
    }
}

#[test]
fn execution_mode_must_be_0_or_1() {
    let text =
        format!("{IDENTITY} parameters {{ key: 'execution_mode' value {{ string_value: '9' }} }}");
    let error = load(&identity(), &text).err().expect("refused");
    assert_eq!(error.code(), Code::InvalidArg);
    let expected = "Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got 9 .";
    assert_eq!(error.message(), expected);
}

#[test]
fn a_missing_operator_library_is_refused() {
    let text = format!("{IDENTITY} model_operations {{ op_library_filename: \"libnone.so\" }}");
    let error = load_error(&identity(), &text);
    assert!(error.contains("libnone.so") && error.starts_with("onnx runtime error "), "{error}");
}

#[test]
fn unknown_accelerators_are_refused() {
    let with = |side: &str, name: &str| {
        format!(
            "{IDENTITY} optimization {{ execution_accelerators {{ {side}_execution_accelerator {{ \
             name: \"{name}\" }} }} }}"
        )
    };
    let expected = "unknown Execution Accelerator 'warp' is requested";
    assert_refused(&identity(), &with("gpu", "warp"), expected);
    assert_refused(&identity(), &with("cpu", "warp"), expected);
    load(&identity(), &with("cpu", "openvino"))
        .expect("computed by ONNX Runtime where it has no OpenVINO");
    load(&identity(), &with("gpu", "tensorrt")).expect("means nothing on the CPU, as in Triton");
}

/// The library installed for tests supports only CPUs.
#[test]
fn gpu_instances_need_a_library_with_gpu_support() {
    assert!(!backend().can_use_gpus());
    let of_gpu = format!("{IDENTITY} instance_group {{ kind: KIND_GPU gpus: [ 0, 1 ] }}");
    let error = load_error(&identity(), &of_gpu);
    let start = "unable to load model 'm': instance group 'm_0' is for GPUs (KIND_GPU), but ONNX Runtime 1.";
    let end = " was built without CUDAExecutionProvider; use KIND_CPU, start with --gpu-groups=cpu, or use an ONNX Runtime that can use CUDA here \
               (--onnxruntime-lib names it)";
    assert!(error.starts_with(start) && error.ends_with(end), "{error}");
    let both =
        format!("{IDENTITY} instance_group [ {{ kind: KIND_CPU }}, {{ kind: KIND_GPU gpus: 0 }} ]");
    assert!(load_error(&identity(), &both).contains("instance group 'm_1'"));
    load(&identity(), &format!("{IDENTITY} instance_group {{ kind: KIND_MODEL }}"))
        .expect("loads")
        .new_instance(&InstanceSpec { kind: InstanceKind::Model, ..instance_spec("m", 0) })
        .expect("on the CPU");
}

#[test]
fn instances_can_be_added_only_on_devices_the_model_was_loaded_for() {
    let model = load(&identity(), IDENTITY).expect("loads");
    let cpu = |count| (0..count).map(|index| instance_spec("m", index)).collect::<Vec<_>>();
    assert!(model.can_have(&cpu(1)) && model.can_have(&cpu(5)));
    let gpu = InstanceSpec { kind: InstanceKind::Gpu, ..instance_spec("m", 1) };
    assert!(!model.can_have(std::slice::from_ref(&gpu)));
    assert!(!model.can_have(&[instance_spec("m", 0), gpu]));
}

#[test]
fn a_file_that_is_not_a_model_fails_only_its_own_load() {
    let error = load_error(&model_folder(b"no model"), IDENTITY);
    assert!(error.starts_with("onnx runtime error ") && error.contains("model.onnx"), "{error}");
    load(&identity(), IDENTITY).expect("the library works on");
}

#[test]
fn external_weights_and_model_folders_are_loaded() {
    let graph = Builder::default()
        .input("X", Int64, &[-1, 2])
        .external("W", Int64, &[2], "weights/w.bin")
        .output("Y", Int64, &[-1, 2])
        .node("Add", &["X", "W"], &["Y"])
        .bytes();
    let weights = crate::support::ints(&[10, 20]);
    let beside = model_folder(&graph).and_file("weights/w.bin", &weights);
    let inside = Folder::with_file("model.onnx/model.onnx", &graph)
        .and_file("model.onnx/weights/w.bin", &weights);
    for folder in [beside, inside] {
        let mut instance = instance(&folder, "");
        let input = Tensor::new("X", Int64, [1, 2], crate::support::ints(&[1, 2]));
        let answer = infer(&mut *instance, ask(1, vec![input], &[])).expect("answer");
        assert_eq!(answer.outputs[0].host().expect("host memory"), crate::support::ints(&[11, 22]));
    }
}

#[test]
fn a_loaded_model_creates_instances_after_its_folder_is_deleted() {
    let folder = identity();
    let config = configure(&folder, IDENTITY).unwrap();
    let model = backend().load(context(&folder, config)).unwrap();
    drop(folder);
    for index in 0..3 {
        drop(model.new_instance(&instance_spec("m", index)).unwrap());
    }
}

/// `Y = X` of any number of dimensions.
fn identity_of_open_rank() -> Folder {
    let graph = Builder::default().open_input("X", Fp32).open_output("Y", Fp32);
    model_folder(&graph.node("Identity", &["X"], &["Y"]).bytes())
}

/// The library reports no dimensions for such a tensor, as for a scalar.
#[test]
fn configured_shapes_are_accepted_for_tensors_of_unknown_rank() {
    let folder = identity_of_open_rank();
    for dims in ["[ -1, -1 ]", "[ 2 ]", "[ 1, 2, -1 ]"] {
        let text = format!(
            "input {{ name: \"X\" data_type: TYPE_FP32 dims: {dims} }} \
             output {{ name: \"Y\" data_type: TYPE_FP32 dims: {dims} }}"
        );
        load(&folder, &text).unwrap_or_else(|e| panic!("{dims}: {e}"));
    }
    let error = complete(&folder, "", &BTreeMap::new()).expect_err("nothing says how many");
    assert!(
        error
            .message()
            .contains("does not say how many dimensions input 'X' has; write every input"),
        "{error}"
    );
}

/// The error names both versions and the flag for another library.
#[test]
fn a_model_with_a_newer_opset_is_refused_with_both_versions() {
    let graph = || {
        Builder::default().input("X", Fp32, &[-1, -1]).output("Y", Fp32, &[-1, -1]).node(
            "Identity",
            &["X"],
            &["Y"],
        )
    };
    for (ir_version, opset) in [(99, 17), (10, 999)] {
        let error = load_error(&model_folder(&graph().bytes_of(ir_version, opset)), IDENTITY);
        let told =
            format!("the file has IR version {ir_version} and opset {opset}, which ONNX Runtime ");
        assert!(error.contains(&told) && error.contains("--onnxruntime-lib"), "{error}");
    }
}

/// Completion opens the model with its operator library, too.
#[test]
fn completion_opens_the_operator_library() {
    let text = "model_operations { op_library_filename: \"libnone.so\" }";
    let error = complete(&identity(), text, &BTreeMap::new()).expect_err("there is none");
    assert!(error.message().contains("libnone.so"), "{error}");
    assert!(error.message().contains("LD_LIBRARY_PATH"), "{error}");
}
