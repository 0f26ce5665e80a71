//! Errors of request bodies. Clients match on their texts, which are Triton's.

use galatea_trace::SettingsError;
use galatea_types::{Code, DataType, Error, Shape};
use thiserror::Error;

use super::json_error::JsonError;

pub(super) type Result<T, E = DecodeError> = std::result::Result<T, E>;

/// The beginning of errors of raw requests, since such a body has no request id.
const WITHOUT_ID: &str = "[request id: <id_unknown>]";

#[derive(Debug, Error)]
pub(super) enum DecodeError {
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The error of a region, unchanged.
    #[error(transparent)]
    Value(#[from] Error),
    #[error("Unable to parse '{field}': {error}")]
    Field { field: String, error: Box<DecodeError> },
    #[error("Unable to parse '{0}': attempt to access non-existing object member '{0}'")]
    MissingField(&'static str),
    /// Triton's text, followed by advice.
    #[error("{error} ({advice})")]
    Explained { error: Box<DecodeError>, advice: String },
    #[error("Unable to parse '{0}': it is not UTF-8")]
    NotText(&'static str),
    #[error("Unable to parse JSON bytes array: {0}")]
    BytesArray(Box<DecodeError>),
    #[error("Unable to set 'classification': {0}")]
    Classification(JsonError),

    // The request as a whole.
    #[error("inference header size should be in range (0, {body_size}), got: {header_length}")]
    HeaderOutOfRange { header_length: usize, body_size: usize },
    #[error("failed to get request params.: attempt to get members for non-object")]
    ParametersNotObject,
    #[error(
        "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified."
    )]
    ReservedParameter,
    #[error("parameter '{0}' has invalid type. It should be either 'int', 'bool', or 'string'.")]
    ParameterType(String),
    #[error("{prefix}input '{input}' already exists in request")]
    DuplicateInput {
        /// The request id, as Triton writes it before messages.
        prefix: String,
        input: String,
    },
    /// Contains both texts of Triton: that of its HTTP front end, and that of its core.
    #[error(
        "{prefix}Duplicate output name '{output}' is not allowed in a request: output '{output}' already exists \
         in request"
    )]
    DuplicateOutput { prefix: String, output: String },
    #[error("the request has more than {most} {what}, which model '{model}' never takes")]
    TooMany { what: &'static str, most: usize, model: String },
    #[error("the request id is longer than {0} bytes")]
    LongId(usize),
    #[error("Output can't set both 'shared_memory_region' and 'classification'")]
    ClassesInRegion,
    #[error("Output can't set both 'shared_memory_region' and 'binary_data'")]
    BinaryInRegion,
    #[error(
        "binary outputs cannot be part of an answer in JSON lines: leave out 'binary_data' and \
         'binary_data_output', or the header 'Accept: application/x-ndjson'"
    )]
    BinaryInLines,

    // An input and its data.
    #[error(
        "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', \
         'shared_memory_region' in 'parameters'. But {}", listed(.set)
    )]
    DataSources {
        /// The sources that are set.
        set: Vec<&'static str>,
    },
    #[error("invalid datatype for input {0}")]
    InvalidDataType(String),
    #[error("dimension {0} is out of range")]
    DimensionOutOfRange(u64),
    #[error(
        "shape {shape} of input '{input}' causes total element count to exceed maximum size of {}",
        usize::MAX
    )]
    TooManyElements { input: String, shape: Shape },
    #[error("byte size overflow for input '{input}': shape {shape} of datatype {data_type}")]
    TooManyBytes { input: String, shape: Shape, data_type: DataType },
    #[error(
        "unexpected size for input '{input}', expecting {missing} additional bytes for model '{model}'"
    )]
    MissingBytes { input: String, missing: u64, model: String },
    #[error("unexpected additional input data for model '{0}'")]
    UnusedBytes(String),
    #[error("Shape does not match true shape of 'data' field")]
    CountMismatch,
    /// Omits the value: a request's data is private, and errors are logged.
    #[error("a value is out of range for datatype {data_type}")]
    ValueOutOfRange { data_type: DataType },
    #[error("a string is longer than 4294967295 bytes")]
    StringTooLong,
    #[error("the server has no memory for the data of this request; try again later")]
    NoMemory,
    #[error("shape of input '{input}' has more than {most} dimensions")]
    TooManyDimensions { input: String, most: usize },
    #[error(
        "receiving {data_type} data via JSON is not supported. Please use the binary data format for input {input}"
    )]
    NoJsonForm { data_type: DataType, input: String },

    // A body that is the data of the only input.
    #[error(
        "{WITHOUT_ID} Raw request must only have 1 input (found 1) to be deduced but got {inputs} inputs in \
         '{model}' model configuration"
    )]
    RawInputCount { inputs: usize, model: String },
    #[error("{WITHOUT_ID} For BYTE datatype raw input '{0}', the model must have input shape [1]")]
    RawStringShape(String),
    #[error(
        "{WITHOUT_ID} The shape of the raw input '{0}' can not be deduced because there are more than one \
         variable-sized dimension"
    )]
    RawVariableDims(String),
    #[error(
        "{WITHOUT_ID} input byte size mismatch for input 'raw_input' for model '{model}'. Expected {expected}, \
         got {found}"
    )]
    RawByteSize { model: String, expected: usize, found: usize },

    // The generate extension.
    #[error("attempt to get members for non-object")]
    NotObject,
    #[error("Expected JSON object for keyword: '{0}': attempt to access JSON non-object as object")]
    KeywordNotObject(&'static str),
    #[error("Converting keyword: '{keyword}': {error}")]
    InKeyword { keyword: &'static str, error: Box<DecodeError> },
    #[error("Keyword '{0}' for nested schema also given as input tensor name")]
    KeywordIsInput(&'static str),
    #[error("The schema can not convert input '{0}' to tensor with proper shape")]
    NoShape(String),

    // The model repository.
    #[error("Invalid value for 'ready': expected a boolean")]
    ReadyNotBoolean,
    #[error("the body of the request must be a JSON object")]
    BodyNotObject,
    #[error("the request has more than {0} files")]
    TooManyFiles(usize),
    #[error("unexpected error on creating Triton parameter")]
    LoadParameter,
    #[error("failed to decode the base64 content of 'file:{path}'")]
    FileContent { path: String, source: base64::DecodeError },

    // Shared memory.
    #[error("Shared memory register request has no '{0}' field")]
    NoRegionField(&'static str),
    #[error("attempt to access non-existing object member '{0}'")]
    NoMember(&'static str),
    #[error("'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t")]
    CudaHandle,

    // The log settings.
    #[error("log file location can not be updated through network protocol")]
    LogFile,
    #[error("invalid argument for --log_format, got: {0}")]
    LogFormat(String),

    #[error(transparent)]
    TraceSettings(#[from] SettingsError),
}

/// Lists the data sources in Triton's words.
fn listed(set: &[&str]) -> String {
    if set.is_empty() {
        return "no field is set".to_owned();
    }
    set.iter().fold("set".to_owned(), |text, field| text + " '" + field + "'")
}

impl DecodeError {
    pub fn in_field(self, field: &str) -> Self {
        Self::Field { field: field.to_owned(), error: Box::new(self) }
    }

    pub fn explained(self, advice: String) -> Self {
        Self::Explained { error: Box::new(self), advice }
    }

    fn code(&self) -> Code {
        match self {
            Self::Json(error) | Self::Classification(error) => Error::from(*error).code(),
            Self::Value(error) => error.code(),
            Self::Field { error, .. }
            | Self::BytesArray(error)
            | Self::InKeyword { error, .. }
            | Self::Explained { error, .. } => error.code(),
            Self::MissingField(_)
            | Self::NoMember(_)
            | Self::ParametersNotObject
            | Self::CountMismatch
            | Self::NotObject
            | Self::KeywordNotObject(_)
            | Self::LoadParameter => Code::Internal,
            Self::NoMemory => Code::Exhausted,
            Self::LogFile | Self::TraceSettings(SettingsError::File) => Code::Unsupported,
            Self::LogFormat(_) => Code::Unavailable,
            _ => Code::InvalidArg,
        }
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Value(error) => error,
            DecodeError::FileContent { ref source, .. } => {
                let source = source.clone();
                Self::new(error.code(), error.to_string()).with_source(source)
            }
            error => Self::new(error.code(), error.to_string()),
        }
    }
}
