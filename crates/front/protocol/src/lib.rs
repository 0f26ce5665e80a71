//! Pure translation between the wire forms and the vocabulary: KServe v2 JSON, binary tensors, gRPC messages.
//!
//! No sockets, no engine: every function here can be called from a test with bytes in and bytes out.

#![warn(missing_docs)]

mod answer_form;
mod classification;
mod encode_error;
mod messages;
mod model_version;
mod status;
mod taken;
#[cfg(test)]
mod tests;

pub mod grpc;
pub mod http;

pub use answer_form::{AnswerForm, AnswerPlan};
pub use messages::{index_row, model_metadata, model_statistics, server_metadata};
pub use model_version::parse_model_version;
pub use status::{grpc_code, http_status};
