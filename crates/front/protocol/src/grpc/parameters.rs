//! Request and output parameters. The types of names with a meaning in the protocol are checked. Names that start with
//! `triton_` are refused, except one. All others are custom parameters.

use std::{num::NonZero, time::Duration};

use galatea_proto::inference::{InferParameter, infer_parameter};
use galatea_types::{CorrelationId, InferRequest, ParameterValue};

use super::{
    decode_error::{DecodeError, EMPTY_FINAL_RESPONSE, Result},
    fields::{Fields, Parsed},
};

#[derive(Clone, Copy, Debug)]
pub(super) enum ParameterChoice<'a> {
    Bool(bool),
    Int64(i64),
    Text(&'a str),
    Double(f64),
    Uint64(u64),
}

/// Returns the key and the value of one entry of a map of parameters. A value may be missing or have no kind.
pub(super) fn entry(message: &[u8]) -> Parsed<(&str, Option<ParameterChoice<'_>>)> {
    let (mut key, mut choice) = ("", None);
    for field in Fields::of(message) {
        match field? {
            (1, value) => key = value.text()?,
            (2, value) => choice = last_choice(value.bytes()?)?.or(choice),
            _ => {}
        }
    }
    Ok((key, choice))
}

fn last_choice(message: &[u8]) -> Parsed<Option<ParameterChoice<'_>>> {
    let mut choice = None;
    for field in Fields::of(message) {
        let (number, value) = field?;
        choice = Some(match number {
            1 => ParameterChoice::Bool(value.varint()? != 0),
            2 => ParameterChoice::Int64(value.varint()?.cast_signed()),
            3 => ParameterChoice::Text(value.text()?),
            4 => ParameterChoice::Double(f64::from_le_bytes(value.fixed64()?)),
            5 => ParameterChoice::Uint64(value.varint()?),
            _ => continue,
        });
    }
    Ok(choice)
}

/// Parameters in the order of their names. Of several with the same name the last one counts.
#[derive(Debug, Default)]
pub(super) struct ParameterMap<'a>(Vec<(&'a str, Option<ParameterChoice<'a>>)>);

impl<'a> ParameterMap<'a> {
    pub fn of(mut entries: Vec<(&'a str, Option<ParameterChoice<'a>>)>) -> Self {
        entries.reverse();
        entries.sort_by_key(|(key, _)| *key);
        entries.dedup_by_key(|(key, _)| *key);
        Self(entries)
    }

    pub fn get(&self, key: &str) -> Option<Option<ParameterChoice<'a>>> {
        let at = self.0.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        self.0.get(at).map(|(_, choice)| *choice)
    }
}

/// Sets the request's parameters. Returns `true` if the client wants an empty last response.
pub(super) fn apply(request: &mut InferRequest, parameters: &ParameterMap<'_>) -> Result<bool> {
    let mut wants_empty_final = false;
    for &(key, choice) in &parameters.0 {
        match key {
            "sequence_id" => request.correlation_id = correlation_id(choice)?,
            "sequence_start" => request.sequence_start = flag(key, choice)?,
            "sequence_end" => request.sequence_end = flag(key, choice)?,
            "priority" => request.priority = priority(choice)?,
            "timeout" => request.timeout = timeout(choice)?,
            EMPTY_FINAL_RESPONSE => wants_empty_final = flag(key, choice)?,
            _ if key.starts_with("triton_") => return Err(DecodeError::ReservedParameter),
            _ => {
                let value = custom(key, choice)?;
                request.parameters.push((key.to_owned(), value));
            }
        }
    }
    Ok(wants_empty_final)
}

fn wrong_type(key: &str, expected: &'static str) -> DecodeError {
    DecodeError::ParameterType { key: key.to_owned(), expected }
}

/// Returns the sequence id. 0 and the empty string mean that the request belongs to no sequence.
fn correlation_id(choice: Option<ParameterChoice<'_>>) -> Result<CorrelationId> {
    match choice {
        Some(ParameterChoice::Int64(0)) => Ok(CorrelationId::None),
        // Models see an unsigned number; the message has its bits in a signed one.
        Some(ParameterChoice::Int64(id)) => Ok(CorrelationId::Number(id.cast_unsigned())),
        Some(ParameterChoice::Text(id)) => Ok(CorrelationId::from_text(id)?),
        _ => Err(wrong_type("sequence_id", "int64_param or string_param.")),
    }
}

fn flag(key: &str, choice: Option<ParameterChoice<'_>>) -> Result<bool> {
    match choice {
        Some(ParameterChoice::Bool(value)) => Ok(value),
        _ => Err(wrong_type(key, "bool_param.")),
    }
}

fn priority(choice: Option<ParameterChoice<'_>>) -> Result<u64> {
    match choice {
        Some(ParameterChoice::Uint64(value)) => Ok(value),
        Some(ParameterChoice::Int64(value)) => {
            u64::try_from(value).map_err(|_| DecodeError::NegativePriority)
        }
        _ => Err(wrong_type("priority", "int64_param or uint64_param.")),
    }
}

/// Returns the time-out in microseconds. Triton reads a negative one as unsigned and thus endless: no time-out.
fn timeout(choice: Option<ParameterChoice<'_>>) -> Result<Option<Duration>> {
    match choice {
        Some(ParameterChoice::Int64(micros)) => {
            let micros = u64::try_from(micros).ok().filter(|&m| m > 0);
            Ok(micros.map(Duration::from_micros))
        }
        _ => Err(wrong_type("timeout", "int64_param.")),
    }
}

fn custom(key: &str, choice: Option<ParameterChoice<'_>>) -> Result<ParameterValue> {
    match choice {
        Some(ParameterChoice::Bool(v)) => Ok(ParameterValue::Bool(v)),
        Some(ParameterChoice::Int64(v)) => Ok(ParameterValue::Int(v)),
        Some(ParameterChoice::Text(v)) => Ok(ParameterValue::String(v.to_owned())),
        Some(ParameterChoice::Double(v)) => Ok(ParameterValue::Double(v)),
        Some(ParameterChoice::Uint64(_)) | None => {
            Err(wrong_type(key, "int64_param, bool_param, or string_param."))
        }
    }
}

/// Returns the number of classes that the client wants of an output, if it wants classes.
pub(super) fn classification(parameters: &ParameterMap<'_>) -> Result<Option<NonZero<u32>>> {
    let Some(choice) = parameters.get("classification") else { return Ok(None) };
    match choice {
        Some(ParameterChoice::Int64(count)) if count > 0 => {
            // A number beyond all classes means all of them.
            Ok(NonZero::new(u32::try_from(count).unwrap_or(u32::MAX)))
        }
        Some(ParameterChoice::Int64(_)) => Err(DecodeError::ClassCount),
        _ => Err(wrong_type("classification", "int64_param")),
    }
}

/// Returns a parameter of a response.
pub fn parameter_message(value: ParameterValue) -> InferParameter {
    use infer_parameter::ParameterChoice;
    let choice = match value {
        ParameterValue::Bool(v) => ParameterChoice::BoolParam(v),
        ParameterValue::Int(v) => ParameterChoice::Int64Param(v),
        ParameterValue::Uint(v) => ParameterChoice::Uint64Param(v),
        ParameterValue::Double(v) => ParameterChoice::DoubleParam(v),
        ParameterValue::String(v) => ParameterChoice::StringParam(v),
    };
    InferParameter { parameter_choice: Some(choice) }
}
