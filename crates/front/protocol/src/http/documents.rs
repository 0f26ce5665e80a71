//! The JSON documents besides inference: metadata, repository index, statistics. Key orders are Triton's.

use std::collections::BTreeMap;

use galatea_config::{ModelConfig, TensorSpec};
use galatea_telemetry::{BatchStatistics, DurationCount, ResponseStatistics, StatisticsSnapshot};
use galatea_types::{Shape, product};
use serde::Serialize;

pub(super) fn to_json(document: &impl Serialize) -> Vec<u8> {
    // Writing to memory, with string keys only, cannot fail.
    serde_json::to_vec(document).unwrap_or_default()
}

/// Name, version and extensions of the server, and behind them what Triton does not have: which program it is.
pub fn server_metadata(name: &str, version: &str, extensions: &[&str]) -> Vec<u8> {
    #[derive(Serialize)]
    struct ServerMetadata<'a> {
        name: &'a str,
        version: &'a str,
        extensions: &'a [&'a str],
        implementation: &'a str,
    }
    let implementation = product::NAME_AND_VERSION;
    to_json(&ServerMetadata { name, version, extensions, implementation })
}

/// What a model takes and returns. `versions` are those that are ready, as numbers.
pub fn model_metadata(config: &ModelConfig, versions: &[i64]) -> Vec<u8> {
    #[derive(Serialize)]
    struct ModelMetadata<'a> {
        name: &'a str,
        versions: Vec<String>,
        platform: &'a str,
        inputs: Vec<TensorMetadata<'a>>,
        outputs: Vec<TensorMetadata<'a>>,
    }
    let platform = if config.platform().is_empty() { config.backend() } else { config.platform() };
    to_json(&ModelMetadata {
        name: config.name(),
        versions: versions.iter().map(ToString::to_string).collect(),
        platform,
        inputs: tensors(config.inputs(), config.has_batching()),
        outputs: tensors(config.outputs(), config.has_batching()),
    })
}

#[derive(Serialize)]
struct TensorMetadata<'a> {
    name: &'a str,
    datatype: &'static str,
    shape: Vec<i64>,
}

fn tensors(specs: &[TensorSpec], is_batched: bool) -> Vec<TensorMetadata<'_>> {
    let shape_of =
        |dims: &Shape| if is_batched { dims.with_leading(-1).to_vec() } else { dims.to_vec() };
    specs
        .iter()
        .map(|spec| TensorMetadata {
            name: &spec.name,
            datatype: spec.data_type.protocol_name(),
            shape: shape_of(&spec.dims),
        })
        .collect()
}

/// One row of the repository index. A model that was never loaded has only its name.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct IndexRow<'a> {
    /// Of the model.
    pub name: &'a str,
    /// `None` where it was never loaded.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub version: Option<i64>,
    /// `READY`, `UNAVAILABLE`, `LOADING` or `UNLOADING`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'a str>,
    /// Why it is not ready; often empty.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: &'a str,
}

fn as_text<S: serde::Serializer>(version: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    match version {
        Some(version) => serializer.collect_str(version),
        None => serializer.serialize_none(),
    }
}

/// The repository index, in the order of `rows`.
pub fn repository_index(rows: &[IndexRow<'_>]) -> Vec<u8> {
    to_json(&rows)
}

/// Statistics: name, version and figures of each model version. Durations are in nanoseconds, the time of the last
/// inference in milliseconds since 1970.
pub fn statistics<'a>(
    models: impl IntoIterator<Item = (&'a str, i64, &'a StatisticsSnapshot)>,
) -> Vec<u8> {
    #[derive(Serialize)]
    struct Document<'a> {
        model_stats: Vec<ModelStatistics<'a>>,
    }
    let model_stats = models
        .into_iter()
        .map(|(name, version, s)| ModelStatistics::new(name, version, s))
        .collect();
    to_json(&Document { model_stats })
}

#[derive(Serialize)]
struct ModelStatistics<'a> {
    name: &'a str,
    version: String,
    last_inference: u64,
    inference_count: u64,
    execution_count: u64,
    inference_stats: InferenceStatistics,
    /// By the place of a response among those to one request; only backends that report it fill it.
    response_stats: BTreeMap<String, ResponseEntry>,
    batch_stats: Vec<BatchEntry>,
    memory_usage: [Duration; 0],
}

#[derive(Serialize)]
struct InferenceStatistics {
    success: Duration,
    fail: Duration,
    queue: Duration,
    compute_input: Duration,
    compute_infer: Duration,
    compute_output: Duration,
    cache_hit: Duration,
    cache_miss: Duration,
}

#[derive(Serialize)]
struct BatchEntry {
    batch_size: u64,
    compute_input: Duration,
    compute_infer: Duration,
    compute_output: Duration,
}

#[derive(Serialize)]
struct ResponseEntry {
    compute_infer: Duration,
    compute_output: Duration,
    success: Duration,
    fail: Duration,
    empty_response: Duration,
    cancel: Duration,
}

/// In Triton's order, in which "10" comes before "2".
fn response_entries(responses: &[ResponseStatistics]) -> BTreeMap<String, ResponseEntry> {
    let of_place = |(place, s): (usize, &ResponseStatistics)| {
        let entry = ResponseEntry {
            compute_infer: s.compute_infer.into(),
            compute_output: s.compute_output.into(),
            success: s.success.into(),
            fail: s.fail.into(),
            empty_response: s.empty_response.into(),
            cancel: s.cancel.into(),
        };
        (place.to_string(), entry)
    };
    responses.iter().enumerate().map(of_place).collect()
}

#[derive(Serialize)]
struct Duration {
    count: u64,
    ns: u64,
}

impl From<DurationCount> for Duration {
    fn from(d: DurationCount) -> Self {
        Self { count: d.count, ns: d.ns }
    }
}

impl<'a> ModelStatistics<'a> {
    fn new(name: &'a str, version: i64, s: &StatisticsSnapshot) -> Self {
        Self {
            name,
            version: version.to_string(),
            last_inference: s.last_inference_ms,
            inference_count: s.inference_count,
            execution_count: s.execution_count,
            inference_stats: InferenceStatistics {
                success: s.success.into(),
                fail: s.fail.into(),
                queue: s.queue.into(),
                compute_input: s.compute_input.into(),
                compute_infer: s.compute_infer.into(),
                compute_output: s.compute_output.into(),
                cache_hit: s.cache_hit.into(),
                cache_miss: s.cache_miss.into(),
            },
            response_stats: response_entries(&s.responses),
            batch_stats: s.batches.iter().map(|(&size, b)| BatchEntry::new(size, b)).collect(),
            memory_usage: [],
        }
    }
}

impl BatchEntry {
    fn new(batch_size: u64, b: &BatchStatistics) -> Self {
        Self {
            batch_size,
            compute_input: b.compute_input.into(),
            compute_infer: b.compute_infer.into(),
            compute_output: b.compute_output.into(),
        }
    }
}

/// The body of every error: `{"error": text}`.
pub fn error_body(message: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct ErrorBody<'a> {
        error: &'a str,
    }
    to_json(&ErrorBody { error: message })
}
