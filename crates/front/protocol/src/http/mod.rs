//! KServe v2 JSON and the binary tensor extension to and from the vocabulary.
//!
//! [`decode`] turns the body of an inference request into an [`InferRequest`](galatea_types::InferRequest)
//! and an [`AnswerPlan`](crate::AnswerPlan); [`encode`] turns the answer into what the plan asks for. Tensor bytes of the
//! binary forms are never copied here; JSON numbers go straight into and out of tensor buffers.
//! [`LastHeader`] does it for a connection, whose client may send the same text again and again.
//! [`decode_generate`] and [`encode_generate`] do the same for the generate extension, and
//! [`decode_for_lines`] and [`response_line`] for answers of many responses.

mod advice;
mod decode;
mod decode_error;
mod documents;
mod element;
mod encode;
mod field;
mod float_digits;
mod generate;
mod input;
mod json;
mod json_error;
mod last_header;
mod limits;
mod lines;
mod log_settings;
mod number;
mod number_text;
mod output;
mod parameters;
mod plain_number;
mod plain_text;
mod raw;
mod region;
mod repository;
mod sagemaker;
mod tensor_data;
#[cfg(test)]
mod tests;

pub use decode::decode;
pub use documents::{error_body, statistics, to_json};
pub use encode::{EncodedResponse, encode};
pub use generate::{decode_generate, encode_generate, server_sent_event};
pub use last_header::LastHeader;
pub use lines::{decode_for_lines, error_line, response_line};
pub use log_settings::{decode_log_change, log_settings};
pub use repository::{LoadRequest, decode_index, decode_load, decode_unload};
pub use sagemaker::{SageMakerLoad, SageMakerModel, decode_sagemaker_load, sagemaker_models};
