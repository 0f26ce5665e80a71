//! Turns `execution_accelerators` and the CUDA parameters of a configuration into execution providers.

use std::{collections::BTreeMap, sync::Arc};

use galatea_backend::LoadContext;
use galatea_types::{Error, Result};

use crate::ort::{Library, Provider, ProviderKind};

/// Name of the accelerator for the CPU in configurations.
const OPENVINO: &str = "openvino";

/// Rejects accelerators that no instance could have.
///
/// As in Triton, accelerators for GPUs are ignored on CPU instances. An unknown accelerator for the CPU is an error, since
/// it would at least change the speed. When groups for GPUs run on the CPU, the server has already said that all
/// accelerators for GPUs are ignored.
pub(crate) fn check(context: &LoadContext, has_gpu_instances: bool) -> Result<()> {
    let model = context.config.name();
    let gpu_accelerators = match is_without_its_gpus(context, has_gpu_instances) {
        true => &[][..],
        false => &context.config.optimization().gpu_accelerators,
    };
    for accelerator in gpu_accelerators {
        match accelerator.name.as_str() {
            "cuda" | "tensorrt" if has_gpu_instances => {}
            name @ ("cuda" | "tensorrt") => {
                log::warn!("model '{model}': accelerator '{name}' has no effect on CPU instances");
            }
            name => return Err(unknown(name)),
        }
        for (key, value) in &accelerator.parameters {
            context.paths.check_setting(key, value)?;
        }
    }
    match context.config.optimization().cpu_accelerators.first() {
        None => Ok(()),
        Some(accelerator) if accelerator.name == OPENVINO => Ok(()),
        Some(accelerator) => Err(unknown(&accelerator.name)),
    }
}

fn is_without_its_gpus(context: &LoadContext, has_gpu_instances: bool) -> bool {
    let groups = context.config.instance_groups();
    !has_gpu_instances && groups.iter().any(|group| group.stands_for_gpus)
}

/// Returns the providers of instances on this GPU, the preferred first: TensorRT if it is asked for, then CUDA for the rest.
///
/// # Errors
/// Triton's texts for accelerators and parameters it does not know, and for values it cannot read.
pub(crate) fn providers(context: &LoadContext, gpu: u32) -> Result<Vec<Provider>> {
    let mut providers = Vec::new();
    let mut cuda = BTreeMap::new();
    for accelerator in &context.config.optimization().gpu_accelerators {
        match accelerator.name.as_str() {
            "tensorrt" => providers.push(tensorrt(&accelerator.parameters, gpu)?),
            "cuda" => cuda_options(&accelerator.parameters, &mut cuda)?,
            name => return Err(unknown(name)),
        }
    }
    cuda_parameters(context.config.parameters(), &mut cuda)?;
    cuda.insert("device_id".to_owned(), gpu.to_string());
    providers.push(Provider { kind: ProviderKind::Cuda, options: cuda });
    Ok(providers)
}

/// Returns the providers of instances on the CPU: OpenVINO's if it is asked for and available, with results in f32 as those
/// of ONNX Runtime. ONNX Runtime itself computes everything else.
pub(crate) fn cpu_providers(library: &Arc<Library>, context: &LoadContext) -> Vec<Provider> {
    let asked = context.config.optimization().cpu_accelerators.first();
    if asked.is_none_or(|accelerator| accelerator.name != OPENVINO) {
        return Vec::new();
    }
    let options = [("device_type", "CPU"), ("precision", "FP32")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    let provider = Provider { kind: ProviderKind::OpenVino, options: BTreeMap::from(options) };
    match library.try_with_options(provider.clone()) {
        Ok(()) => {
            log::info!(
                "model '{}': OpenVINO runs it in f32, as its configuration asks",
                context.config.name()
            );
            vec![provider]
        }
        Err(reason) => {
            log::warn!(
                "model '{}': Execution Accelerator '{OPENVINO}' is not used, ONNX Runtime {} {reason}; the answers are the \
                 same (--onnxruntime-lib names a library that has it)",
                context.config.name(),
                library.version
            );
            Vec::new()
        }
    }
}

fn unknown(name: &str) -> Error {
    Error::invalid_arg(format!("unknown Execution Accelerator '{name}' is requested"))
}

/// Passes every parameter of the accelerator `cuda` to ONNX Runtime under its name.
fn cuda_options<'p>(
    parameters: impl IntoIterator<Item = (&'p String, &'p String)>,
    options: &mut BTreeMap<String, String>,
) -> Result<()> {
    for (key, value) in parameters {
        let value = match key.as_str() {
            "do_copy_in_default_stream" | "use_ep_level_unified_stream" => {
                Value::Boolean.read(value)?
            }
            _ => value.clone(),
        };
        if !value.is_empty() {
            options.insert(key.clone(), value);
        }
    }
    Ok(())
}

