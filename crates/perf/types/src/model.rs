//! The model under load, as far as the tool needs to know it.

use galatea_types::DataType;

#[derive(Clone, Debug)]
pub struct ModelInfo {
    pub name: String,
    /// As asked for; empty: the latest.
    pub version: String,
    pub max_batch_size: u64,
    pub scheduling: SchedulingKind,
    pub decoupled: bool,
    /// The server may answer from its cache (the model's, or a composing model's).
    pub response_cache: bool,
    /// The ensemble itself answers from the cache.
    pub top_level_response_cache: bool,
    pub inputs: Vec<InputInfo>,
    pub outputs: Vec<OutputInfo>,
    /// Steps of an ensemble, or `--bls-composing-models`.
    pub composing: Vec<ComposingModel>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulingKind {
    None,
    Dynamic,
    Sequence,
    Ensemble,
    /// An ensemble with a sequence model among its steps.
    EnsembleSequence,
}

#[derive(Clone, Debug)]
pub struct InputInfo {
    pub name: String,
    pub data_type: DataType,
    /// Without the batch dimension; -1 where it may vary.
    pub shape: Vec<i64>,
    pub is_shape_tensor: bool,
    pub optional: bool,
}

#[derive(Clone, Debug)]
pub struct OutputInfo {
    pub name: String,
    pub data_type: DataType,
    pub shape: Vec<i64>,
}

/// One model inside another, with what is inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComposingModel {
    pub name: String,
    /// Empty: any version.
    pub version: String,
    pub composing: Vec<ComposingModel>,
}

impl ModelInfo {
    pub fn is_sequence(&self) -> bool {
        matches!(self.scheduling, SchedulingKind::Sequence | SchedulingKind::EnsembleSequence)
    }
}
