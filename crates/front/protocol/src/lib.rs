//! Translates between the wire formats (KServe v2 JSON, binary tensors, gRPC messages) and the types of requests and responses.
//!
//! There are no sockets and no engine here: a test can call every function with bytes and check the bytes that it returns.

#![warn(missing_docs)]

mod answer_form;
mod classification;
mod encode_error;
mod input_description;
mod load_report;
mod messages;
mod model_version;
mod status;
#[cfg(test)]
mod tests;

pub mod grpc;
pub mod http;

pub use answer_form::{AnswerForm, AnswerPlan};
pub use load_report::{LoadReport, ReportForm, ReportPlace};
pub use messages::{index_row, model_metadata, model_statistics, server_metadata};
pub use model_version::parse_model_version;
pub use status::{grpc_code, http_status};
