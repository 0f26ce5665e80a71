//! A worker's request in a message.

use std::borrow::Cow;

use galatea_types::TraceContext;
use serde::Deserialize;

use crate::wire::{
    read::{ProtocolError, Reader, size},
    tensor::TensorHead,
};

/// A worker's request to another model, as the message describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestHead<'a> {
    /// Key that names the request until it is answered. For a call to another model: the request that caused it, or 0 if
    /// unknown.
    pub key: u64,
    /// Correlation id as a number; 0: none.
    pub correlation_id: u64,
    /// Timeout in microseconds; 0: none.
    pub timeout_us: u64,
    /// Version of the model; -1: any.
    pub model_version: i64,
    /// Priority; 0: the model's default.
    pub priority: i64,
    /// Bit 0: start of a sequence, bit 1: its end.
    pub flags: u32,
    /// The caller's own id.
    pub id: &'a str,
    /// Correlation id as a text. It is used if it is not empty.
    pub correlation_text: &'a str,
    /// Name of the model to execute.
    pub model: &'a str,
    /// The span that caused the request, as JSON with a `traceparent`; usually empty.
    pub trace: &'a str,
    /// Parameters as JSON; empty if there are none.
    pub parameters: &'a [u8],
    /// Names of the requested outputs.
    pub outputs: Vec<&'a str>,
    /// Inputs in their order.
    pub inputs: Vec<TensorHead<'a>>,
}

impl<'a> RequestHead<'a> {
    /// Reads a request from the front of meta.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, ProtocolError> {
        let [key, correlation_id, timeout_us] = [reader.u64()?, reader.u64()?, reader.u64()?];
        let (model_version, priority) = (reader.i64()?, reader.i64()?);
        let flags = reader.u32()?;
        let (input_count, output_count) = (reader.u16()?, reader.u16()?);
        let [id_length, correlation_length] = [reader.u16()?, reader.u16()?];
        let (model_length, trace_length) = (reader.u16()?, reader.u16()?);
        let parameters_length = size(reader.u32()?)?;
        Ok(Self {
            key,
            correlation_id,
            timeout_us,
            model_version,
            priority,
            flags,
            id: reader.text(id_length.into())?,
            correlation_text: reader.text(correlation_length.into())?,
            model: reader.text(model_length.into())?,
            trace: reader.text(trace_length.into())?,
            parameters: reader.bytes(parameters_length)?,
            outputs: (0..output_count).map(|_| name(reader)).collect::<Result<_, _>>()?,
            inputs: (0..input_count).map(|_| TensorHead::read(reader)).collect::<Result<_, _>>()?,
        })
    }
}

/// A span, as Triton gives it to models.
#[derive(Deserialize)]
struct SpanDocument<'a> {
    #[serde(borrow)]
    traceparent: Cow<'a, str>,
    #[serde(borrow, default)]
    tracestate: Cow<'a, str>,
}

impl RequestHead<'_> {
    /// Parses the span that caused the request, if the model has passed it on.
    pub fn trace_context(&self) -> Option<TraceContext> {
        if self.trace.is_empty() {
            return None;
        }
        let span: SpanDocument<'_> = serde_json::from_str(self.trace).ok()?;
        let context = TraceContext::parse(span.traceparent.as_bytes())?;
        Some(context.with_state(span.tracestate.as_bytes()))
    }
}

fn name<'a>(reader: &mut Reader<'a>) -> Result<&'a str, ProtocolError> {
    let length = reader.u16()?;
    reader.text(length.into())
}
