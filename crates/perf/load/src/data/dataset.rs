//! The data of a run before any batching.

use bytes::Bytes;
use galatea_perf_types::failure::Failure;

/// Independent streams of steps.
#[derive(Debug)]
pub struct Dataset {
    pub(super) streams: Vec<Vec<Step>>,
    /// The data came from JSON files. A directory does not count: it has one step, like generated data.
    pub(super) is_user_data: bool,
}

/// Data of one request of batch size 1.
#[derive(Debug)]
pub(super) struct Step {
    /// Inputs in the order of the model; `None` for an optional one that is left out.
    pub inputs: Vec<Option<TensorData>>,
    /// Outputs in the order of the model, `None` for one that may be anything; empty if all may.
    pub expected: Vec<Option<Bytes>>,
}

#[derive(Clone, Debug)]
pub(super) struct TensorData {
    /// The shape without the batch dimension.
    pub shape: Vec<i64>,
    pub data: Bytes,
}

impl Dataset {
    pub(super) fn of_one(step: Step) -> Self {
        Self { streams: vec![vec![step]], is_user_data: false }
    }

    /// Returns the number of streams; at least one.
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Returns the number of steps of a stream; zero if there is no such stream.
    pub fn step_count(&self, stream: usize) -> usize {
        self.streams.get(stream).map_or(0, Vec::len)
    }

    pub(super) fn step(&self, stream: usize, step: usize) -> Option<&Step> {
        self.streams.get(stream)?.get(step)
    }

    /// Returns the steps of one request. The end of a stream wraps around to its start.
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

/// The failure of input data.
pub(super) fn bad_data(text: impl std::fmt::Display) -> Failure {
    Failure::generic(format!("error: Failed to init manager inputs: {text}"))
}

/// The failure of requests made from good data.
pub(super) fn bad_requests(text: impl std::fmt::Display) -> Failure {
    Failure::generic(format!("error: Unable to init infer data manager: {text}"))
}
