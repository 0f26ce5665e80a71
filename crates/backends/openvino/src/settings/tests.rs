//! What parameters mean, and what is said of those that mean nothing.

use std::{fs, path::Path, sync::Arc};

use galatea_backend::{LoadContext, PathRules, ServerAccess, testing::Host};

use super::*;

/// With the parameters written `KEY=value`.
fn context(folder: &Path, paths: &PathRules, parameters: &[&str]) -> LoadContext {
    let parameters: String = parameters
        .iter()
        .filter_map(|parameter| parameter.split_once('='))
        .map(|(key, value)| {
            format!("parameters {{ key: '{key}' value {{ string_value: '{value}' }} }} ")
        })
        .collect();
    let config = Host::default().configure(&format!(
        "backend: 'openvino' max_batch_size: 4 input {{ name: 'X' data_type: TYPE_FP32 dims: 1 }} \
         output {{ name: 'Y' data_type: TYPE_FP32 dims: 1 }} {parameters}"
    ));
    LoadContext {
        config: Arc::new(config.expect("valid")),
        version: 1,
        model_dir: folder.to_owned(),
        version_dir: folder.join("1"),
        backend_config: BTreeMap::from([("cache-dir".to_owned(), "/tmp/kept".to_owned())]),
        paths: paths.clone(),
        server: ServerAccess::default(),
        devices: galatea_backend::Devices::default(),
    }
}

fn of(context: &LoadContext) -> Result<Settings> {
    Settings::read(&context.config, &context.files())
}

fn read(parameters: &[&str]) -> Result<Settings> {
    of(&context(Path::new("/m"), &PathRules::anywhere(), parameters))
}

#[test]
fn settings_have_defaults_without_parameters() {
    let settings = read(&[]).expect("valid");
    let expected = Settings {
        hint: None,
        threads: None,
        compilation_threads: None,
        streams: None,
        precision: "f32",
        is_pinned: None,
        extension: None,
        has_fixed_batch: false,
        pads_batches: false,
        reshapes: false,
        cache: Some(PathBuf::from("/tmp/kept")),
    };
    assert_eq!(settings, expected);
    assert_eq!(read(&["NUM_STREAMS=", "HINT_BF16= "]).expect("empty ones are none"), expected);
}

#[test]
fn each_parameter_is_read() {
    let settings = read(&[
        "PERFORMANCE_HINT=throughput",
        "INFERENCE_NUM_THREADS=5",
        "COMPILATION_NUM_THREADS=2",
        "HINT_BF16=yes",
        "NUM_STREAMS=3",
        "SKIP_OV_DYNAMIC_BATCHSIZE=YES",
        "ENABLE_BATCH_PADDING=no",
        "RESHAPE_IO_LAYERS=Yes",
        "TARGET_DEVICE=cpu",
    ])
    .expect("valid");
    assert_eq!(settings.hint, Some("THROUGHPUT"));
    assert_eq!((settings.threads, settings.compilation_threads), (Some(5), Some(2)));
    assert_eq!((settings.precision, settings.streams), ("bf16", Some(Streams::Number(3))));
    assert!(settings.has_fixed_batch && !settings.pads_batches && settings.reshapes);
    let precision = |parameters: &[&str]| read(parameters).expect("valid").precision;
    assert_eq!(precision(&["INFERENCE_PRECISION_HINT=F16"]), "f16");
    assert_eq!(precision(&["INFERENCE_PRECISION_HINT=f32", "HINT_BF16=YES"]), "f32");
}

#[test]
fn older_parameter_names_have_the_same_effect() {
    let settings = read(&[
        "CPU_THREADS_NUM=7",
        "ENFORCE_BF16=YES",
        "CPU_BIND_THREAD=NUMA",
        "CPU_THROUGHPUT_STREAMS=auto",
        "SKIP_DYNAMIC_BATCHSIZE=YES",
    ])
    .expect("valid");
    assert_eq!((settings.threads, settings.streams), (Some(7), Some(Streams::Auto)));
    assert_eq!((settings.precision, settings.is_pinned), ("bf16", Some(false)));
    assert!(settings.has_fixed_batch);
    let both = read(&["CPU_THREADS_NUM=7", "INFERENCE_NUM_THREADS=1"]).expect("valid");
    assert_eq!(both.threads, Some(1));
    assert_eq!(read(&["ENFORCE_BF16=NO"]).expect("valid").precision, "f32");
}

#[test]
fn a_wrong_value_is_reported_with_its_field_and_valid_values() {
    for (parameter, text) in [
        (
            "NUM_STREAMS=many",
            "expected the parameter 'NUM_STREAMS' to be either AUTO/NUMA/<int_value>, got many",
        ),
        (
            "NUM_STREAMS=-1",
            "expected the parameter 'NUM_STREAMS' to be either AUTO/NUMA/<int_value>, got -1",
        ),
        (
            "INFERENCE_NUM_THREADS=x",
            "expected the parameter 'INFERENCE_NUM_THREADS' to be a non-negative number, got x",
        ),
        ("HINT_BF16=NO", "expected the parameter 'HINT_BF16' to be YES, got NO"),
        ("TARGET_DEVICE=GPU", "expected the parameter 'TARGET_DEVICE' to be CPU, got GPU"),
        (
            "ENABLE_BATCH_PADDING=1",
            "expected the parameter 'ENABLE_BATCH_PADDING' to be either YES or NO, got 1",
        ),
        (
            "PERFORMANCE_HINT=FAST",
            "expected the parameter 'PERFORMANCE_HINT' to be LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT, got FAST",
        ),
        (
            "INFERENCE_PRECISION_HINT=i8",
            "expected the parameter 'INFERENCE_PRECISION_HINT' to be f32, bf16 or f16, got i8",
        ),
        (
            "CPU_BIND_THREAD=core",
            "expected the parameter 'CPU_BIND_THREAD' to be either YES/NUMA/NO, got core",
        ),
    ] {
        let error = read(&[parameter]).expect_err(parameter);
        let found = galatea_config::Diagnostic::of(&error).expect("a diagnostic");
        let key = parameter.split('=').next().expect("a key");
        assert_eq!(error.message(), text);
        assert_eq!(found.field.to_string(), format!("parameters[\"{key}\"].value.string_value"));
        assert!(found.advice.is_some());
    }
}

#[test]
fn an_extension_named_by_a_request_must_lie_in_the_model_folder() {
    let folder = tempfile::tempdir().expect("folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("1")).expect("folder");
    fs::write(at("own.so"), "").expect("file");
    let of_request = PathRules::inside_model(vec!["/opt/known.so".to_owned()]);
    let extension = |rules: &PathRules, name: &str| {
        let parameter = format!("CPU_EXTENSION_PATH={name}");
        of(&context(folder.path(), rules, &[&parameter]))
            .map(|settings| settings.extension.expect("given"))
    };
    assert_eq!(extension(&of_request, "own.so").expect("inside"), at("own.so"));
    assert_eq!(extension(&of_request, "/opt/known.so").expect("known"), Path::new("/opt/known.so"));
    extension(&of_request, "/opt/evil.so").expect_err("outside");
    extension(&of_request, "../evil.so").expect_err("outside");
    let anywhere = PathRules::anywhere();
    assert_eq!(extension(&anywhere, "libother.so").expect("any"), Path::new("libother.so"));
}
