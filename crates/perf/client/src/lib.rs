//! A lean client of the KServe v2 protocol, for tools that send the same requests many times.
//!
//! A request is described once ([`InferTemplate`]), encoded once ([`PreparedInfer`]) and sent any number of
//! times; [`InferMark`] holds the difference between two sendings. All network types live on the thread that made them: a tokio
//! `current_thread` runtime with I/O and time enabled, inside a `LocalSet`. A request never takes a lock that another thread
//! holds.
//!
//! **Invariants.** Nothing here measures load or prints; times are reported as [`std::time::Instant`]s taken as
//! close to the socket as the protocol allows.

#![warn(missing_docs)]

mod address;
mod admin;
mod call;
mod connector;
mod facts;
mod grpc;
mod http;
mod metrics_text;
mod prepared_infer;
mod request_error;
mod response_error;
mod target;
mod template;
mod tls;
mod tls_failure;
mod transport;

pub use address::{Address, AddressError};
pub use admin::Admin;
pub use call::{CallTimes, KeepResponse, Reply, StreamReply};
pub use connector::{Caller, Connector, Responses};
pub use facts::{
    BatchStatistics, CountAndTime, ModelConfigFacts, ModelIndexEntry, ModelMetadata,
    ModelStatistics, ServerMetadata, TensorMetadata,
};
#[doc(hidden)]
pub use grpc::decode_infer_message;
pub use grpc::{StreamReceiver, StreamSender};
pub use http::{GetOptions, decode_infer_response, get};
pub use metrics_text::{MetricSample, metric_samples};
pub use prepared_infer::PreparedInfer;
pub use target::{Compression, Endpoint, Protocol, Target, Tls, read_header};
pub use template::{
    InferMark, InferTemplate, InputData, InputTensor, OutputTensor, RegionSlice, RequestedOutput,
    SequenceMark, TensorFormat,
};