/// Reads the older form, as parameters of the model. They override those of the accelerator.
fn cuda_parameters(
    parameters: &BTreeMap<String, String>,
    options: &mut BTreeMap<String, String>,
) -> Result<()> {
    for (key, names) in [
        ("cudnn_conv_algo_search", &["EXHAUSTIVE", "HEURISTIC", "DEFAULT"][..]),
        ("arena_extend_strategy", &["kNextPowerOfTwo", "kSameAsRequested"]),
    ] {
        let Some(value) = parameters.get(key) else { continue };
        let number: i64 = value.trim().parse().map_err(|_| {
            Error::invalid_arg(format!("failed to convert {key} '{value}' to integral number"))
        })?;
        let name = usize::try_from(number).ok().and_then(|number| names.get(number));
        let unsupported = || format!("unsupported {key} value '{number}' is requested");
        let name = name.ok_or_else(|| Error::invalid_arg(unsupported()))?;
        options.insert(key.to_owned(), (*name).to_owned());
    }
    if let Some(limit) = parameters.get("gpu_mem_limit") {
        options.insert("gpu_mem_limit".to_owned(), limit.clone());
    }
    if let Some(value) = parameters.get("do_copy_in_default_stream") {
        let value = Value::Boolean.read(value)?;
        options.insert("do_copy_in_default_stream".to_owned(), value);
    }
    Ok(())
}

/// Translates the parameters of `tensorrt` that Triton knows to ONNX Runtime's.
fn tensorrt<'p>(
    parameters: impl IntoIterator<Item = (&'p String, &'p String)>,
    gpu: u32,
) -> Result<Provider> {
    let mut options = BTreeMap::new();
    for (key, value) in parameters {
        if key == "precision_mode" {
            options.extend(precision(value)?.map(|option| (option.to_owned(), "1".to_owned())));
            continue;
        }
        let known = TENSORRT.iter().find(|(name, ..)| name == key);
        let (_, option, kind) = known.ok_or_else(|| {
            let text = "is provided for TensorRT Execution Accelerator";
            Error::invalid_arg(format!("unknown parameter '{key}' {text}"))
        })?;
        let value = kind.read(value)?;
        if !value.is_empty() {
            options.insert((*option).to_owned(), value);
        }
    }
    options.insert("device_id".to_owned(), gpu.to_string());
    Ok(Provider { kind: ProviderKind::TensorRt, options })
}

fn precision(mode: &str) -> Result<Option<&'static str>> {
    match mode {
        "FP32" => Ok(None),
        "FP16" => Ok(Some("trt_fp16_enable")),
        "BF16" => Ok(Some("trt_bf16_enable")),
        "INT8" => Ok(Some("trt_int8_enable")),
        _ => Err(Error::invalid_arg(format!("unsupported precision mode '{mode}' is requested"))),
    }
}

/// The type of a parameter's value.
#[derive(Clone, Copy)]
enum Value {
    Boolean,
    Integer,
    Size,
    Text,
}

