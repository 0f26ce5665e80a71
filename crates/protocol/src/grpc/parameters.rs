//! Request and output parameters. Names that the protocol gives a meaning are checked for their types; of those that
//! start with `triton_` all but one are refused, and all others are custom parameters.

use std::{collections::BTreeMap, num::NonZero, time::Duration};

use galatea_proto::inference::{InferParameter, infer_parameter::ParameterChoice};
use galatea_types::{CorrelationId, InferRequest, ParameterValue};

use super::decode_error::{DecodeError, EMPTY_FINAL_RESPONSE, Result};

pub(super) type ParameterMap = BTreeMap<String, InferParameter>;

/// Reads the request's parameters into it. Returns whether the client wants an empty last response.
pub(super) fn apply(request: &mut InferRequest, parameters: ParameterMap) -> Result<bool> {
    let mut wants_empty_final = false;
    for (key, parameter) in parameters {
        let choice = parameter.parameter_choice;
        match key.as_str() {
            "sequence_id" => request.correlation_id = correlation_id(choice)?,
            "sequence_start" => request.sequence_start = flag(&key, choice.as_ref())?,
            "sequence_end" => request.sequence_end = flag(&key, choice.as_ref())?,
            "priority" => request.priority = priority(choice.as_ref())?,
            "timeout" => request.timeout = timeout(choice.as_ref())?,
            EMPTY_FINAL_RESPONSE => wants_empty_final = flag(&key, choice.as_ref())?,
            _ if key.starts_with("triton_") => return Err(DecodeError::ReservedParameter),
            _ => {
                let value = custom(&key, choice)?;
                request.parameters.push((key, value));
            }
        }
    }
    Ok(wants_empty_final)
}

fn wrong_type(key: &str, expected: &'static str) -> DecodeError {
    DecodeError::ParameterType { key: key.to_owned(), expected }
}

/// 0 and the empty string mean that the request belongs to no sequence.
fn correlation_id(choice: Option<ParameterChoice>) -> Result<CorrelationId> {
    match choice {
        Some(ParameterChoice::Int64Param(0)) => Ok(CorrelationId::None),
        // The field is unsigned in the model's eyes; the message carries its bits in a signed one.
        Some(ParameterChoice::Int64Param(id)) => Ok(CorrelationId::Number(id.cast_unsigned())),
        Some(ParameterChoice::StringParam(id)) if id.is_empty() => Ok(CorrelationId::None),
        Some(ParameterChoice::StringParam(id)) => Ok(CorrelationId::Text(id)),
        _ => Err(wrong_type("sequence_id", "int64_param or string_param.")),
    }
}

fn flag(key: &str, choice: Option<&ParameterChoice>) -> Result<bool> {
    match choice {
        Some(ParameterChoice::BoolParam(value)) => Ok(*value),
        _ => Err(wrong_type(key, "bool_param.")),
    }
}

fn priority(choice: Option<&ParameterChoice>) -> Result<u64> {
    match choice {
        Some(ParameterChoice::Uint64Param(value)) => Ok(*value),
        Some(ParameterChoice::Int64Param(value)) => {
            u64::try_from(*value).map_err(|_| DecodeError::NegativePriority)
        }
        _ => Err(wrong_type("priority", "int64_param or uint64_param.")),
    }
}

/// Microseconds. Triton takes a negative one as an unsigned, that is as an endless one: no timeout.
fn timeout(choice: Option<&ParameterChoice>) -> Result<Option<Duration>> {
    match choice {
        Some(ParameterChoice::Int64Param(micros)) => {
            let micros = u64::try_from(*micros).ok().filter(|&m| m > 0);
            Ok(micros.map(Duration::from_micros))
        }
        _ => Err(wrong_type("timeout", "int64_param.")),
    }
}

fn custom(key: &str, choice: Option<ParameterChoice>) -> Result<ParameterValue> {
    match choice {
        Some(ParameterChoice::BoolParam(v)) => Ok(ParameterValue::Bool(v)),
        Some(ParameterChoice::Int64Param(v)) => Ok(ParameterValue::Int(v)),
        Some(ParameterChoice::StringParam(v)) => Ok(ParameterValue::String(v)),
        Some(ParameterChoice::DoubleParam(v)) => Ok(ParameterValue::Double(v)),
        Some(ParameterChoice::Uint64Param(_)) | None => {
            Err(wrong_type(key, "int64_param, bool_param, or string_param."))
        }
    }
}

/// How many classes the client wants of an output, if it wants classes.
pub(super) fn classification(parameters: &ParameterMap) -> Result<Option<NonZero<u32>>> {
    let Some(parameter) = parameters.get("classification") else { return Ok(None) };
    match parameter.parameter_choice {
        Some(ParameterChoice::Int64Param(count)) if count > 0 => {
            // More classes than there can be is as good as all of them.
            Ok(NonZero::new(u32::try_from(count).unwrap_or(u32::MAX)))
        }
        Some(ParameterChoice::Int64Param(_)) => Err(DecodeError::ClassCount),
        _ => Err(wrong_type("classification", "int64_param")),
    }
}

/// A parameter of a response.
pub fn parameter_message(value: ParameterValue) -> InferParameter {
    let choice = match value {
        ParameterValue::Bool(v) => ParameterChoice::BoolParam(v),
        ParameterValue::Int(v) => ParameterChoice::Int64Param(v),
        ParameterValue::Uint(v) => ParameterChoice::Uint64Param(v),
        ParameterValue::Double(v) => ParameterChoice::DoubleParam(v),
        ParameterValue::String(v) => ParameterChoice::StringParam(v),
    };
    InferParameter { parameter_choice: Some(choice) }
}
