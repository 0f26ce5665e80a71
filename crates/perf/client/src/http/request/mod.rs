//! Inference requests as they travel over HTTP.

use std::{fmt::Write, slice};

use bytes::Bytes;
use galatea_types::{ParameterValue, Result};
use serde_json::to_string as quoted;

use super::{json_data, model_path};
use crate::{
    InferMark, InferTemplate, InputData, InputTensor, RegionSlice, RequestedOutput, Target,
    TensorFormat, request_error::RequestError,
};

/// Tensor data up to this length is joined with the head, so that one write sends everything.
const JOIN_LIMIT: usize = 64 << 10;

/// A whole request without marks, and the pieces to build one with marks.
#[derive(Debug)]
pub(crate) struct HttpInfer {
    /// The whole request without a mark, up to `tail`.
    plain: Bytes,
    /// Request line and header fields, up to those with the lengths.
    head: String,
    /// Members of the user's `parameters`, without braces.
    parameters: String,
    /// The JSON after `parameters`, to its end.
    rest: String,
    /// Tensor data that is copied after the JSON.
    joined: Vec<u8>,
    /// Tensor data that is not copied.
    tail: Vec<Bytes>,
    has_binary: bool,
}

impl HttpInfer {
    pub fn new(target: &Target, template: &InferTemplate, id: Option<&str>) -> Result<Self> {
        let mut rest = String::new();
        if let Some(id) = id {
            let _ = write!(rest, "\"id\":{},", string(id)?);
        }
        rest.push_str("\"inputs\":[");
        let mut binary = Vec::new();
        separated(&mut rest, &template.inputs, |json, input| {
            write_input(json, &mut binary, input, template.input_format)
        })?;
        rest.push(']');
        if !template.outputs.is_empty() {
            rest.push_str(",\"outputs\":[");
            separated(&mut rest, &template.outputs, |json, output| {
                write_output(json, output, template.output_format)
            })?;
            rest.push(']');
        }
        rest.push('}');

        let total: usize = binary.iter().map(Bytes::len).sum();
        let has_binary = !binary.is_empty();
        let (joined, tail) = match total <= JOIN_LIMIT {
            true => (binary.concat(), Vec::new()),
            false => (Vec::new(), binary),
        };
        let head = head(target, template, has_binary)?;
        let parameters = parameters(template)?;
        let mut request =
            Self { plain: Bytes::new(), head, parameters, rest, joined, tail, has_binary };
        let mut plain = Vec::new();
        request.assemble(InferMark::default(), &mut plain);
        request.plain = plain.into();
        Ok(request)
    }

    /// Returns the request's bytes up to its tail, built in `scratch` if there is a mark.
    pub fn front<'a>(&'a self, mark: InferMark, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if mark.id.is_none() && mark.sequence.is_none() {
            return &self.plain;
        }
        scratch.clear();
        self.assemble(mark, scratch);
        scratch
    }

    /// Returns the bytes after the front.
    pub fn tail(&self) -> slice::Iter<'_, Bytes> {
        self.tail.iter()
    }

    fn assemble(&self, mark: InferMark, out: &mut Vec<u8>) {
        let prefix = self.prefix(mark);
        let json_length = prefix.len() + self.rest.len();
        let tail: usize = self.tail.iter().map(Bytes::len).sum();
        let length = json_length + self.joined.len() + tail;
        let lengths = match self.has_binary {
            true => format!(
                "Inference-Header-Content-Length: {json_length}\r\nContent-Length: {length}\r\n\r\n"
            ),
            false => format!("Content-Length: {length}\r\n\r\n"),
        };
        out.reserve(self.head.len() + lengths.len() + length - tail);
        for part in [self.head.as_str(), &lengths, &prefix, &self.rest] {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(&self.joined);
    }

    /// Returns the JSON up to `parameters`, which are included.
    fn prefix(&self, mark: InferMark) -> String {
        let mut json = String::with_capacity(128 + self.parameters.len());
        json.push('{');
        // Writing to a string does not fail.
        if let Some(id) = mark.id {
            let _ = write!(json, "\"id\":\"{id}\",");
        }
        if mark.sequence.is_none() && self.parameters.is_empty() {
            return json;
        }
        json.push_str("\"parameters\":{");
        if let Some(sequence) = mark.sequence {
            let _ = write!(
                json,
                "\"sequence_id\":{},\"sequence_start\":{},\"sequence_end\":{}",
                sequence.id, sequence.start, sequence.end
            );
            if !self.parameters.is_empty() {
                json.push(',');
            }
        }
        json.push_str(&self.parameters);
        json.push_str("},");
        json
    }
}

