//! A client's request, independent of its protocol.

use std::{sync::Arc, time::Duration};

use crate::{Error, OutputAllocator, Result, Tensor};

/// A request parameter value. Front ends support different ones; none loses precision.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterValue {
    /// True or false.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A floating point number.
    Double(f64),
    /// Text.
    String(String),
}

/// Named parameters in the order of their arrival. There are few, so a list beats a map.
pub type Parameters = Vec<(String, ParameterValue)>;

/// Names of parameters with a meaning for the server.
pub const RESERVED_PARAMETERS: [&str; 6] =
    ["sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "binary_data_output"];

/// The sequence of a request, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum CorrelationId {
    #[default]
    /// The request belongs to no sequence.
    None,
    /// A sequence known by a number; 0 is none on the wire.
    Number(u64),
    /// A sequence known by a text.
    Text(String),
}

impl CorrelationId {
    /// Longest text, in bytes.
    const MAX_TEXT: usize = 128;

    /// Makes the sequence that a client names by a text; the empty text means none.
    pub fn from_text(text: &str) -> Result<Self> {
        match text.len() {
            0 => Ok(Self::None),
            1..=Self::MAX_TEXT => Ok(Self::Text(text.to_owned())),
            _ => Err(Error::unsupported(format!(
                "string correlation ID cannot be longer than {} characters",
                Self::MAX_TEXT
            ))),
        }
    }
}

impl std::fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// An inference request, independent of its protocol.
#[derive(Clone, Debug)]
pub struct InferRequest {
    /// The model that is asked.
    pub model_name: Arc<str>,
    /// The version; `None` asks for the highest version that is available.
    pub model_version: Option<i64>,
    /// The client's id, which the response repeats; empty when absent.
    pub id: String,
    /// The inputs in the order of their arrival.
    pub inputs: Vec<Tensor>,
    /// Names of the outputs, as the configuration has them. Empty asks for every output of the model.
    pub outputs: Vec<Arc<str>>,
    /// Provides memory for the outputs; `None` uses memory of the server.
    pub output_allocator: Option<Arc<dyn OutputAllocator>>,
    /// Parameters for the model alone.
    pub parameters: Parameters,
    /// The sequence of the request.
    pub correlation_id: CorrelationId,
    /// The request is the first of its sequence.
    pub sequence_start: bool,
    /// The request is the last of its sequence.
    pub sequence_end: bool,
    /// The priority level; 0 asks for the model's default level.
    pub priority: u64,
    /// The longest wait in a queue, if the configuration lets requests set it.
    pub timeout: Option<Duration>,
}

impl InferRequest {
    /// Makes a request without inputs, for every output of the highest version.
    pub fn new(model_name: impl Into<Arc<str>>) -> Self {
        Self {
            model_name: model_name.into(),
            model_version: None,
            id: String::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            output_allocator: None,
            parameters: Vec::new(),
            correlation_id: CorrelationId::None,
            sequence_start: false,
            sequence_end: false,
            priority: 0,
            timeout: None,
        }
    }

    /// Makes the request to `model_name` that this one causes, such as a step of an ensemble: only its tensors differ. Its
    /// time-out is what `elapsed`, since receipt, has left.
    pub fn derive(
        &self,
        model_name: Arc<str>,
        model_version: Option<i64>,
        inputs: Vec<Tensor>,
        elapsed: Duration,
    ) -> Self {
        Self {
            model_name,
            model_version,
            id: self.id.clone(),
            inputs,
            outputs: Vec::new(),
            output_allocator: None,
            parameters: self.parameters.clone(),
            correlation_id: self.correlation_id.clone(),
            sequence_start: self.sequence_start,
            sequence_end: self.sequence_end,
            priority: self.priority,
            timeout: self.timeout.map(|timeout| time_left(timeout, elapsed)),
        }
    }

    /// Returns the prefix that Triton puts before messages about a request.
    pub fn message_prefix(&self) -> String {
        let id = if self.id.is_empty() { "<id_unknown>" } else { &self.id };
        format!("[request id: {id}] ")
    }

    /// Returns whether the client wants this output: it named it, or it named none.
    pub fn wants_output(&self, name: &str) -> bool {
        self.outputs.is_empty() || self.outputs.iter().any(|output| **output == *name)
    }

    /// Makes a copy without inputs.
    pub fn without_inputs(&self) -> Self {
        Self {
            model_name: self.model_name.clone(),
            model_version: self.model_version,
            id: self.id.clone(),
            inputs: Vec::new(),
            outputs: self.outputs.clone(),
            output_allocator: self.output_allocator.clone(),
            parameters: self.parameters.clone(),
            correlation_id: self.correlation_id.clone(),
            sequence_start: self.sequence_start,
            sequence_end: self.sequence_end,
            priority: self.priority,
            timeout: self.timeout,
        }
    }

    /// Returns the bytes of all inputs together.
    pub fn input_bytes(&self) -> usize {
        self.inputs.iter().map(|input| input.data.len()).sum()
    }

    /// Returns the input of this name.
    pub fn input(&self, name: &str) -> Option<&Tensor> {
        self.inputs.iter().find(|t| &*t.name == name)
    }
}

/// Returns the remaining time, at least 1 us: the receiver must see that the time is over, and 0 would mean no time-out.
fn time_left(timeout: Duration, spent: Duration) -> Duration {
    match timeout.is_zero() {
        true => timeout,
        false => timeout.saturating_sub(spent).max(Duration::from_micros(1)),
    }
}
