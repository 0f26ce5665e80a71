//! AOTInductor packages, on a stand-in for libtorch's stable functions. Real ones: `tests/python/test_pt2.py`.

use std::{fs, sync::Arc};

use crate::support::{Folder, ask, context, floats, infer, package, package::Package};
use galatea_backend::{
    Backend, Model,
    testing::{self, Fixture, Fixtures, Host, Subject, instance_spec},
};
use galatea_config::ModelConfig;
use galatea_types::{AlignedBlock, DataType, Result, Tensor};

const LEAF: &str = r#"{"type": null, "context": null, "children_spec": []}"#;

fn call_of(args: &[&str], names: &[&str]) -> String {
    let tuple = |children: &str| {
        format!(r#"{{"type": "builtins.tuple", "context": "null", "children_spec": [{children}]}}"#)
    };
    let keys = format!("{names:?}").replace('"', "\\\"");
    let kwargs = vec![LEAF; names.len()].join(", ");
    let kwargs =
        format!(r#"{{"type": "builtins.dict", "context": "{keys}", "children_spec": [{kwargs}]}}"#);
    format!("[1, {}]", tuple(&format!("{}, {kwargs}", tuple(&args.join(", ")))))
}

fn result_of(count: usize) -> String {
    match count {
        1 => format!("[1, {LEAF}]"),
        n => {
            let children = vec![LEAF; n].join(", ");
            format!(
                r#"[1, {{"type": "builtins.list", "context": "null", "children_spec": [{children}]}}]"#
            )
        }
    }
}

fn identity() -> Package {
    Package::new("IDENTITY").call(&call_of(&[LEAF], &[]), &result_of(1))
}

fn add_sub() -> Package {
    Package::new("ADD_SUB").tensors(2, 2).call(&call_of(&[LEAF], &["other"]), &result_of(2))
}

fn configure(text: &str) -> ModelConfig {
    let host = Host { version_files: &["model.pt2"], gpus: &[0] };
    let config = host.configure(text).expect("sound");
    assert_eq!((config.backend(), config.platform()), ("pytorch", "torch_aoti"));
    config
}

fn ports(inputs: &[&str], outputs: &[&str]) -> String {
    let list = |names: &[&str]| {
        let port = |n: &&str| format!("{{ name: \"{n}\" data_type: TYPE_FP32 dims: -1 }}");
        names.iter().map(port).collect::<Vec<_>>().join(", ")
    };
    format!("input [ {} ] output [ {} ]", list(inputs), list(outputs))
}

fn load(folder: &Folder, text: &str) -> Result<Box<dyn Model>> {
    package::backend().load(context(folder, configure(text)))
}

#[track_caller]
fn load_error(package: &Package, text: &str) -> String {
    load(&package.folder(), text).err().expect("an error").message().to_owned()
}

fn tensor(name: &str, values: &[f32]) -> Tensor {
    let mut block = AlignedBlock::with_capacity(values.len() * 4);
    block.extend_from_slice(&floats(values));
    Tensor::new(name, DataType::Fp32, [values.len() as i64], block.freeze())
}

/// With the folders of its models.
struct Packages(Fixtures);

fn has_tensors_of(data_type: DataType) -> bool {
    use DataType::{Bytes, Uint16, Uint32, Uint64};

    !matches!(data_type, Uint16 | Uint32 | Uint64 | Bytes)
}

impl Subject for Packages {
    fn backend(&self) -> Arc<dyn Backend> {
        package::backend()
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        has_tensors_of(data_type)
            .then(|| self.0.add(identity().folder(), data_type, &["ARGS[0]"], &["RESULT"]))
    }

    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        // The stand-in knows C's arithmetic alone.
        let is_known = has_tensors_of(data_type)
            && !matches!(data_type, DataType::Bool | DataType::Fp16 | DataType::Bf16);
        let (inputs, outputs) = (["ARGS[0]", "KWARGS[other]"], ["RESULT[0]", "RESULT[1]"]);
        is_known.then(|| self.0.add(add_sub().folder(), data_type, &inputs, &outputs))
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        let folder = Folder::with_file("model.pt2", b"not a package");
        let fixture = self.0.add(folder, DataType::Fp32, &["INPUT__0"], &["OUTPUT__0"]);
        Some((fixture, "model.pt2".to_owned()))
    }
}

#[test]
fn pytorch_packages_conform() {
    testing::run(&Packages(Fixtures::new("backend: 'pytorch' platform: 'torch_aoti'")));
}

#[test]
fn inputs_and_outputs_are_matched_by_call_spec_and_by_index() {
    let folder = add_sub().folder();
    for (inputs, outputs) in [
        (["KWARGS[other]", "ARGS[0]"], ["RESULT[1]", "RESULT[0]"]),
        (["INPUT__1", "ARGS[0]"], ["OUTPUT__1", "RESULT[0]"]),
        (["INPUT__1", "INPUT__0"], ["OUTPUT__1", "OUTPUT__0"]),
    ] {
        let model = load(&folder, &ports(&inputs, &outputs)).expect("loads");
        let mut instance = model.new_instance(&instance_spec("m", 0)).expect("instance");
        let given = vec![tensor(inputs[0], &[1.0]), tensor(inputs[1], &[10.0])];
        let answer = infer(&mut *instance, ask(1, given, &[])).expect("answer");
        assert_eq!(answer.output(outputs[0]).unwrap(), &tensor(outputs[0], &[9.0]));
        assert_eq!(answer.output(outputs[1]).unwrap(), &tensor(outputs[1], &[11.0]));
    }
}

#[test]
fn unknown_names_are_reported_with_the_valid_ones() {
    let known = "ARGS[0] or INPUT__0, KWARGS[other] or INPUT__1";
    for (inputs, outputs, expected) in [
        (
            &["x", "y"][..],
            &["RESULT[0]"][..],
            format!("unable to load model 'm', input 'x' is not in the package, which has {known}"),
        ),
        (
            &["ARGS[0]", "INPUT__2"],
            &["RESULT[0]"],
            format!("unable to load model 'm', input 'INPUT__2' is not in the package, which has {known}"),
        ),
        (
            &["ARGS[0]", "INPUT__0"],
            &["RESULT[0]"],
            "unable to load model 'm', input 'INPUT__0' is another name of a listed one".to_owned(),
        ),
        (
            &["ARGS[0]"],
            &["RESULT[0]"],
            format!("unable to load model 'm', configuration expects 1 inputs, model provides 2: {known}"),
        ),
        (
            &["ARGS[0]", "INPUT__1"],
            &["RESULT"],
            "unable to load model 'm', output 'RESULT' is not in the package, which has RESULT[0] or OUTPUT__0, \
             RESULT[1] or OUTPUT__1"
                .to_owned(),
        ),
    ] {
        assert_eq!(load_error(&add_sub(), &ports(inputs, outputs)), expected);
    }
    // Without a configuration, the error lists what the package contains.
    let text = load_error(&add_sub(), "");
    assert!(text.starts_with("model configuration must contain at least one input"), "{text}");
    assert!(text.contains(known), "{text}");
    // Where the call spec is of no use, there are indices.
    let text = load_error(&Package::new("IDENTITY"), &ports(&["ARGS[0]"], &["RESULT"]));
    assert!(text.ends_with("which has INPUT__0"), "{text}");
}

#[test]
fn non_contiguous_outputs_are_made_contiguous() {
    let folder = Package::new("TRANSPOSE").folder();
    let text = "input { name: \"INPUT__0\" data_type: TYPE_FP32 dims: [ 2, 3 ] } \
                output { name: \"OUTPUT__0\" data_type: TYPE_FP32 dims: [ 3, 2 ] }";
    let model = load(&folder, text).expect("loads");
    let mut instance = model.new_instance(&instance_spec("m", 0)).expect("instance");
    let x = tensor("INPUT__0", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let x = Tensor::new("INPUT__0", DataType::Fp32, [2, 3], x.data);
    let answer = infer(&mut *instance, ask(1, vec![x], &[])).expect("answer");
    let y = answer.output("OUTPUT__0").unwrap();
    assert_eq!(&y.shape[..], [3, 2]);
    assert_eq!(y.host().expect("host memory"), floats(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
}

#[test]
fn instances_do_not_share_state_and_inputs_are_not_modified() {
    let folder = Package::new("COUNTER").folder();
    let text = ports(&["INPUT__0"], &["OUTPUT__0"]);
    let text = format!("{text} instance_group {{ count: 2 kind: KIND_CPU }}");
    let count = |text: &str| {
        let model = load(&folder, text).expect("loads");
        let mut instances =
            [0, 1].map(|i| model.new_instance(&instance_spec("m", i)).expect("instance"));
        let x = tensor("INPUT__0", &[1.0]);
        let counts = [0, 0, 1].map(|i: usize| {
            let answer = infer(&mut *instances[i], ask(1, vec![x.clone()], &[])).expect("answer");
            let data = answer.output("OUTPUT__0").unwrap().host_bytes().unwrap().clone();
            f32::from_le_bytes(data[..].try_into().unwrap())
        });
        assert_eq!(x.host().expect("host memory"), floats(&[1.0]), "the model clears its input");
        counts
    };
    assert_eq!(count(&text), [1.0, 2.0, 1.0]);
    let shared = r#"parameters { key: "ENABLE_WEIGHT_SHARING" value { string_value: "true" } }"#;
    assert_eq!(count(&format!("{text} {shared}")), [1.0, 2.0, 3.0]);
}

#[test]
fn instances_beyond_a_packages_capacity_cannot_be_added() {
    let folder = Package::new("COUNTER").folder();
    let text = ports(&["INPUT__0"], &["OUTPUT__0"]);
    let model = load(&folder, &format!("{text} instance_group {{ count: 2 kind: KIND_CPU }}"));
    let model = model.expect("loads");
    let cpu = |count| (0..count).map(|index| instance_spec("m", index)).collect::<Vec<_>>();
    assert!(model.can_have(&cpu(1)) && model.can_have(&cpu(2)));
    assert!(!model.can_have(&cpu(3)));
}

#[test]
fn errors_raised_by_the_code_are_reported() {
    let folder = Package::new("FAILING").folder();
    let model = load(&folder, &ports(&["INPUT__0"], &["OUTPUT__0"])).expect("loads");
    let mut instance = model.new_instance(&instance_spec("m", 0)).expect("instance");
    let error = infer(&mut *instance, ask(1, vec![tensor("INPUT__0", &[1.0])], &[]));
    assert_eq!(
        error.expect_err("fails").message(),
        "Inductor model instance \"m\" execution failure: expected: 16, but got: 3"
    );
}

#[test]
fn shapes_the_code_was_not_compiled_for_are_refused() {
    let package = identity().source(
        "static void check_input_0(\n    int32_t a_expected_dtype = aoti_torch_dtype_float32();\n    \
             if (3 != a_size[0]) {\n}\n",
    );
    let folder = package.folder();
    let model = load(&folder, &ports(&["ARGS[0]"], &["RESULT"])).expect("loads");
    let mut instance = model.new_instance(&instance_spec("m", 0)).expect("instance");
    let mut ask = |values| infer(&mut *instance, ask(1, vec![tensor("ARGS[0]", values)], &[]));
    assert!(ask(&[1.0, 2.0, 3.0]).is_ok());
    assert_eq!(
        ask(&[1.0]).expect_err("too small").message(),
        "model 'm': input 'ARGS[0]' has shape [1], and the package takes 3 in dimension 0"
    );
    let text = ports(&["ARGS[0]"], &["RESULT"]);
    assert_eq!(
        load_error(&package, &text.replacen("FP32", "FP64", 1)),
        "unable to load model 'm', input 'ARGS[0]' is TYPE_FP32 in the package"
    );
    assert_eq!(
        load_error(&package, &text.replacen("-1", "4", 1)),
        "unable to load model 'm', input 'ARGS[0]' has shape [4], and the package takes 3 in dimension 0"
    );
}

#[test]
fn code_for_another_version_or_machine_is_reported() {
    let text = ports(&["ARGS[0]"], &["RESULT"]);
    let newer = load_error(&identity().define("NEWER"), &text);
    assert!(
        newer.starts_with(
            "failed to load model 'm': its code calls 'aoti_torch_of_a_newer_version', which"
        ),
        "{newer}"
    );
    assert!(newer.contains(&crate::support::libtorch().version_text()), "{newer}");
    assert!(newer.contains("compile it with PyTorch"), "{newer}");
    let other = load_error(&identity().notes(r#"{"AOTI_MACHINE": "s390x"}"#), &text);
    assert!(other.contains("it was compiled for s390x"), "{other}");
    let xpu = load_error(&identity().notes(r#"{"AOTI_DEVICE_KEY": "xpu"}"#), &text);
    assert!(xpu.contains("it was compiled for 'xpu', which this server cannot use"), "{xpu}");
    let cuda = identity().notes(r#"{"AOTI_DEVICE_KEY": "cuda"}"#);
    let cuda = load_error(&cuda, &format!("{text} instance_group {{ kind: KIND_CPU }}"));
    assert!(cuda.contains("it was compiled for CUDA, and"), "{cuda}");
}

#[test]
fn a_libtorch_without_the_needed_functions_is_reported() {
    if crate::support::libtorch().version[0] > 1 {
        return;
    }
    let folder = identity().folder();
    let config = configure(&ports(&["ARGS[0]"], &["RESULT"]));
    let error = crate::support::backend().load(context(&folder, config)).err().expect("an error");
    assert!(error.message().contains("cannot run AOTInductor packages"), "{error}");
}

/// Lines of this process's memory map with the library of that name.
fn mapped(name: &str) -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/maps").expect("readable");
    maps.lines().filter(|line| line.contains(name)).map(str::to_owned).collect()
}

#[test]
fn files_are_removed_after_loading_and_code_after_the_last_output() {
    let package = identity().named("short_lived").define("UNIQUE=short_lived_object");
    let folder = package.folder();
    let model = load(&folder, &ports(&["ARGS[0]"], &["RESULT"])).expect("loads");
    let lines = mapped("short_lived");
    assert!(!lines.is_empty());
    assert!(lines.iter().all(|line| line.ends_with("(deleted)")), "{lines:?}");
    let mut instance = model.new_instance(&instance_spec("m", 0)).expect("instance");
    let answer = infer(&mut *instance, ask(1, vec![tensor("ARGS[0]", &[5.0])], &[]));
    drop((instance, model));
    assert!(!mapped("short_lived").is_empty(), "an answer lies in the model's memory");
    let answer = answer.expect("answer");
    assert_eq!(answer.output("RESULT").unwrap().host().expect("host memory"), floats(&[5.0]));
    drop(answer);
    assert_eq!(mapped("short_lived"), [""; 0]);
}
