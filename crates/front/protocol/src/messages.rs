//! The messages about the server, its models and their statistics, for both protocols: gRPC sends them as they are, and
//! HTTP as JSON.

use galatea_config::{ModelConfig, TensorSpec};
use galatea_proto::inference::{
    InferBatchStatistics, InferResponseStatistics, InferStatistics, ModelMetadataResponse,
    ModelStatistics, ServerMetadataResponse, StatisticDuration,
    model_metadata_response::TensorMetadata, repository_index_response::ModelIndex,
};
use galatea_telemetry::{DurationCount, ResponseStatistics, StatisticsSnapshot};
use galatea_types::product;

/// Returns the name, version and extensions of the server, followed by the name of the program, which Triton does not send.
pub fn server_metadata(name: &str, version: &str, extensions: &[&str]) -> ServerMetadataResponse {
    ServerMetadataResponse {
        name: name.to_owned(),
        version: version.to_owned(),
        extensions: extensions.iter().map(|&e| e.to_owned()).collect(),
        implementation: product::NAME_AND_VERSION.to_owned(),
    }
}

/// Returns the inputs and outputs of a model. `versions` are the ready versions.
pub fn model_metadata(config: &ModelConfig, versions: &[i64]) -> ModelMetadataResponse {
    let tensors = |specs: &[TensorSpec]| -> Vec<TensorMetadata> {
        specs.iter().map(|spec| tensor_metadata(spec, config.has_batching())).collect()
    };
    let platform = if config.platform().is_empty() { config.backend() } else { config.platform() };
    ModelMetadataResponse {
        name: config.name().as_ref().to_owned(),
        versions: versions.iter().map(i64::to_string).collect(),
        platform: platform.to_owned(),
        inputs: tensors(config.inputs()),
        outputs: tensors(config.outputs()),
    }
}

/// Clients see the batch dimension, with any size.
fn tensor_metadata(spec: &TensorSpec, has_batching: bool) -> TensorMetadata {
    let shape = if has_batching { spec.dims.with_leading(-1) } else { spec.dims.clone() };
    TensorMetadata {
        name: spec.name.as_ref().to_owned(),
        datatype: spec.data_type.protocol_name().to_owned(),
        shape: shape.to_vec(),
    }
}

/// Returns one row of the repository index. A model that was never loaded has only its name.
pub fn index_row(
    name: String,
    version: Option<i64>,
    state: Option<&str>,
    reason: String,
) -> ModelIndex {
    let version = version.map(|v| v.to_string()).unwrap_or_default();
    ModelIndex { name, version, state: state.unwrap_or_default().to_owned(), reason }
}

/// Returns the statistics of a version. Durations are in nanoseconds; the last inference is in milliseconds since 1970.
/// Every field is present, even at zero, because clients read them without a check.
pub fn model_statistics(name: String, version: i64, s: &StatisticsSnapshot) -> ModelStatistics {
    let infer = InferStatistics {
        success: duration(s.success),
        fail: duration(s.fail),
        queue: duration(s.queue),
        compute_input: duration(s.compute_input),
        compute_infer: duration(s.compute_infer),
        compute_output: duration(s.compute_output),
        cache_hit: duration(s.cache_hit),
        cache_miss: duration(s.cache_miss),
    };
    let batches = s.batches.iter().map(|(&batch_size, s)| InferBatchStatistics {
        batch_size,
        compute_input: duration(s.compute_input),
        compute_infer: duration(s.compute_infer),
        compute_output: duration(s.compute_output),
    });
    // By the index of the response among those to one request; "10" comes before "2", as in Triton.
    let responses = s.responses.iter().enumerate();
    ModelStatistics {
        name,
        version: version.to_string(),
        last_inference: s.last_inference_ms,
        inference_count: s.inference_count,
        execution_count: s.execution_count,
        inference_stats: Some(infer),
        batch_stats: batches.collect(),
        response_stats: responses.map(|(at, s)| (at.to_string(), response_statistics(s))).collect(),
        ..ModelStatistics::default()
    }
}

fn response_statistics(s: &ResponseStatistics) -> InferResponseStatistics {
    InferResponseStatistics {
        compute_infer: duration(s.compute_infer),
        compute_output: duration(s.compute_output),
        success: duration(s.success),
        fail: duration(s.fail),
        empty_response: duration(s.empty_response),
        cancel: duration(s.cancel),
    }
}

fn duration(d: DurationCount) -> Option<StatisticDuration> {
    Some(StatisticDuration { count: d.count, ns: d.ns })
}
