//! Defaults, and backends found by files, names and platforms.

use super::*;
use crate::parse_text;

fn context<'a>(directory_name: &'a str, version_files: &'a [String]) -> NormalizeContext<'a> {
    NormalizeContext { directory_name, version_files, available_gpus: &[] }
}

/// Backend, platform and file name that come of `source` beside `files`.
#[track_caller]
fn check_backend(source: &str, files: &[&str], expected: [&str; 3]) {
    let files = files.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>();
    let raw = resolve_backend(parse_text(source).unwrap(), &context("m", &files)).unwrap();
    assert_eq!(
        [&*raw.backend, &*raw.platform, &*raw.default_model_filename],
        expected,
        "{source} {files:?}"
    );
    assert_eq!(raw.name, "m");
}

const ONNX: [&str; 3] = ["onnxruntime", "onnxruntime_onnx", "model.onnx"];
const TORCH: [&str; 3] = ["pytorch", "pytorch_libtorch", "model.pt"];

#[test]
fn finds_the_backend_by_the_model_file() {
    check_backend("", &["README.md", "model.onnx"], ONNX);
    check_backend("", &["model.onnx/"], ONNX);
    check_backend("", &["model.pt"], TORCH);
    check_backend("", &["model.pt2"], ["pytorch", "torch_aoti", "model.pt2"]);
    check_backend("", &["model.plan"], ["tensorrt", "tensorrt_plan", "model.plan"]);
    check_backend("", &["model.xml", "model.bin"], ["openvino", "", "model.xml"]);
    check_backend("", &["model.py"], ["python", "", "model.py"]);
    check_backend(
        "",
        &["model.savedmodel/"],
        ["tensorflow", "tensorflow_savedmodel", "model.savedmodel"],
    );
    check_backend(
        "",
        &["model.savedmodel"],
        ["tensorflow", "tensorflow_savedmodel", "model.savedmodel"],
    );
    check_backend("", &["model.graphdef"], ["tensorflow", "tensorflow_graphdef", "model.graphdef"]);
    check_backend("", &["model.onnx", "model.py"], ONNX);
    check_backend("", &["model.pt/", "model.py"], ["python", "", "model.py"]);
}

#[test]
fn finds_the_backend_by_platform_or_backend_field() {
    check_backend("platform: 'onnxruntime_onnx'", &[], ONNX);
    check_backend("platform: 'onnxruntime_onnx'", &["model.py"], ONNX);
    check_backend("platform: 'libtorch'", &[], ["pytorch", "libtorch", "model.pt"]);
    check_backend("platform: 'torch_aoti'", &[], ["pytorch", "torch_aoti", "model.pt2"]);
    check_backend("backend: 'onnxruntime'", &[], ONNX);
    check_backend(
        "backend: 'onnxruntime' default_model_filename: 'a.onnx'",
        &[],
        ["onnxruntime", "onnxruntime_onnx", "a.onnx"],
    );
    check_backend("default_model_filename: 'model.pt'", &[], TORCH);
    check_backend("backend: 'pytorch'", &["model.pt2"], ["pytorch", "torch_aoti", "model.pt2"]);
    check_backend(
        "backend: 'pytorch' runtime: 'model.py'",
        &[],
        ["pytorch", "pytorch_libtorch", ""],
    );
    check_backend("backend: 'python'", &["model.onnx"], ["python", "", "model.py"]);
    check_backend(
        "backend: 'tensorflow'",
        &["model.savedmodel/"],
        ["tensorflow", "tensorflow_savedmodel", "model.savedmodel"],
    );
    check_backend("backend: 'tensorflow'", &[], ["tensorflow", "", ""]);
    let named = "backend: 'tensorflow' default_model_filename: 'net'";
    check_backend(named, &["net/"], ["tensorflow", "tensorflow_savedmodel", "net"]);
    check_backend(named, &["net"], ["tensorflow", "tensorflow_graphdef", "net"]);
    check_backend(named, &["other"], ["tensorflow", "", "net"]);
    check_backend("backend: 'identity'", &["model.onnx"], ["identity", "", ""]);
    check_backend("platform: 'ensemble'", &[], ["", "ensemble", ""]);
    check_backend("platform: 'torch'", &["model.onnx"], ["", "torch", ""]);
}

