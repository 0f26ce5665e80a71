//! The errors of a JSON data file, in perf_analyzer's words where it has some.

use std::{io, str::Utf8Error};

use base64::DecodeError;
use galatea_types::DataType;

pub(super) const PARSE_FAILURE: &str =
    "failed to parse the specified json file for reading provided data";

/// The error of a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum JsonError {
    #[error("failed to open file for reading provided data ({0})")]
    Unreadable(#[source] io::Error),
    #[error("{failure}: {0}", failure = PARSE_FAILURE)]
    NotUtf8(#[source] Utf8Error),
    #[error("{failure}: {0}", failure = PARSE_FAILURE)]
    Syntax(#[source] serde_json::Error),
    #[error("The json file doesn't contain data field")]
    NoData,
    #[error("The 'data' field must be a list")]
    DataIsNoList,
    #[error("The 'validation_data' field doesn't align with 'data' field in the json file")]
    Misaligned,
    #[error(
        "Inconsistency in input-data provided. Can not have a combination of objects and arrays inside of the \
         Data array"
    )]
    Mixed,
    #[error("unable to find data for input '{0}'.")]
    NothingFor(String),
    #[error("{reason} ( Location stream id: {stream}, step id: {step}){}", suffix(tensor.as_deref()))]
    Step { stream: usize, step: usize, tensor: Option<String>, reason: StepError },
}

/// The error of a step.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error("Input data file is malformed.")]
    Malformed,
    #[error("The input or output '{0}' is not found in the model configuration")]
    Unknown(String),
    #[error("missing tensor {0}")]
    Missing(String),
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// The error of a tensor.
#[derive(Debug, thiserror::Error)]
pub(super) enum TensorError {
    #[error("Input data file is malformed.")]
    Malformed,
    #[error("missing content field.")]
    NoContent,
    #[error("The tensor values are not supported. Expected an array or b64 string")]
    NoArray,
    #[error("shape values must be integers.")]
    ShapeIsNoList,
    #[error("the value of b64 field should be of type string")]
    Base64IsNoText,
    #[error("the value of b64 field is not base64: {0}")]
    NotBase64(#[source] DecodeError),
    /// Its elements are not of the model's type.
    #[error("unable to find {} data in json", type_name(*.0))]
    WrongType(DataType),
    /// The text is not JSON. Line and column are left out: they would be those within the tensor.
    #[error("{failure}: {0}", failure = PARSE_FAILURE)]
    Syntax(String),
    #[error(
        "The variable-sized tensor \"{name}\" with model shape {model} needs to have its shape fully defined. See \
         the --shape option."
    )]
    OpenShape { name: String, model: String },
    #[error(
        "The supplied shape of {given} for input \"{name}\" is incompatible with the model's input shape of {model}"
    )]
    WrongShape { name: String, given: String, model: String },
    #[error(
        "mismatch in the data provided for {name}. Expected: {} {unit}, Got: {} {unit}",
        number(*expected), number(*got)
    )]
    WrongSize { name: String, expected: Option<usize>, got: Option<usize>, unit: &'static str },
}

fn suffix(tensor: Option<&str>) -> String {
    tensor.map(|name| format!(" for '{name}'")).unwrap_or_default()
}

fn number(count: Option<usize>) -> String {
    count.map_or("?".to_owned(), |count| count.to_string())
}

fn type_name(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Bool => "bool",
        DataType::Uint8 => "uint8_t",
        DataType::Uint16 => "uint16_t",
        DataType::Uint32 => "uint32_t",
        DataType::Uint64 => "uint64_t",
        DataType::Int8 => "int8_t",
        DataType::Int16 => "int16_t",
        DataType::Int32 => "int32_t",
        DataType::Int64 => "int64_t",
        DataType::Fp16 => "fp16",
        DataType::Fp32 => "float",
        DataType::Fp64 => "fp64",
        DataType::Bytes => "string",
        DataType::Bf16 => "bf16",
    }
}