fn head(target: &Target, template: &InferTemplate, has_binary: bool) -> Result<String> {
    let content = if has_binary { "application/octet-stream" } else { "application/json" };
    let mut head = request_line(
        target,
        "POST",
        &format!("{}/infer", model_path(&template.model, &template.version)),
    )?;
    let _ = write!(head, "Content-Type: {content}\r\n");
    Ok(head)
}

/// Returns the request line and the header fields that every request has.
///
/// # Errors
/// If a header of the target's cannot be sent.
pub(super) fn request_line(target: &Target, method: &str, path: &str) -> Result<String> {
    let mut head = format!("{method} {}{path} HTTP/1.1\r\n", target.base_path);
    let has = |name: &str| target.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    if !has("host") {
        let _ = write!(head, "Host: {}\r\n", target.authority());
    }
    if !has("accept") {
        head.push_str("Accept: */*\r\n");
    }
    for (name, value) in &target.headers {
        if http::HeaderName::from_bytes(name.as_bytes()).is_err()
            || http::HeaderValue::from_str(value).is_err()
        {
            return Err(RequestError::Header { name: name.clone(), value: value.clone() }.into());
        }
        let _ = write!(head, "{name}: {value}\r\n");
    }
    Ok(head)
}

fn parameters(template: &InferTemplate) -> Result<String> {
    let mut json = String::new();
    if template.outputs.is_empty() && template.output_format == TensorFormat::Binary {
        json.push_str("\"binary_data_output\":true");
    }
    for (name, value) in &template.parameters {
        if !json.is_empty() {
            json.push(',');
        }
        json.push_str(&parameter(name, value)?);
    }
    Ok(json)
}

/// Returns `"name":value`.
pub(super) fn parameter(name: &str, value: &ParameterValue) -> Result<String> {
    let text = match value {
        ParameterValue::Bool(value) => value.to_string(),
        ParameterValue::Int(value) => value.to_string(),
        ParameterValue::Uint(value) => value.to_string(),
        ParameterValue::Double(value) if value.is_finite() => format!("{value:?}"),
        &ParameterValue::Double(value) => {
            return Err(RequestError::Parameter { name: name.to_owned(), value }.into());
        }
        ParameterValue::String(value) => string(value)?,
    };
    Ok(format!("{}:{text}", string(name)?))
}

fn write_input(
    json: &mut String,
    binary: &mut Vec<Bytes>,
    input: &InputTensor,
    format: TensorFormat,
) -> Result<()> {
    let name = string(&input.name)?;
    let _ = write!(json, "{{\"name\":{name},\"shape\":[");
    separated(json, &input.shape, |json, size| {
        let _ = write!(json, "{size}");
        Ok(())
    })?;
    json.push(']');
    let _ = write!(json, ",\"datatype\":\"{}\"", input.data_type);
    match (&input.data, format) {
        (InputData::Region(region), _) => {
            let _ = write!(json, ",\"parameters\":{{{}}}", region_members(region)?);
        }
        (InputData::Inline(data), TensorFormat::Binary) => {
            let _ = write!(json, ",\"parameters\":{{\"binary_data_size\":{}}}", data.len());
            binary.push(data.clone());
        }
        (InputData::Inline(data), TensorFormat::Json) => {
            json.push_str(",\"data\":[");
            json_data::write(json, &input.name, input.data_type, data)?;
            json.push(']');
        }
    }
    json.push('}');
    Ok(())
}

fn write_output(json: &mut String, output: &RequestedOutput, format: TensorFormat) -> Result<()> {
    let _ = write!(json, "{{\"name\":{},\"parameters\":{{", string(&output.name)?);
    match &output.region {
        Some(region) => json.push_str(&region_members(region)?),
        None => {
            let _ = write!(json, "\"binary_data\":{}", format == TensorFormat::Binary);
            if output.classes > 0 {
                let _ = write!(json, ",\"classification\":{}", output.classes);
            }
        }
    }
    json.push_str("}}");
    Ok(())
}

fn region_members(region: &RegionSlice) -> Result<String> {
    let mut members = format!("\"shared_memory_region\":{}", string(&region.region)?);
    let _ = write!(members, ",\"shared_memory_byte_size\":{}", region.byte_size);
    if region.offset != 0 {
        let _ = write!(members, ",\"shared_memory_offset\":{}", region.offset);
    }
    Ok(members)
}

fn separated<T>(
    json: &mut String,
    items: &[T],
    mut put: impl FnMut(&mut String, &T) -> Result<()>,
) -> Result<()> {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        put(json, item)?;
    }
    Ok(())
}

pub(super) fn string(text: &str) -> Result<String, RequestError> {
    quoted(text).map_err(RequestError::Json)
}

#[cfg(test)]
mod tests;
