//! A lean client of the KServe v2 protocol, for tools that send the same requests many times.
//!
//! A request is described once ([`InferTemplate`]), encoded once ([`PreparedInfer`]) and sent any number of
//! times; what changes between sendings is an [`InferMark`]. All network types live on the thread that made
//! them (a tokio `current_thread` runtime with a `LocalSet`), so nothing on the way of a request takes a lock.
//!
//! **Invariants.** Nothing here measures load or prints; times are reported as [`std::time::Instant`]s taken as
//! close to the socket as the protocol allows.

mod facts;
mod target;
mod template;

pub use facts::{
    CountAndTime, ModelConfigFacts, ModelMetadata, ModelStatistics, ServerMetadata, TensorMetadata,
};
pub use target::{Compression, Protocol, Target, Tls};
pub use template::{
    InferMark, InferTemplate, InputData, InputTensor, OutputTensor, RegionSlice, RequestedOutput,
    SequenceMark, TensorFormat,
};
