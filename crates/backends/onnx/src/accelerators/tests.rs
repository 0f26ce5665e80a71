//! Accelerators of a configuration become providers with options.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::{path::PathBuf, sync::Arc};

use galatea_backend::{ServerAccess, testing::Host};

use super::*;

/// A model whose configuration ends with `text`, on a machine with GPU 3.
fn context(text: &str) -> LoadContext {
    let config = Host { version_files: &[], gpus: &[3] }.configure(&format!(
        "platform: \"onnxruntime_onnx\" input {{ name: \"X\" data_type: TYPE_FP32 dims: 1 }} output {{ name: \
         \"Y\" data_type: TYPE_FP32 dims: 1 }} instance_group {{ kind: KIND_GPU gpus: 3 }} {text}"
    ));
    LoadContext {
        config: Arc::new(config.unwrap()),
        version: 1,
        model_dir: PathBuf::new(),
        version_dir: PathBuf::new(),
        backend_config: BTreeMap::new(),
        paths: galatea_backend::PathRules::anywhere(),
        server: ServerAccess::default(),
        devices: galatea_backend::Devices::default(),
    }
}

fn accelerator(name: &str, parameters: &[(&str, &str)]) -> String {
    let parameters: String = parameters
        .iter()
        .map(|(key, value)| format!("parameters {{ key: \"{key}\" value: \"{value}\" }} "))
        .collect();
    format!(
        "optimization {{ execution_accelerators {{ gpu_execution_accelerator {{ name: \"{name}\" {parameters} }} }} }} "
    )
}

/// Each provider as `name key=value ...`.
fn shown(text: &str) -> Result<Vec<String>> {
    let show = |provider: &Provider| {
        let options = provider.options.iter().map(|(key, value)| format!(" {key}={value}"));
        provider.kind.name().to_owned() + &options.collect::<String>()
    };
    Ok(providers(&context(text), 3)?.iter().map(show).collect())
}

#[track_caller]
fn assert_refused(text: &str, expected: &str) {
    assert_eq!(shown(text).expect_err(text).message(), expected);
}

#[test]
fn cuda_is_used_by_default() {
    assert_eq!(shown("").unwrap(), ["CUDAExecutionProvider device_id=3"]);
}

#[test]
fn cuda_parameters_keep_their_names() {
    let text = accelerator(
        "cuda",
        &[("enable_cuda_graph", "0"), ("do_copy_in_default_stream", "False"), ("device_id", "7")],
    );
    assert_eq!(
        shown(&text).unwrap(),
        ["CUDAExecutionProvider device_id=3 do_copy_in_default_stream=0 enable_cuda_graph=0"],
        "the instance group decides the device"
    );
    let wrong = accelerator("cuda", &[("use_ep_level_unified_stream", "perhaps")]);
    assert_refused(&wrong, "failed to convert 'perhaps' to boolean");
}

#[test]
fn older_cuda_parameters_are_accepted() {
    let parameter = |key: &str, value: &str| {
        format!("parameters {{ key: \"{key}\" value {{ string_value: \"{value}\" }} }} ")
    };
    let text = parameter("cudnn_conv_algo_search", "1")
        + &parameter("arena_extend_strategy", "1")
        + &parameter("gpu_mem_limit", "1073741824")
        + &parameter("do_copy_in_default_stream", "true");
    let expected = "CUDAExecutionProvider arena_extend_strategy=kSameAsRequested \
                    cudnn_conv_algo_search=HEURISTIC device_id=3 do_copy_in_default_stream=1 \
                    gpu_mem_limit=1073741824";
    assert_eq!(shown(&text).unwrap(), [expected]);
    let newer =
        accelerator("cuda", &[("cudnn_conv_algo_search", "DEFAULT"), ("gpu_mem_limit", "5")]);
    assert_eq!(shown(&(newer + &text)).unwrap(), [expected], "the older ones win, as in Triton");
    let unsupported = "unsupported cudnn_conv_algo_search value '3' is requested";
    assert_refused(&parameter("cudnn_conv_algo_search", "3"), unsupported);
    let unsupported = "unsupported arena_extend_strategy value '-1' is requested";
    assert_refused(&parameter("arena_extend_strategy", "-1"), unsupported);
    let number = "failed to convert arena_extend_strategy 'x' to integral number";
    assert_refused(&parameter("arena_extend_strategy", "x"), number);
}

#[test]
fn tensorrt_comes_before_cuda() {
    let text = accelerator(
        "tensorrt",
        &[
            ("precision_mode", "FP16"),
            ("max_workspace_size_bytes", "1073741824"),
            ("trt_engine_cache_enable", "True"),
            ("trt_engine_cache_path", "/cache"),
            ("int8_use_native_calibration_table", "0"),
            ("trt_builder_optimization_level", "3"),
        ],
    );
    assert_eq!(
        shown(&text).unwrap(),
        [
            "TensorrtExecutionProvider device_id=3 trt_builder_optimization_level=3 \
             trt_engine_cache_enable=1 trt_engine_cache_path=/cache trt_fp16_enable=1 \
             trt_int8_use_native_calibration_table=0 trt_max_workspace_size=1073741824",
            "CUDAExecutionProvider device_id=3",
        ]
    );
    let plain = accelerator("tensorrt", &[("precision_mode", "FP32")]);
    assert_eq!(shown(&plain).unwrap()[0], "TensorrtExecutionProvider device_id=3");
}

#[test]
fn unknown_tensorrt_parameters_are_refused_with_tritons_text() {
    for (key, value, expected) in [
        (
            "segment_size",
            "1",
            "unknown parameter 'segment_size' is provided for TensorRT Execution Accelerator",
        ),
        ("precision_mode", "FP64", "unsupported precision mode 'FP64' is requested"),
        (
            "max_workspace_size_bytes",
            "abc",
            "failed to convert 'abc' to unsigned long long integral number",
        ),
        ("trt_dla_core", "x", "failed to convert 'x' to integral number"),
        ("trt_dla_enable", "yes", "failed to convert 'yes' to boolean"),
    ] {
        assert_refused(&accelerator("tensorrt", &[(key, value)]), expected);
    }
    assert_refused(&accelerator("warp", &[]), "unknown Execution Accelerator 'warp' is requested");
}

#[test]
fn all_32_tensorrt_parameters_are_accepted() {
    assert_eq!(TENSORRT.len() + 1, 32);
    for (name, _, kind) in TENSORRT {
        let value = if matches!(kind, Value::Text) { "text" } else { "1" };
        let text = accelerator("tensorrt", &[(name, value)]);
        let shown = shown(&text).expect(name);
        assert!(shown[0].ends_with(&format!("={value}")), "{shown:?}");
    }
}
