//! The trace of one request.

use std::sync::Arc;

use galatea_types::{DataType, TraceContext};
use smallvec::SmallVec;

/// The events of most requests, which need no memory of their own.
pub(crate) const FEW_EVENTS: usize = 16;

/// An event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The name in the file.
    pub name: &'static str,
    /// The instant on the machine's monotonic clock, in nanoseconds.
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

/// The span of a client's request in a distributed trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSpan {
    /// The client's own span.
    pub client: TraceContext,
    /// The span of the request, below it.
    pub request: TraceContext,
}

impl ClientSpan {
    /// Returns the span of another request below this span of the client.
    pub fn below(client: TraceContext) -> Self {
        Self { request: client.child(), client }
    }
}

/// The place of a trace in a distributed trace. Only traces of mode `opentelemetry` have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracePlace {
    /// The id of the client's span; 0: the client has none.
    pub client_span: u64,
    /// The span of the client's request.
    pub request: TraceContext,
}

impl TracePlace {
    /// Returns the place of a request with this span of the client. Without one it begins a trace.
    pub(crate) fn new(client: Option<&ClientSpan>) -> Self {
        match client {
            None => Self { client_span: 0, request: TraceContext::begin() },
            Some(ClientSpan { client, request }) => {
                Self { client_span: client.span_id(), request: request.clone().sampled() }
            }
        }
    }
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
    /// The server answered with an error.
    pub is_failed: bool,
    /// The number of events before the model received the request.
    pub events_before_model: usize,
    /// The events, in the order in which they were recorded.
    pub events: SmallVec<[Event; FEW_EVENTS]>,
    /// The content of the tensors.
    pub tensors: Vec<TracedTensor>,
    /// The id of the model's span in a distributed trace; 0: none.
    pub span_id: u64,
    /// The text of the error that the model answered with; kept only for a distributed trace.
    pub error: Option<Box<str>>,
}
