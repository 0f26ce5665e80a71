//! Samples from configurations and files.

use std::{fs, process::Command};

use galatea_config::{Diagnostic, testing::model_config};
use galatea_types::{DataType, Error};
use tempfile::TempDir;

use super::*;

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("folder");
    fs::create_dir(folder.path().join("warmup")).expect("folder");
    folder
}

fn config(tensors: &str, samples: &str) -> ModelConfig {
    model_config(&format!(
        "name: 'm' backend: 'b' {tensors} output {{ name: 'OUT' data_type: TYPE_FP32 dims: 1 }} {samples}"
    ))
}

/// A sample with one input.
fn one(data_type: &str, dims: &str, data: &str) -> String {
    format!(
        "model_warmup {{ name: 'w' batch_size: 1 inputs {{ key: 'IN' value {{ \
         data_type: TYPE_{data_type} dims: {dims} {data} }} }} }}"
    )
}

/// The samples of a model with one input, of any size.
#[track_caller]
fn samples_of(folder: &TempDir, data_type: &str, text: &str) -> Result<Vec<WarmupSample>> {
    let input = format!("input {{ name: 'IN' data_type: TYPE_{data_type} dims: -1 }}");
    samples(&config(&input, text), folder.path())
}

#[track_caller]
fn bytes_of(data_type: &str, dims: &str, data: &str, folder: &TempDir) -> Vec<u8> {
    let made = samples_of(folder, data_type, &one(data_type, dims, data)).expect("it fits");
    made[0].request.inputs[0].host().expect("host memory").to_vec()
}

#[track_caller]
fn error_of(data_type: &str, dims: &str, data: &str, folder: &TempDir) -> Error {
    samples_of(folder, data_type, &one(data_type, dims, data)).expect_err("refused")
}

#[test]
fn zero_data_gives_zeros_and_empty_strings() {
    let folder = folder();
    assert_eq!(bytes_of("INT16", "3", "zero_data: true", &folder), [0; 6]);
    assert!(bytes_of("FP64", "0", "zero_data: true", &folder).is_empty());
    for data in ["zero_data: true", "random_data: true"] {
        assert_eq!(bytes_of("STRING", "2", data, &folder), [0; 8]);
    }
}

#[test]
fn random_data_is_valid_and_equal_at_each_load() {
    let folder = folder();
    let random = |data_type| bytes_of(data_type, "1000", "random_data: true", &folder);
    assert_eq!(random("INT64"), random("INT64"));
    assert!(random("INT64").iter().any(|&byte| byte > 127));
    assert!(random("BOOL").iter().all(|&byte| byte <= 1) && random("BOOL").contains(&1));
    let is_between = |n: f64| (1.0..2.0).contains(&n);
    let (singles, doubles) = (random("FP32"), random("FP64"));
    let mut singles = singles.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
    assert!(singles.all(|n| is_between(n.into())));
    let mut doubles = doubles.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes));
    assert!(doubles.all(is_between));
    // The exponent of 1.
    let halves = random("FP16");
    assert!(halves.as_chunks::<2>().0.iter().all(|[_, high]| high & 0xFC == 0x3C));
    let brains = random("BF16");
    assert!(
        brains.as_chunks::<2>().0.iter().all(|[low, high]| (*high, low & 0x80) == (0x3F, 0x80))
    );
}

#[test]
fn data_files_are_read_as_far_as_needed() {
    let folder = folder();
    fs::create_dir(folder.path().join("warmup/sub")).expect("folder");
    fs::write(folder.path().join("warmup/sub/data"), "abcdefgh").expect("written");
    let data = |file: &str| format!("input_data_file: '{file}'");
    assert_eq!(bytes_of("INT16", "3", &data("sub/data"), &folder), *b"abcdef");
    let error = error_of("INT16", "5", &data("sub/data"), &folder);
    let text = "[request id: <id_unknown>] warmup setting expects 10 bytes, but the data provided from sub/data only \
                has 8 bytes";
    assert_eq!(error.message(), text);
    fs::write(folder.path().join("warmup/text"), b"\x02\0\0\0ab\0\0\0\0").expect("written");
    assert_eq!(bytes_of("STRING", "2", &data("text"), &folder).len(), 10);
    let error = error_of("STRING", "3", &data("text"), &folder);
    let text = "expected 3 string elements for inference input 'IN' for model 'm', got 2";
    assert!(error.message().contains(text), "{error}");
}

#[test]
fn files_outside_the_model_are_refused() {
    let folder = folder();
    let pipe = Command::new("mkfifo").arg(folder.path().join("warmup/pipe")).status();
    assert!(pipe.expect("started").success());
    fs::write(folder.path().join("secret"), "abcd").expect("written");
    for (file, reason) in [
        ("none", "No such file or directory"),
        ("pipe", "not a regular file"),
        (".", "invalid filename"),
        ("../secret", "invalid filename"),
        ("/etc/hostname", "invalid filename"),
    ] {
        let error = error_of("INT8", "1", &format!("input_data_file: '{file}'"), &folder);
        let text = format!("failed to open text file for read m/warmup/{file}: {reason}");
        assert!(error.message().starts_with(&text), "{error}");
    }
}