#[test]
fn finds_the_backend_by_the_model_name_last() {
    let raw = resolve_backend(RawModelConfig::default(), &context("a.identity", &[])).unwrap();
    assert_eq!((&*raw.backend, &*raw.default_model_filename), ("identity", "model.identity"));
    let error =
        resolve_backend(RawModelConfig::default(), &context("a", &["dummy".into()])).unwrap_err();
    assert_eq!(
        error.message(),
        "Invalid model name: Could not determine backend for model 'a' with no backend in model \
         configuration. Expected model name of the form 'model.<backend_name>'."
    );
}

#[track_caller]
fn check_groups(
    source: &str,
    gpus: &[u32],
    expected: &[(&str, Kind, i32, &[i32])],
    defaults: &[usize],
) {
    let context = NormalizeContext { available_gpus: gpus, ..context("m", &[]) };
    let config = normalize(parse_text(source).unwrap(), &context).unwrap();
    let groups = config.raw.instance_group.iter();
    let groups = groups.map(|g| (&*g.name, g.kind(), g.count, &*g.gpus)).collect::<Vec<_>>();
    assert_eq!(groups, expected, "{source}");
    assert_eq!(config.default_count_groups, defaults, "{source}");
}

#[test]
fn fills_in_instance_groups() {
    use Kind::{Cpu, Gpu, Model};
    let onnx = |groups: &str| format!("backend: 'onnxruntime' {groups}");
    check_groups(&onnx(""), &[], &[("m", Cpu, 2, &[])], &[0]);
    check_groups(&onnx(""), &[0, 1], &[("m", Gpu, 1, &[0, 1])], &[0]);
    check_groups("backend: 'python'", &[], &[("m", Cpu, 1, &[])], &[0]);
    check_groups(&onnx("instance_group { kind: KIND_CPU }"), &[0], &[("m_0", Cpu, 2, &[])], &[0]);
    check_groups(&onnx("instance_group { count: -1 }"), &[], &[("m_0", Cpu, 2, &[])], &[0]);
    check_groups(&onnx("instance_group { gpus: 5 }"), &[0], &[("m_0", Cpu, 2, &[5])], &[0]);
    check_groups(
        &onnx(
            "instance_group [ { count: 1 kind: KIND_MODEL }, { name: 'g' gpus: 1 }, { count: 3 kind: KIND_CPU } ]",
        ),
        &[0, 1],
        &[("m_0", Model, 1, &[]), ("g", Gpu, 1, &[1]), ("m_2", Cpu, 3, &[])],
        &[1],
    );
}

#[test]
fn fills_in_schedulers() {
    let normalized = |source: &str| {
        crate::to_json(&normalize(parse_text(source).unwrap(), &context("m", &[])).unwrap().raw)
    };
    #[track_caller]
    fn check(json: &str, part: &str) {
        assert!(json.contains(part), "{part} not in {json}");
    }
    let onnx = "backend: 'onnxruntime' max_batch_size: 4";
    check(&normalized(&format!("{onnx} dynamic_batching {{}}")), "\"preferred_batch_size\":[4]");
    check(&normalized("backend: 'x' dynamic_batching {}"), "\"preferred_batch_size\":[]");
    let sequence = normalized(&format!("{onnx} sequence_batching {{ oldest {{}} }}"));
    check(&sequence, "\"preferred_batch_size\":[4]");
    check(&sequence, "\"max_sequence_idle_microseconds\":1000000");
    let kept = "sequence_batching { max_sequence_idle_microseconds: 5 oldest { preferred_batch_size: 2 } }";
    let kept = normalized(&format!("{onnx} {kept}"));
    check(&kept, "\"preferred_batch_size\":[2]");
    check(&kept, "\"max_sequence_idle_microseconds\":5");
}

#[test]
fn normalizing_twice_changes_nothing() {
    let source =
        "backend: 'onnxruntime' max_batch_size: 2 dynamic_batching {} instance_group [{}, {}]";
    let once = normalize(parse_text(source).unwrap(), &context("m", &[])).unwrap();
    let twice = normalize(once.raw.clone(), &context("m", &[])).unwrap();
    assert_eq!(once.raw, twice.raw);
    assert_eq!((once.default_count_groups, twice.default_count_groups), (vec![0, 1], vec![]));
}