impl Value {
    /// Converts the value for ONNX Runtime. Errors have Triton's texts.
    fn read(self, value: &str) -> Result<String> {
        let number = value.trim();
        let (read, expected) = match self {
            Self::Text => return Ok(value.to_owned()),
            Self::Integer => {
                (number.parse().ok().map(|number: i32| number.to_string()), "integral number")
            }
            Self::Size => (
                number.parse().ok().map(|number: u64| number.to_string()),
                "unsigned long long integral number",
            ),
            Self::Boolean => {
                let read = match value.to_ascii_lowercase().as_str() {
                    "true" | "on" | "1" => Some("1".to_owned()),
                    "false" | "off" | "0" => Some("0".to_owned()),
                    _ => None,
                };
                (read, "boolean")
            }
        };
        let wrong = || Error::invalid_arg(format!("failed to convert '{value}' to {expected}"));
        read.ok_or_else(wrong)
    }
}

/// Triton's name, ONNX Runtime's, and the type of the value.
const TENSORRT: &[(&str, &str, Value)] = &[
    ("max_workspace_size_bytes", "trt_max_workspace_size", Value::Size),
    ("int8_calibration_table_name", "trt_int8_calibration_table_name", Value::Text),
    ("int8_use_native_calibration_table", "trt_int8_use_native_calibration_table", Value::Boolean),
    ("trt_max_partition_iterations", "trt_max_partition_iterations", Value::Integer),
    ("trt_min_subgraph_size", "trt_min_subgraph_size", Value::Integer),
    ("trt_dla_enable", "trt_dla_enable", Value::Boolean),
    ("trt_dla_core", "trt_dla_core", Value::Integer),
    ("trt_engine_cache_enable", "trt_engine_cache_enable", Value::Boolean),
    ("trt_engine_cache_path", "trt_engine_cache_path", Value::Text),
    ("trt_engine_cache_prefix", "trt_engine_cache_prefix", Value::Text),
    ("trt_dump_subgraphs", "trt_dump_subgraphs", Value::Boolean),
    ("trt_force_sequential_engine_build", "trt_force_sequential_engine_build", Value::Boolean),
    ("trt_context_memory_sharing_enable", "trt_context_memory_sharing_enable", Value::Boolean),
    ("trt_layer_norm_fp32_fallback", "trt_layer_norm_fp32_fallback", Value::Boolean),
    ("trt_timing_cache_enable", "trt_timing_cache_enable", Value::Boolean),
    ("trt_timing_cache_path", "trt_timing_cache_path", Value::Text),
    ("trt_force_timing_cache", "trt_force_timing_cache", Value::Boolean),
    ("trt_detailed_build_log", "trt_detailed_build_log", Value::Boolean),
    ("trt_build_heuristics_enable", "trt_build_heuristics_enable", Value::Boolean),
    ("trt_sparsity_enable", "trt_sparsity_enable", Value::Boolean),
    ("trt_builder_optimization_level", "trt_builder_optimization_level", Value::Integer),
    ("trt_auxiliary_streams", "trt_auxiliary_streams", Value::Integer),
    ("trt_tactic_sources", "trt_tactic_sources", Value::Text),
    ("trt_extra_plugin_lib_paths", "trt_extra_plugin_lib_paths", Value::Text),
    ("trt_profile_min_shapes", "trt_profile_min_shapes", Value::Text),
    ("trt_profile_max_shapes", "trt_profile_max_shapes", Value::Text),
    ("trt_profile_opt_shapes", "trt_profile_opt_shapes", Value::Text),
    ("trt_cuda_graph_enable", "trt_cuda_graph_enable", Value::Boolean),
    ("trt_dump_ep_context_model", "trt_dump_ep_context_model", Value::Boolean),
    ("trt_ep_context_file_path", "trt_ep_context_file_path", Value::Text),
    ("trt_ep_context_embed_mode", "trt_ep_context_embed_mode", Value::Integer),
];

#[cfg(test)]
mod tests;
