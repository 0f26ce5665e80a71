//! What is refused at load, and what parameters do.

use crate::support::{Folder, archive::Script, ask, floats, infer, load, load_error, model_folder};
use galatea_backend::testing::instance_spec;
use galatea_config::InstanceKind;

fn identity() -> Script {
    Script::new("x: Tensor) -> Tensor:\n    return x")
}

const PORTS: &str = r#"input { name: "x" data_type: TYPE_FP32 dims: -1 }
                       output { name: "y" data_type: TYPE_FP32 dims: -1 }"#;

#[test]
fn a_missing_file_is_named() {
    let folder = Folder::with_file("other.pt", b"");
    let error = load(&folder, PORTS).err().expect("an error");
    let path = folder.version_dir().join("model.pt");
    assert_eq!(
        error.message(),
        format!("unable to find '{}' for model instance 'm'", path.display())
    );
    let named = Folder::with_file("other.pt", &identity().bytes());
    assert!(load(&named, &format!("{PORTS} default_model_filename: \"other.pt\"")).is_ok());
}

#[test]
fn a_file_that_is_not_a_model_is_reported_by_name() {
    for content in [&b""[..], b"PK\x03\x04", &identity().bytes()[..200]] {
        let folder = Folder::with_file("model.pt", content);
        let error = load(&folder, PORTS).err().expect("an error");
        assert!(error.message().starts_with("failed to load model 'm': "), "{error}");
        assert!(error.message().contains("model.pt"), "{error}");
    }
    let bad = Script::new("x: Tensor) -> Tensor:\n    return torch.no_such_thing(x)");
    assert!(load_error(&bad, PORTS).contains("no_such_thing"), "{}", load_error(&bad, PORTS));
}

#[test]
fn unsupported_data_types_are_refused() {
    let text = PORTS.replacen("TYPE_FP32", "TYPE_UINT16", 1);
    assert_eq!(
        load_error(&identity(), &text),
        "unsupported datatype TYPE_UINT16 for input 'x' for model 'm'"
    );
    let text = PORTS.replace(
        "output { name: \"y\" data_type: TYPE_FP32",
        "output { name: \"y\" data_type: TYPE_UINT64",
    );
    assert_eq!(
        load_error(&identity(), &text),
        "unsupported datatype TYPE_UINT64 for output 'y' for model 'm'"
    );
    let text = format!("max_batch_size: 1 {}", PORTS.replacen("TYPE_FP32", "TYPE_STRING", 1));
    assert_eq!(
        load_error(&identity(), &text),
        "Triton only supports 1 dimensional List of String as input for 'x' for model 'm'"
    );
}

