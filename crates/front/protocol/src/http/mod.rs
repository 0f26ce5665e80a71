//! Converts between KServe v2 JSON with the binary tensor extension and the types of requests and responses.
//!
//! [`decode`] turns the body of an inference request into an [`InferRequest`](galatea_types::InferRequest) and an
//! [`AnswerPlan`](crate::AnswerPlan). [`encode`] turns the response into the form of the plan. Tensor bytes of the
//! binary forms are never copied here; JSON numbers go straight into and out of tensor buffers. [`LastHeader`] decodes
//! for a connection, whose client may repeat the same text. [`decode_generate`] and [`encode_generate`] do the same for
//! the generate extension, and [`decode_for_lines`] and [`response_line`] for answers with many responses.

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
mod shared_memory;
mod tensor_data;
#[cfg(test)]
mod tests;
mod trace_settings;

pub use decode::decode;
pub use documents::{error_body, statistics, to_json};
pub use encode::{EncodedResponse, encode};
pub use generate::{decode_generate, encode_generate, server_sent_event};
pub use last_header::LastHeader;
pub use lines::{decode_for_lines, error_line, response_line};
pub use log_settings::{decode_log_change, log_settings};
pub use repository::{LoadRequest, decode_index, decode_load, decode_unload};
pub use sagemaker::{SageMakerLoad, SageMakerModel, decode_sagemaker_load, sagemaker_models};
pub use shared_memory::{
    CudaRegion, CudaRegionStatus, RegionStatus, SystemRegion, decode_cuda_region,
    decode_system_region, region_statuses,
};
pub use trace_settings::{decode_trace_change, trace_settings};
