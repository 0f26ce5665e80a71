//! Responses as newline-delimited JSON: one inference response per line. This goes beyond Triton, which cannot send
//! more than one response over plain HTTP inference.

use bytes::Bytes;
use galatea_config::ModelConfig;
use galatea_types::{Error, InferResponse, ParameterValue, Regions, Result, UnreadRequest};

use super::{decode::Decoder, decode_error::DecodeError, documents::error_body, encode::encode};
use crate::answer_form::AnswerPlan;

/// The parameter that says if no response follows, named as over gRPC.
const FINAL_RESPONSE: &str = "triton_final_response";

/// Like [`LastHeader::decode`](super::LastHeader::decode), for an answer in lines. Binary tensors cannot be among them, so a request for binary
/// outputs fails; a raw binary request is answered in JSON.
///
/// Here the parameter `triton_enable_empty_final_response` has its meaning.
pub fn decode_for_lines(
    body: &Bytes,
    header_length: usize,
    model: &ModelConfig,
    version: Option<i64>,
    regions: &dyn Regions,
) -> Result<(UnreadRequest, AnswerPlan)> {
    let decoder = Decoder { model, version, regions, is_for_lines: true };
    let (request, plan) = decoder.decode(body, header_length)?;
    if plan.has_binary() {
        return Err(DecodeError::BinaryInLines.into());
    }
    Ok((request, plan))
}

/// Returns a response as a line, with the parameter `triton_final_response` after its own.
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

/// Returns an error as a line.
pub fn error_line(error: &Error) -> Vec<u8> {
    let mut line = error_body(error.message());
    line.push(b'\n');
    line
}