#[test]
fn configured_inputs_must_match_the_arguments() {
    let two = Script::new("a: Tensor,\n    b: Tensor) -> Tensor:\n    return torch.add(a, b)");
    assert_eq!(
        load_error(&two, PORTS),
        "unable to load model 'm', configuration expects 1 inputs, model provides 2"
    );
    let number = Script::new("x: Tensor,\n    sr: int) -> Tensor:\n    return torch.mul(x, sr)");
    let two_inputs = format!(r#"{PORTS} input {{ name: "sr" data_type: TYPE_INT64 dims: 1 }}"#);
    assert_eq!(
        load_error(&number, &two_inputs),
        "An input of type 'int' was detected in the model. Only a single input of type Dict(str, Tensor) or \
         input(s) of type Tensor are supported."
    );
}

#[test]
fn a_missing_gpu_is_reported_with_its_group() {
    let text = format!("{PORTS} instance_group {{ name: \"g\" kind: KIND_GPU gpus: 0 }}");
    let model = load(&model_folder(&identity()), &text);
    // On a machine with a GPU and a libtorch for it, it loads.
    if let Err(error) = model {
        let message = error.message();
        assert!(
            message.starts_with(
                "unable to load model 'm': instance group 'g' is for GPU 0 (KIND_GPU), but PyTorch "
            ),
            "{message}"
        );
        assert!(message.contains("use KIND_CPU"), "{message}");
    }
}

#[test]
fn code_and_weights_for_a_missing_gpu_are_reported() {
    let script = Script::new(
        "x: Tensor) -> Tensor:\n    \
         return torch.to(x, torch.device(\"cuda:99\"), 6)",
    );
    let model = load(&model_folder(&script), PORTS).expect("loads");
    let mut instance = model.new_instance(&instance_spec("m", 0)).expect("instance");
    let x = galatea_types::Tensor::new("x", galatea_types::DataType::Fp32, [1], floats(&[1.0]));
    let error = infer(&mut *instance, ask(1, vec![x.clone()], &[])).expect_err("no such GPU");
    assert!(error.message().starts_with("PyTorch execute failure: "), "{error}");
    assert!(error.message().to_lowercase().contains("cuda"), "{error}");
    // Weights saved on a GPU come to the CPU for instances there.
    let script = Script::new("x: Tensor) -> Tensor:\n    return torch.add(x, self.w)").tensor_on(
        "w",
        &[1],
        &[2.0],
        "cuda:0",
    );
    let folder = model_folder(&script);
    let model = load(&folder, PORTS).expect("loads");
    let mut instance = model.new_instance(&instance_spec("m", 0)).expect("instance");
    let answer = infer(&mut *instance, ask(1, vec![x], &[])).expect("answer");
    assert_eq!(answer.outputs[0].host().expect("host memory"), floats(&[3.0]));
    // As saved, they stay where they were.
    let text = format!("{PORTS} instance_group {{ kind: KIND_MODEL }}");
    if let Err(error) = load(&folder, &text) {
        assert!(
            error.message().contains("model 'm' names a GPU in its code or weights"),
            "{error}"
        );
    }
}

#[test]
fn instances_can_be_added_only_on_devices_the_model_was_loaded_for() {
    let model = load(&model_folder(&identity()), PORTS).expect("loads");
    let cpu = |count| (0..count).map(|index| instance_spec("m", index)).collect::<Vec<_>>();
    assert!(model.can_have(&cpu(1)) && model.can_have(&cpu(9)));
    let mut mixed = cpu(2);
    mixed[1].kind = InstanceKind::Model;
    assert!(!model.can_have(&mixed) && !model.can_have(&mixed[1..]));
}

#[test]
fn instances_of_kind_model_run_on_the_saved_device() {
    let text = format!("{PORTS} instance_group {{ kind: KIND_MODEL }}");
    let model = load(&model_folder(&identity()), &text).expect("loads");
    let mut spec = instance_spec("m", 0);
    spec.kind = InstanceKind::Model;
    let mut instance = model.new_instance(&spec).expect("instance");
    let x = galatea_types::Tensor::new("x", galatea_types::DataType::Fp32, [1], floats(&[4.0]));
    let answer = infer(&mut *instance, ask(1, vec![x], &[])).expect("answer");
    assert_eq!(answer.outputs[0].host().expect("host memory"), floats(&[4.0]));
}

#[test]
fn optimization_switches_do_not_change_results() {
    let script =
        Script::new("x: Tensor) -> Tensor:\n    return torch.relu(torch.sub(torch.mul(x, x), 2))");
    for switches in [
        vec![("DISABLE_OPTIMIZED_EXECUTION", "true")],
        vec![("INFERENCE_MODE", "false")],
        vec![("ENABLE_JIT_EXECUTOR", "0"), ("ENABLE_JIT_PROFILING", "False")],
        vec![("ENABLE_TENSOR_FUSER", "FALSE"), ("DISABLE_CUDNN", "true")],
        vec![("ENABLE_JIT_EXECUTOR", "1"), ("ENABLE_JIT_PROFILING", "true")],
        vec![("ENABLE_TENSOR_FUSER", "true"), ("ENABLE_CACHE_CLEANING", "true")],
    ] {
        let parameters: String = switches
            .iter()
            .map(|(k, v)| {
                format!("parameters {{ key: \"{k}\" value {{ string_value: \"{v}\" }} }} ")
            })
            .collect();
        let model = load(&model_folder(&script), &format!("{PORTS} {parameters}")).expect("loads");
        let mut instance = model.new_instance(&instance_spec("m", 0)).expect("instance");
        // Enough runs for an optimised graph to be made.
        for _ in 0..4 {
            let x = galatea_types::Tensor::new(
                "x",
                galatea_types::DataType::Fp32,
                [2],
                floats(&[1.0, 3.0]),
            );
            let answer = infer(&mut *instance, ask(1, vec![x], &[])).expect("answer");
            assert_eq!(
                answer.outputs[0].host().expect("host memory"),
                floats(&[0.0, 7.0]),
                "{switches:?}"
            );
        }
    }
}

#[test]
fn a_non_boolean_switch_is_refused() {
    let text = format!(
        r#"{PORTS} parameters {{ key: "INFERENCE_MODE" value {{ string_value: "maybe" }} }}"#
    );
    assert_eq!(
        load_error(&identity(), &text),
        "failed to convert INFERENCE_MODE 'maybe' to boolean value"
    );
}

#[test]
fn only_the_first_models_thread_counts_are_applied() {
    let threads = |n| {
        let text = format!(
            r#"{PORTS} parameters {{ key: "INTRA_OP_THREAD_COUNT" value {{ string_value: "{n}" }} }}
               parameters {{ key: "INTER_OP_THREAD_COUNT" value {{ string_value: "{n}" }} }}"#
        );
        load(&model_folder(&identity()), &text).map(drop)
    };
    threads("2").expect("loads");
    // Between operations they can be set once: a second time would be an error of libtorch.
    threads("3").expect("loads");
    assert!(threads("many").is_err());
}
