//! The requests of a run, by data stream and step.

use std::sync::Arc;

use galatea_client::InferTemplate;

/// All requests, made from the input data. Shared by the load's workers, hence `Sync`.
pub trait RequestSource: Send + Sync {
    /// Independent streams of data; sequences take one each, in turn. At least one.
    fn stream_count(&self) -> usize;

    /// Steps of a stream; at least one.
    fn step_count(&self, stream: usize) -> usize;

    /// The request of a step, batched: with a batch size of n it holds the data of this step and the n - 1 after it.
    fn template(&self, stream: usize, step: usize) -> Arc<InferTemplate>;

    /// The expected outputs, from `validation_data`; `None`: outputs are not checked.
    fn expected(&self, stream: usize, step: usize) -> Option<&[ExpectedOutput]>;

    /// Returns true if the user gave data, which then decides the length of sequences.
    fn is_user_data(&self) -> bool;
}

/// One output as `validation_data` has it, joined over the batch.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedOutput {
    /// The output's name.
    pub name: String,
    /// The data, as in [`OutputTensor::data`](galatea_client::OutputTensor::data).
    pub data: bytes::Bytes,
}
