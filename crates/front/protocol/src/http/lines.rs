//! Responses as newline-delimited JSON: one inference response per line. Beyond Triton, which has no way
//! to send more than one response over plain HTTP inference.

use bytes::Bytes;
use galatea_config::ModelConfig;
use galatea_types::{Error, InferRequest, InferResponse, ParameterValue, Regions, Result};

use super::{decode::Decoder, decode_error::DecodeError, documents::error_body, encode::encode};
use crate::answer_form::AnswerPlan;

/// Whether nothing follows; named as it is over gRPC.
const FINAL_RESPONSE: &str = "triton_final_response";

/// [`decode`](super::decode) for an answer in lines. Binary tensors cannot stand between them, so a request
/// for binary outputs fails; a raw binary request is answered in JSON.
///
/// The parameter `triton_enable_empty_final_response` is understood here.
pub fn decode_for_lines(
    body: &Bytes,
    header_length: usize,
    model: &ModelConfig,
    version: Option<i64>,
    regions: &dyn Regions,
) -> Result<(InferRequest, AnswerPlan)> {
    let decoder = Decoder { model, version, regions, is_for_lines: true };
    let (request, plan) = decoder.decode(body, header_length)?;
    if plan.has_binary() {
        return Err(DecodeError::BinaryInLines.into());
    }
    Ok((request, plan))
}

/// A response as a line, with the parameter `triton_final_response` after its own.
pub fn response_line<'a>(
    mut response: InferResponse,
    is_final: bool,
    plan: &AnswerPlan,
    label: impl Fn(&str, usize) -> Option<&'a str>,
) -> Result<Vec<u8>> {
    response.parameters.push((FINAL_RESPONSE.to_owned(), ParameterValue::Bool(is_final)));
    let mut line = encode(response, plan, label)?.json;
    line.push(b'\n');
    Ok(line)
}

/// An error as a line.
pub fn error_line(error: &Error) -> Vec<u8> {
    let mut line = error_body(error.message());
    line.push(b'\n');
    line
}
