//! What can be wrong with a request. Clients match on the texts, which are Triton's.

use std::fmt::{self, Write as _};

use galatea_types::{DataType, Error, InferRequest, Shape, byte_strings::Truncated};

/// Each names the tensor and the model it is about.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("unexpected inference output '{output}' for model '{model}' (its outputs: {known})")]
    UnexpectedOutput { output: String, model: String, known: String },
    #[error("unexpected inference input '{input}' for model '{model}' (its inputs: {known})")]
    UnexpectedInput { input: String, model: String, known: String },
    #[error(transparent)]
    MissingInputs(Box<MissingInputs>),
    #[error("input '{input}' has no shape but model requires batch dimension for '{model}'")]
    NoBatchDimension { input: String, model: String },
    #[error("input '{input}' batch size does not match other inputs for '{model}'")]
    BatchSizesDiffer { input: String, model: String },
    #[error(
        "inference request batch-size must be <= {max} for '{model}'{}",
        item.as_ref().map(ToString::to_string).unwrap_or_default()
    )]
    BatchSize { max: u32, model: String, item: Option<Box<ItemShape>> },
    #[error(
        "inference input '{input}' data-type is '{got}', but model '{model}' expects '{expected}'"
    )]
    DataType { input: String, model: String, got: DataType, expected: DataType },
    #[error(
        "All input dimensions should be specified for input '{input}' for model '{model}', got {got}"
    )]
    UnspecifiedDimension { input: String, model: String, got: Shape },
    #[error(transparent)]
    Shape(Box<UnexpectedShape>),
    #[error(
        "input byte size mismatch for input '{input}' for model '{model}'. Expected {expected}, got {got}"
    )]
    ByteSize { input: String, model: String, expected: usize, got: usize },
    #[error(
        "the shape {shape} of input '{input}' for model '{model}' has more elements than can be addressed"
    )]
    TooManyElements { input: String, model: String, shape: Shape },
    #[error(
        "unexpected number of string elements {got} for inference input '{input}' for model '{model}', \
         expecting {expected}"
    )]
    ExcessStrings { input: String, model: String, got: usize, expected: usize },
    #[error(
        "expected {expected} string elements for inference input '{input}' for model '{model}', got {got}"
    )]
    MissingStrings { input: String, model: String, got: usize, expected: usize },
    #[error(
        "incomplete string length indicator for inference input '{input}' for model '{model}', expecting 4 bytes \
         but only {available} bytes available. Please make sure the string length indicator is in one buffer."
    )]
    TruncatedLength { input: String, model: String, available: usize },
    #[error(
        "incomplete string data for inference input '{input}' for model '{model}', expecting string of length \
         {length} but only {available} bytes available. Please make sure the string is in one buffer."
    )]
    TruncatedString { input: String, model: String, length: usize, available: usize },
    /// The strings are in the memory of a device, where they cannot be checked.
    #[error(transparent)]
    NotInHostMemory(Error),
}

impl RequestError {
    pub fn truncated(input: &str, model: &str, truncated: Truncated) -> Self {
        let (input, model) = (input.to_owned(), model.to_owned());
        match truncated {
            Truncated::Length { available } => Self::TruncatedLength { input, model, available },
            Truncated::Element { length, available } => {
                Self::TruncatedString { input, model, length, available }
            }
        }
    }

    /// The complete error. Most texts begin with the id of the request, some do not: as in Triton.
    pub fn for_request(self, request: &InferRequest) -> Error {
        let has_id = !matches!(self, Self::UnexpectedOutput { .. } | Self::UnexpectedInput { .. });
        let error = Error::invalid_arg(self.to_string());
        if has_id { error.prefixed(request.message_prefix()) } else { error }
    }
}

/// Inputs that the model requires and the request has not.
#[derive(Debug)]
pub(super) struct MissingInputs {
    pub model: String,
    /// How many the model requires, and how many it has.
    pub required: usize,
    pub total: usize,
    pub given: Vec<String>,
    pub missing: Vec<String>,
}

impl std::error::Error for MissingInputs {}

impl fmt::Display for MissingInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, required, total, given, missing } = self;
        match required == total {
            true => write!(f, "expected {total} inputs")?,
            false => write!(f, "expected number of inputs between {required} and {total}")?,
        }
        write!(
            f,
            " but got {} inputs for model '{model}'. Got input(s) {}, but missing required input(s) {}. \
             Please provide all required input(s).",
            given.len(),
            Quoted(given),
            Quoted(missing),
        )
    }
}

/// `['a','b']`
struct Quoted<'a>(&'a [String]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (i, name) in self.0.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}'{name}'")?;
        }
        f.write_char(']')
    }
}

pub(super) const BATCH_DIMENSION_NOTE: &str = "NOTE: Setting a non-zero max_batch_size in the model config requires a \
batch dimension to be prepended to each input shape. If you want to specify the full shape including the \
batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs \
for more info on max_batch_size.";

/// A shape that the configuration does not admit.
#[derive(Debug, thiserror::Error)]
#[error(
    "unexpected shape for input '{input}' for model '{model}'. Expected {expected}, got {got}. {}{}",
    if *has_batching { BATCH_DIMENSION_NOTE } else { "" },
    reading.as_ref().map(BatchReading::to_string).unwrap_or_default()
)]
pub(super) struct UnexpectedShape {
    pub input: String,
    pub model: String,
    /// With the batch dimension, where the model has one.
    pub expected: Shape,
    pub got: Shape,
    pub has_batching: bool,
    pub reading: Option<BatchReading>,
}

/// An input with the shape of one item, whose first dimension was read as the size of the batch.
#[derive(Debug, thiserror::Error)]
#[error(
    " (input '{input}': {shape} is the shape of one item without its batch dimension: send {})",
    shape.with_leading(1)
)]
pub(super) struct ItemShape {
    pub input: String,
    pub shape: Shape,
}

/// What the client probably took the batch dimension for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BatchReading {
    /// It is missing.
    #[error(" The request has the shape of one item without its batch dimension: send {0}.")]
    Missing(Shape),
    /// The model takes none.
    #[error("The model takes no batch dimension, its max_batch_size is 0: send {0}.")]
    NotTaken(Shape),
}

impl BatchReading {
    /// `None`: the shape does not fit the model with or without a batch dimension.
    pub fn of(got: &Shape, dims: &Shape, has_batching: bool) -> Option<Self> {
        match has_batching {
            true => dims.admits(got).then(|| Self::Missing(got.with_leading(1))),
            false => match got.split_first() {
                Some((1, item)) if dims.admits(item) => Some(Self::NotTaken(item.into())),
                _ => None,
            },
        }
    }
}
