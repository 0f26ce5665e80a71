//! The data of a run before any batching.

use bytes::Bytes;
use galatea_perf_types::failure::Failure;

/// Independent streams of steps.
#[derive(Debug)]
pub struct Dataset {
    pub(super) streams: Vec<Vec<Step>>,
    /// Read from JSON files. A directory does not count: it has one step, as generated data has.
    pub(super) is_user_data: bool,
}

/// Data of one request of batch size 1.
#[derive(Debug)]
pub(super) struct Step {
    /// In the order of the model's inputs; `None` for an optional one that is left out.
    pub inputs: Vec<Option<TensorData>>,
    /// In the order of the model's outputs, `None` for one that may be anything; empty where all may.
    pub expected: Vec<Option<Bytes>>,
}

#[derive(Clone, Debug)]
pub(super) struct TensorData {
    /// Without the batch dimension.
    pub shape: Vec<i64>,
    pub data: Bytes,
}

impl Dataset {
    pub(super) fn of_one(step: Step) -> Self {
        Self { streams: vec![vec![step]], is_user_data: false }
    }

    /// Streams of steps; at least one.
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Steps of a stream; zero where there is no such stream.
    pub fn step_count(&self, stream: usize) -> usize {
        self.streams.get(stream).map_or(0, Vec::len)
    }

    pub(super) fn step(&self, stream: usize, step: usize) -> Option<&Step> {
        self.streams.get(stream)?.get(step)
    }

    /// The steps that go into one request: wrapped around at the stream's end.
    pub(super) fn batch(
        &self,
        stream: usize,
        step: usize,
        size: usize,
    ) -> impl Iterator<Item = &Step> {
        let steps = self.streams.get(stream).map_or(&[][..], Vec::as_slice);
        steps.iter().cycle().skip(step).take(if steps.is_empty() { 0 } else { size })
    }
}

/// What is wrong with input data, as the user reads it.
pub(super) fn bad_data(text: impl std::fmt::Display) -> Failure {
    Failure::generic(format!("error: Failed to init manager inputs: {text}"))
}

/// What is wrong with requests made of good data.
pub(super) fn bad_requests(text: impl std::fmt::Display) -> Failure {
    Failure::generic(format!("error: Unable to init infer data manager: {text}"))
}
