//! Encodes messages to the worker.

use std::sync::Arc;

use galatea_types::{
    CorrelationId, Error, InferRequest, InferResponse, ParameterValue, Parameters, Result, Tensor,
    TraceContext,
};

use crate::wire::{
    protocol::{INLINE_LIMIT, flag},
    response, tensor,
};

/// Memory for tensors that are too large for a packet.
pub trait Blocks {
    /// Copies `bytes` to a new block and returns its offset.
    fn put(&mut self, bytes: &[u8]) -> Result<u64>;
}

/// A message that is being written. It keeps its memory from one message to the next.
#[derive(Debug, Default)]
pub struct OutgoingMessage {
    /// One of [`kind`](crate::wire::kind).
    pub kind: u8,
    /// Bits of [`flag`](crate::wire::flag).
    pub flags: u8,
    /// Number of requests or responses, by kind.
    pub count: u32,
    /// Meaning by kind.
    pub id: u64,
    /// The content by kind, without inline data.
    pub meta: Vec<u8>,
    /// Tensors that travel inline.
    pub data: Vec<u8>,
}

/// A position in a message.
#[derive(Clone, Copy, Debug)]
pub struct MessagePosition {
    meta: usize,
    data: usize,
}

/// Alignment of inline tensors in bytes, counted from the first.
const INLINE_ALIGNMENT: usize = 16;

impl OutgoingMessage {
    /// Makes an empty message.
    pub fn new(kind: u8, id: u64) -> Self {
        Self { kind, id, ..Self::default() }
    }

    /// Makes a message that is only text.
    pub fn with_text(kind: u8, text: &str) -> Self {
        Self { kind, meta: text.as_bytes().to_vec(), ..Self::default() }
    }

    /// Empties it for another message.
    pub fn reset(&mut self, kind: u8, id: u64) {
        (self.kind, self.id, self.flags, self.count) = (kind, id, 0, 0);
        self.meta.clear();
        self.data.clear();
    }

    /// Returns the position behind what was written, for [`OutgoingMessage::truncate`].
    pub fn position(&self) -> MessagePosition {
        MessagePosition { meta: self.meta.len(), data: self.data.len() }
    }

    /// Removes what was written after `position`.
    pub fn truncate(&mut self, position: MessagePosition) {
        self.meta.truncate(position.meta);
        self.data.truncate(position.data);
    }

    fn put_tensor(&mut self, tensor: &Tensor, blocks: &mut dyn Blocks) -> Result<()> {
        let bytes = tensor.host()?;
        let start = self.data.len().next_multiple_of(INLINE_ALIGNMENT);
        let (place, offset) = if start + bytes.len() <= INLINE_LIMIT {
            self.data.resize(start, 0);
            self.data.extend_from_slice(bytes);
            (0, start as u64)
        } else {
            (1, blocks.put(bytes)?)
        };
        self.put(&short(tensor.name.len(), "a tensor's name")?.to_le_bytes());
        self.put(&[tensor::data_type_number(tensor.data_type), place]);
        self.put(&long(tensor.shape.len(), "a tensor's rank")?.to_le_bytes());
        self.put(&offset.to_le_bytes());
        self.put(&(bytes.len() as u64).to_le_bytes());
        tensor.shape.iter().for_each(|d| self.put(&d.to_le_bytes()));
        self.put(tensor.name.as_bytes());
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) {
        self.meta.extend_from_slice(bytes);
    }
}

/// A request that is sent to the worker.
#[derive(Clone, Copy, Debug)]
pub struct SentRequest<'a> {
    /// Key that names the request until it is answered.
    pub key: u64,
    /// Version of the model that executes it.
    pub model_version: i64,
    /// The request as the client sent it.
    pub request: &'a InferRequest,
    /// Inputs of the request, in the shapes the model expects.
    pub inputs: &'a [Tensor],
    /// Names of the requested outputs, or of all of the model's.
    pub outputs: &'a [Arc<str>],
    /// The request's span.
    pub trace: Option<&'a TraceContext>,
}

