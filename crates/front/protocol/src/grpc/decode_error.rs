//! Errors of request messages. Clients match on their texts, which are Triton's.

use galatea_types::{DataType, Error};
use thiserror::Error;

use super::fields::MalformedMessage;

pub(super) type Result<T, E = DecodeError> = std::result::Result<T, E>;

/// The only parameter with a reserved name that clients may set.
pub(super) const EMPTY_FINAL_RESPONSE: &str = "triton_enable_empty_final_response";

#[derive(Debug, Error)]
pub(super) enum DecodeError {
    /// The error of a region or of a model version, unchanged.
    #[error(transparent)]
    Value(#[from] Error),

    #[error("Unable to parse request")]
    Unreadable(#[from] MalformedMessage),

    // Parameters.
    #[error("invalid value type for '{key}' parameter, expected {expected}")]
    ParameterType { key: String, expected: &'static str },
    #[error("invalid value for 'priority', expected value >= 0.")]
    NegativePriority,
    #[error("invalid value for 'classification' parameter, expected >= 0")]
    ClassCount,
    #[error(
        "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting \
         with 'triton_' are allowed: {EMPTY_FINAL_RESPONSE}"
    )]
    ReservedParameter,
    #[error("invalid value type for '{key}' parameter for tensor '{tensor}', expected {expected}.")]
    RegionParameterType { key: &'static str, tensor: String, expected: &'static str },
    #[error(
        "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor \
         '{tensor}'"
    )]
    RegionWithoutSize { tensor: String },
    #[error(
        "'{key}' can not be specified without 'shared_memory_region' parameter for tensor '{tensor}'"
    )]
    WithoutRegion { key: &'static str, tensor: String },
    #[error("output can't set both 'shared_memory_region' and 'classification'")]
    ClassesInRegion,

    // Inputs.
    #[error("{prefix}expected {expected} {kind} but got {given} {kind} for model '{model}'")]
    TooMany { prefix: String, kind: &'static str, expected: usize, given: usize, model: String },
    #[error("{prefix}input '{input}' already exists in request")]
    DuplicateInput {
        /// The request id, as Triton writes it before messages.
        prefix: String,
        input: String,
    },
    #[error("{prefix}output '{output}' already exists in request")]
    DuplicateOutput { prefix: String, output: String },
    #[error("unexpected inference input '{input}' for model '{model}' (its inputs: {known})")]
    UnexpectedInput { input: String, model: String, known: String },
    #[error(
        "{prefix}inference input '{input}' data-type is '<invalid>', but model '{model}' expects '{expected}'"
    )]
    InvalidDataType { prefix: String, input: String, model: String, expected: DataType },
    #[error(
        "unexpected 'content' provided when using shared memory for input tensor '{input}' for model '{model}'"
    )]
    ContentsInRegion { input: String, model: String },
    #[error(
        "contents field must not be specified when using raw_input_contents for '{input}' for model '{model}'"
    )]
    ContentsBesideRaw { input: String, model: String },
    #[error("unable to find data for input tensor '{input}' for model '{model}' in request.")]
    NoData { input: String, model: String },
    #[error(
        "unexpected explicit tensor data for input tensor '{input}' for model '{model}' of type '{field}', \
         expected datatype '{}' (input '{input}': {taken})",
        .declared.map_or("<invalid>", DataType::protocol_name)
    )]
    ContentsType {
        input: String,
        model: String,
        /// The data type of the filled field.
        field: DataType,
        /// `None` for a name that is not a data type.
        declared: Option<DataType>,
        /// The data type that the model expects.
        taken: String,
    },
    #[error(
        "unexpected explicit tensor data for input tensor '{input}' for model '{model}', binary data was already \
         supplied."
    )]
    TwoContents { input: String, model: String },
    #[error("a BYTES element is longer than 4294967295 bytes")]
    ElementTooLong,
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Value(error) => error,
            DecodeError::Unreadable(_) => Self::internal(error.to_string()).with_source(error),
            error => Self::invalid_arg(error.to_string()),
        }
    }
}
