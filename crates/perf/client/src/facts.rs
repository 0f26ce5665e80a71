//! What a server says about itself and its models, the same over both protocols.

use galatea_types::{DataType, Error};

#[derive(Clone, Debug, Default)]
pub struct ServerMetadata {
    pub name: String,
    pub version: String,
    pub extensions: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct ModelMetadata {
    pub name: String,
    pub versions: Vec<String>,
    pub platform: String,
    pub inputs: Vec<TensorMetadata>,
    pub outputs: Vec<TensorMetadata>,
}

#[derive(Clone, Debug)]
pub struct TensorMetadata {
    pub name: String,
    pub data_type: DataType,
    /// With the batch dimension as -1, if the model has one.
    pub shape: Vec<i64>,
}

/// What of a model's configuration matters to who sends it requests.
#[derive(Clone, Debug, Default)]
pub struct ModelConfigFacts {
    pub name: String,
    pub max_batch_size: u64,
    pub dynamic_batching: bool,
    pub sequence_batching: bool,
    pub decoupled: bool,
    pub response_cache: bool,
    /// Name and version (-1: latest) of each step, in order; empty if it is no ensemble.
    pub ensemble_steps: Vec<(String, i64)>,
    /// Names of inputs that are shape tensors, and of optional ones.
    pub shape_tensors: Vec<String>,
    pub optional_inputs: Vec<String>,
}

/// Counters of one model version since the server started; times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct ModelStatistics {
    pub name: String,
    pub version: String,
    pub inference_count: u64,
    pub execution_count: u64,
    pub success: CountAndTime,
    pub queue: CountAndTime,
    pub compute_input: CountAndTime,
    pub compute_infer: CountAndTime,
    pub compute_output: CountAndTime,
    pub cache_hit: CountAndTime,
    pub cache_miss: CountAndTime,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountAndTime {
    pub count: u64,
    pub ns: u64,
}

/// The error of a tensor whose data type this client does not know.
pub(crate) fn unknown_data_type(model: &str, tensor: &str, data_type: &str) -> Error {
    Error::unsupported(format!(
        "tensor '{tensor}' of model '{model}' has data type '{data_type}', which is not known"
    ))
}