/// Appends a request to `message`.
///
/// # Errors
/// When an input finds no room in `blocks`, or a part is too long for the protocol.
pub fn put_request(
    message: &mut OutgoingMessage,
    sent: &SentRequest<'_>,
    blocks: &mut dyn Blocks,
) -> Result<()> {
    let SentRequest { key, model_version, request, inputs, outputs, trace } = *sent;
    let (number, text) = match &request.correlation_id {
        CorrelationId::None => (0, ""),
        CorrelationId::Number(number) => (*number, ""),
        CorrelationId::Text(text) => (0, text.as_str()),
    };
    let timeout = request.timeout.map_or(0, |t| u64::try_from(t.as_micros()).unwrap_or(u64::MAX));
    let flags = u32::from(request.sequence_start) | u32::from(request.sequence_end) << 1;
    let parameters = json_of(&request.parameters);
    let trace = trace.map_or_else(String::new, trace_json);
    message.put(&key.to_le_bytes());
    message.put(&number.to_le_bytes());
    message.put(&timeout.to_le_bytes());
    message.put(&model_version.to_le_bytes());
    message.put(&i64::try_from(request.priority).unwrap_or(i64::MAX).to_le_bytes());
    message.put(&flags.to_le_bytes());
    message.put(&short(inputs.len(), "the number of inputs")?.to_le_bytes());
    message.put(&short(outputs.len(), "the number of outputs")?.to_le_bytes());
    message.put(&short(request.id.len(), "the request's id")?.to_le_bytes());
    message.put(&short(text.len(), "the correlation id")?.to_le_bytes());
    // No name: the model is known.
    message.put(&[0; 2]);
    message.put(&short(trace.len(), "the trace context")?.to_le_bytes());
    message.put(&long(parameters.len(), "the parameters")?.to_le_bytes());
    for text in [&request.id, text, &trace, &parameters] {
        message.put(text.as_bytes());
    }
    for output in outputs {
        message.put(&short(output.len(), "an output's name")?.to_le_bytes());
        message.put(output.as_bytes());
    }
    inputs.iter().try_for_each(|tensor| message.put_tensor(tensor, blocks))
}

/// Formats a span as Triton gives it to models.
fn trace_json(span: &TraceContext) -> String {
    let parent = format!("\"{}\":\"{span}\"", TraceContext::HEADER);
    match span.state() {
        None => format!("{{{parent}}}"),
        Some(state) => {
            let state = state.replace('\\', "\\\\").replace('"', "\\\"");
            format!("{{{parent},\"{}\":\"{state}\"}}", TraceContext::STATE_HEADER)
        }
    }
}

/// Appends the response to the request `key`. Key 0 means the answer to the worker's own BLS request. `None`: a response
/// without a body.
///
/// # Errors
/// When an output finds no room in `blocks`, or a part is too long for the protocol.
pub fn put_response(
    message: &mut OutgoingMessage,
    key: u64,
    response: Option<&Result<InferResponse>>,
    blocks: &mut dyn Blocks,
) -> Result<()> {
    let none = (Vec::new(), &[][..]);
    let (code, text, (parameters, outputs)) = match response {
        None => (0, "", none),
        Some(Err(error)) => (response::code_number(error.code()), error.message(), none),
        Some(Ok(response)) => {
            (0, "", (json_of(&response.parameters).into_bytes(), &response.outputs[..]))
        }
    };
    message.put(&key.to_le_bytes());
    message.put(&[code, u8::from(matches!(response, Some(Ok(_))))]);
    message.put(&short(outputs.len(), "the number of outputs")?.to_le_bytes());
    message.put(&long(text.len(), "an error's text")?.to_le_bytes());
    message.put(&long(parameters.len(), "the parameters")?.to_le_bytes());
    message.put(&[0; 4]);
    message.put(text.as_bytes());
    message.put(&parameters);
    outputs.iter().try_for_each(|tensor| message.put_tensor(tensor, blocks))
}

/// Makes `message` the report of a failure: see [`Failure`](crate::wire::Failure).
pub fn put_failure(message: &mut OutgoingMessage, error: &Error) {
    let text = error.message().as_bytes();
    message.flags |= flag::ERROR;
    message.count = response::code_number(error.code()).into();
    message.put(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    message.put(text);
}

/// Formats parameters as a JSON object. Returns an empty text if there are none.
fn json_of(parameters: &Parameters) -> String {
    if parameters.is_empty() {
        return String::new();
    }
    let member = |(name, value): &(String, ParameterValue)| {
        let value = match value {
            ParameterValue::Bool(value) => (*value).into(),
            ParameterValue::Int(value) => (*value).into(),
            ParameterValue::Uint(value) => (*value).into(),
            ParameterValue::Double(value) => (*value).into(),
            ParameterValue::String(value) => serde_json::Value::String(value.clone()),
        };
        format!("{}:{value}", serde_json::Value::String(name.clone()))
    };
    let members: Vec<String> = parameters.iter().map(member).collect();
    format!("{{{}}}", members.join(","))
}

fn short(length: usize, what: &str) -> Result<u16> {
    u16::try_from(length).map_err(|_| too_long(what))
}

fn long(length: usize, what: &str) -> Result<u32> {
    u32::try_from(length).map_err(|_| too_long(what))
}

fn too_long(what: &str) -> Error {
    Error::invalid_arg(format!("{what} is too long for the process of a model"))
}
