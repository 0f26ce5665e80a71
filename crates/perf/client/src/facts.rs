//! Reports of a server about itself and its models, the same over both protocols.

use galatea_types::{DataType, Error};

/// A server's report about itself (`/v2`, `ServerMetadata`).
#[derive(Clone, Debug, Default)]
pub struct ServerMetadata {
    /// The server's name, e.g. `triton`.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// Names of the protocol extensions it has.
    pub extensions: Vec<String>,
    /// The program with that name, if the server reports it: `galatea 0.1.0`.
    pub implementation: String,
}

/// A server's report about a model (`/v2/models/{name}`, `ModelMetadata`).
#[derive(Clone, Debug, Default)]
pub struct ModelMetadata {
    /// The model's name.
    pub name: String,
    /// Versions that are available.
    pub versions: Vec<String>,
    /// Platform or backend, as the server names it.
    pub platform: String,
    /// The inputs, in the server's order.
    pub inputs: Vec<TensorMetadata>,
    /// The outputs, in the server's order.
    pub outputs: Vec<TensorMetadata>,
}

/// An input or output of a model.
#[derive(Clone, Debug)]
pub struct TensorMetadata {
    /// The tensor's name.
    pub name: String,
    /// The type of its elements.
    pub data_type: DataType,
    /// The shape, with the batch dimension as -1 if the model has one.
    pub shape: Vec<i64>,
}

/// The fields of a model's configuration that matter to a client.
#[derive(Clone, Debug, Default)]
pub struct ModelConfigFacts {
    /// The model's name.
    pub name: String,
    /// Largest batch; zero: the model has no batch dimension.
    pub max_batch_size: u64,
    /// The server batches requests.
    pub dynamic_batching: bool,
    /// Requests belong to sequences.
    pub sequence_batching: bool,
    /// A request may have any number of responses.
    pub decoupled: bool,
    /// Responses may come from the server's cache.
    pub response_cache: bool,
    /// Name and version (-1: latest) of each step, in order; empty if the model is not an ensemble.
    pub ensemble_steps: Vec<(String, i64)>,
    /// Names of inputs that are shape tensors, and of optional ones.
    pub shape_tensors: Vec<String>,
    /// Names of inputs that a request may leave out.
    pub optional_inputs: Vec<String>,
    /// Names of inputs that are images, and how they lie: `FORMAT_NHWC` or `FORMAT_NCHW`.
    pub image_formats: Vec<(String, String)>,
}

/// Counters of one model version since the server started; times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct ModelStatistics {
    /// The model's name.
    pub name: String,
    /// The version of these counters.
    pub version: String,
    /// Inferences: requests times their batch size.
    pub inference_count: u64,
    /// Executions of the model; fewer than inferences where requests are batched.
    pub execution_count: u64,
    /// Requests that succeeded, from arrival to response.
    pub success: CountAndTime,
    /// Requests that failed, from arrival to response.
    pub fail: CountAndTime,
    /// Time in the queue.
    pub queue: CountAndTime,
    /// Time in which inputs were prepared.
    pub compute_input: CountAndTime,
    /// Time in which the model was executed.
    pub compute_infer: CountAndTime,
    /// Time in which outputs were prepared.
    pub compute_output: CountAndTime,
    /// Responses from the cache.
    pub cache_hit: CountAndTime,
    /// Requests that were not found in the cache.
    pub cache_miss: CountAndTime,
    /// Executions by batch size.
    pub batches: Vec<BatchStatistics>,
}

/// Counters of the executions with one batch size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStatistics {
    /// Number of items that were executed together.
    pub batch_size: u64,
    /// Time in which inputs were prepared, once for a batch.
    pub compute_input: CountAndTime,
    /// Time in which the model was executed, once for a batch.
    pub compute_infer: CountAndTime,
    /// Time in which outputs were prepared, once for a batch.
    pub compute_output: CountAndTime,
}

/// A model version in the repository's index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelIndexEntry {
    /// The model's name.
    pub name: String,
    /// The version; empty for a model of which no version was loaded.
    pub version: String,
    /// `READY`, `UNAVAILABLE`, `LOADING`, `UNLOADING`, or empty.
    pub state: String,
    /// The reason for that state; may be empty.
    pub reason: String,
}

/// One counter of the statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountAndTime {
    /// Number of events.
    pub count: u64,
    /// Total time in nanoseconds.
    pub ns: u64,
}

/// The error of a tensor whose data type this client does not know.
pub(crate) fn unknown_data_type(model: &str, tensor: &str, data_type: &str) -> Error {
    Error::unsupported(format!(
        "tensor '{tensor}' of model '{model}' has data type '{data_type}', which is not known"
    ))
}
