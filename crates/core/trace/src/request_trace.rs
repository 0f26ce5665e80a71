//! The trace of one request.

use std::{sync::Arc, time::Instant};

use galatea_types::DataType;
use smallvec::SmallVec;

/// An event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The name in the file.
    pub name: &'static str,
    /// The instant.
    pub at: Instant,
    /// The same instant on the machine's monotonic clock, in nanoseconds.
    pub ns: u64,
}

/// The place where a tensor was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorPlace {
    /// An input, when its request came to the model.
    QueueInput,
    /// An output of the model.
    BackendOutput,
}

galatea_types::names! {
    /// The activity in the file.
    pub TensorPlace::activity {
        QueueInput = "TENSOR_QUEUE_INPUT", BackendOutput = "TENSOR_BACKEND_OUTPUT",
    }
}

/// The content of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedTensor {
    /// The place where it was seen.
    pub place: TensorPlace,
    /// Its name.
    pub name: Arc<str>,
    /// Its element type.
    pub data_type: DataType,
    /// Its dimensions, separated by commas.
    pub shape: String,
    /// Its elements, separated by commas; escaped for JSON.
    pub data: String,
}

/// The trace of one request. Requests that it causes have their own.
#[derive(Debug, Default)]
pub struct RequestTrace {
    /// The number of the trace, unique in this process.
    pub id: u64,
    /// The trace of the request that caused it; 0: none.
    pub parent_id: u64,
    /// The model that received the request; `None`: none did.
    pub model: Option<Arc<str>>,
    /// The version of the model.
    pub version: i64,
    /// The client's id of the request; empty: none.
    pub request_id: String,
    /// The number of events before the model received the request.
    pub events_before_model: usize,
    /// The events, in the order in which they were recorded.
    pub events: SmallVec<[Event; 16]>,
    /// The content of the tensors.
    pub tensors: Vec<TracedTensor>,
}
