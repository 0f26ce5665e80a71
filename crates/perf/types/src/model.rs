//! The model under load, as far as the tool needs to know it.

use galatea_types::DataType;

/// The facts about the model that the load and the reports need.
#[derive(Clone, Debug)]
pub struct ModelInfo {
    /// The model's name.
    pub name: String,
    /// The requested version; empty: the latest.
    pub version: String,
    /// Largest batch; zero: the model has no batch dimension.
    pub max_batch_size: u64,
    /// The scheduler that runs its requests.
    pub scheduling: SchedulingKind,
    /// A request may have any number of responses.
    pub decoupled: bool,
    /// The server may answer from its cache (the model's, or a composing model's).
    pub response_cache: bool,
    /// The ensemble itself answers from the cache.
    pub top_level_response_cache: bool,
    /// The inputs, in the order of the metadata.
    pub inputs: Vec<InputInfo>,
    /// The outputs, in the order of the metadata.
    pub outputs: Vec<OutputInfo>,
    /// Steps of an ensemble, or `--bls-composing-models`.
    pub composing: Vec<ComposingModel>,
}

/// The scheduling of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulingKind {
    /// Requests are not batched.
    None,
    /// Requests are batched by the server.
    Dynamic,
    /// Requests belong to sequences.
    Sequence,
    /// The model is a graph of other models.
    Ensemble,
    /// An ensemble with a sequence model among its steps.
    EnsembleSequence,
}

/// An input of the model.
#[derive(Clone, Debug)]
pub struct InputInfo {
    /// The input's name.
    pub name: String,
    /// The type of its elements.
    pub data_type: DataType,
    /// The shape without the batch dimension; -1 where it may vary.
    pub shape: Vec<i64>,
    /// The input holds a shape, so it has no batch dimension.
    pub is_shape_tensor: bool,
    /// A request may leave it out.
    pub optional: bool,
}

/// An output of the model.
#[derive(Clone, Debug)]
pub struct OutputInfo {
    /// The output's name.
    pub name: String,
    /// The type of its elements.
    pub data_type: DataType,
    /// The shape without the batch dimension; -1 where it may vary.
    pub shape: Vec<i64>,
}

/// One model inside another, with what is inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComposingModel {
    /// The model's name.
    pub name: String,
    /// Empty: any version.
    pub version: String,
    /// The models inside it.
    pub composing: Vec<ComposingModel>,
}

impl ModelInfo {
    /// Returns true if every request must belong to a sequence.
    pub fn is_sequence(&self) -> bool {
        matches!(self.scheduling, SchedulingKind::Sequence | SchedulingKind::EnsembleSequence)
    }
}