#[test]
fn the_size_of_warm_up_data_is_bounded() {
    let folder = folder();
    let huge = fs::File::create(folder.path().join("warmup/huge")).expect("file");
    huge.set_len(1 << 40).expect("sparse");
    let limit = "the limit is 1073741824 bytes for all samples together";
    for (data_type, dims, data) in [
        ("INT8", "1073741825", "zero_data: true"),
        ("INT64", "[ 4294967296, 4294967296 ]", "random_data: true"),
        ("STRING", "9223372036854775807", "zero_data: true"),
        ("STRING", "1", "input_data_file: 'huge'"),
    ] {
        let error = error_of(data_type, dims, data, &folder);
        assert!(error.message().contains(limit), "{error}");
    }
    let zeros =
        "inputs { key: 'IN' value { data_type: TYPE_INT8 dims: 600000000 zero_data: true } }";
    let two = format!("model_warmup {{ name: 'v' batch_size: 1 {zeros} }}").repeat(2);
    let error = samples_of(&folder, "INT8", &two).expect_err("too large together");
    assert!(error.message().starts_with("warm-up sample 'v' of model 'm' is too large"), "{error}");
    let batch = format!("model_warmup {{ name: 'v' batch_size: 2 {zeros} }}");
    let error = samples_of(&folder, "INT8", &batch).expect_err("too large joined");
    assert!(error.message().contains(limit), "{error}");
}

#[test]
fn a_mismatched_sample_is_refused_with_its_field() {
    let folder = folder();
    for (data_type, dims, text, field) in [
        (
            "FP32",
            "-1",
            "warmup setting expects all variable-size dimensions are specified for input 'IN'",
            "model_warmup[0].inputs[\"IN\"].value.dims",
        ),
        (
            "FP32",
            "[ 1, 1 ]",
            "unexpected shape for input 'IN' for model 'm'. Expected [-1], got [1,1]",
            "model_warmup[0]",
        ),
        (
            "INT32",
            "1",
            "inference input 'IN' data-type is 'INT32', but model 'm' expects 'FP32'",
            "model_warmup[0]",
        ),
    ] {
        let sample = one(data_type, dims, "zero_data: true");
        let error = samples_of(&folder, "FP32", &sample).expect_err(dims);
        assert!(error.message().contains(text), "{error}");
        let found = Diagnostic::of(&error).expect("a diagnostic");
        assert_eq!(found.field.to_string(), field);
        assert!(found.advice.as_ref().is_some_and(|advice| advice.contains("sample 'w'")));
    }
}

#[test]
fn samples_have_their_batch_size_and_count() {
    let folder = folder();
    let input = "max_batch_size: 4 input { name: 'IN' data_type: TYPE_INT8 dims: 2 }";
    let sample = |size: u32| {
        let zeros = "inputs { key: 'IN' value { data_type: TYPE_INT8 dims: 2 zero_data: true } }";
        let sample = format!("model_warmup {{ name: 'w' batch_size: {size} count: 3 {zeros} }}");
        samples(&config(input, &sample), folder.path())
    };
    let made = sample(4).expect("it fits").remove(0);
    assert_eq!((made.batch_size, made.count, made.request.batch_size()), (4, 3, 1));
    assert_eq!(made.request.inputs[0].shape, [1, 2].into());
    let error = sample(5).expect_err("too large");
    let text = "failed to run warmup sample 'w': batch size 5 for 'm', max allowed is 4";
    assert_eq!(error.message(), text);
}

#[test]
fn unknown_inputs_are_ignored_and_optional_inputs_may_be_omitted() {
    let folder = folder();
    let inputs = "input { name: 'IN' data_type: TYPE_INT8 dims: 1 } \
                  input { name: 'MORE' data_type: TYPE_INT8 dims: 1 optional: true }";
    let of = |name: &str| {
        format!(
            "inputs {{ key: '{name}' value {{ data_type: TYPE_INT8 dims: 1 zero_data: true }} }}"
        )
    };
    let names = |inputs_of_sample: &str| {
        let sample = format!("model_warmup {{ name: 'w' batch_size: 1 {inputs_of_sample} }}");
        let made = samples(&config(inputs, &sample), folder.path())?;
        let names = made[0].request.inputs.iter().map(|tensor| tensor.name.to_string());
        Ok::<Vec<String>, Error>(names.collect())
    };
    assert_eq!(names(&(of("IN") + &of("OTHER"))).expect("it fits"), ["IN"]);
    assert_eq!(names(&(of("IN") + &of("MORE"))).expect("it fits"), ["IN", "MORE"]);
    let error = names(&of("MORE")).expect_err("incomplete");
    assert!(error.message().contains("missing required input(s) ['IN']"), "{error}");
}

const CONTROLS: &str = "max_batch_size: 2 input { name: 'IN' data_type: TYPE_INT8 dims: 1 } sequence_batching {
    control_input { name: 'S' control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 3, 4 ] } }
    control_input { name: 'R' control { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } }
    control_input { name: 'E' control { kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ] } }
    control_input { name: 'I' control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } } }";

#[test]
fn a_sample_may_set_sequence_controls() {
    let folder = folder();
    let sample = "model_warmup { name: 'w' batch_size: 1 \
                  inputs { key: 'IN' value { data_type: TYPE_INT8 dims: 1 zero_data: true } } \
                  inputs { key: 'E' value { data_type: TYPE_BOOL dims: 1 zero_data: true } } }";
    let made = samples(&config(CONTROLS, sample), folder.path()).expect("it fits").remove(0);
    let [added] = &made.added[..] else { panic!("{:?}", made.added) };
    assert_eq!(
        (&*added.name, added.data_type, &added.shape),
        ("E", DataType::Bool, &[1, 1].into())
    );
    assert_eq!(made.request.inputs.len(), 1);
    assert!(made.request.sequence_start);
    assert_eq!(made.request.correlation_id, CorrelationId::Number(1));
    let wrong = sample.replace("TYPE_BOOL", "TYPE_FP32");
    let error = samples(&config(CONTROLS, &wrong), folder.path()).expect_err("another type");
    assert!(
        error.message().contains("'E' data-type is 'FP32', but model 'm' expects 'BOOL'"),
        "{error}"
    );
}
