//! The `parameters` of an inference request.

use std::time::Duration;

use galatea_types::{CorrelationId, InferRequest, ParameterValue, RESERVED_PARAMETERS};

use super::{
    decode_error::{DecodeError, Result},
    json::{JsonCursor, Kind, Number, for_each_member},
    json_error::JsonError,
    limits::{self, Count, MAX_PARAMETERS},
};
use crate::answer_form::{AnswerForm, AnswerPlan};

const EMPTY_FINAL_RESPONSE: &str = "triton_enable_empty_final_response";

/// Reads the object at the cursor. Of two equal names the first counts. Names with a meaning in the protocol set the request or
/// the plan; all others are custom parameters. `takes_empty_final` allows the request for an empty final response.
pub(super) fn read(
    cursor: &mut JsonCursor<'_>,
    request: &mut InferRequest,
    plan: &mut AnswerPlan,
    takes_empty_final: bool,
) -> Result<()> {
    if cursor.kind() != Kind::Object {
        return Err(DecodeError::ParametersNotObject);
    }
    let model = request.model_name.clone();
    let mut count = Count::new("parameters", MAX_PARAMETERS, &model);
    let mut known = SeenParameters::default();
    for_each_member(cursor, |key, cursor| {
        count.next()?;
        let key = String::from_utf8_lossy(key);
        if known.has_come(&key) || request.parameters.iter().any(|(name, _)| *name == key) {
            return Ok(cursor.skip_value()?);
        }
        let in_parameter =
            |error: JsonError| DecodeError::from(error).in_field(&limits::name(key.as_bytes()));
        match key.as_ref() {
            "sequence_id" => request.correlation_id = correlation_id(cursor, in_parameter)?,
            "sequence_start" => {
                request.sequence_start = cursor.expect_bool().map_err(in_parameter)?;
            }
            "sequence_end" => request.sequence_end = cursor.expect_bool().map_err(in_parameter)?,
            "priority" => request.priority = cursor.expect_u64().map_err(in_parameter)?,
            "timeout" => {
                let us = cursor.expect_u64().map_err(in_parameter)?;
                request.timeout = (us > 0).then(|| Duration::from_micros(us));
            }
            "binary_data_output" => {
                let is_binary = cursor.expect_bool().map_err(in_parameter)?;
                plan.default_form = AnswerForm::inline_or_binary(is_binary);
            }
            EMPTY_FINAL_RESPONSE if takes_empty_final => {
                plan.wants_empty_final = cursor.expect_bool().map_err(in_parameter)?;
            }
            name => {
                if name.starts_with("triton_") {
                    return Err(DecodeError::ReservedParameter);
                }
                let value = custom_value(name, cursor)?;
                request.parameters.push((name.to_owned(), value));
            }
        }
        Ok(())
    })
}

/// The names with a meaning that were read so far.
#[derive(Default)]
struct SeenParameters([bool; RESERVED_PARAMETERS.len() + 1]);

impl SeenParameters {
    /// Returns `true` if the name has a meaning and was read before, and marks it as read.
    fn has_come(&mut self, name: &str) -> bool {
        let mut names = RESERVED_PARAMETERS.iter().chain(&[EMPTY_FINAL_RESPONSE]);
        let at = names.position(|known| *known == name);
        at.and_then(|at| self.0.get_mut(at)).is_some_and(|come| std::mem::replace(come, true))
    }
}

/// Returns the sequence id. 0 and the empty string mean no sequence.
fn correlation_id(
    cursor: &mut JsonCursor<'_>,
    in_parameter: impl Fn(JsonError) -> DecodeError,
) -> Result<CorrelationId> {
    if cursor.kind() == Kind::Number {
        let number = cursor.clone().number().map_err(&in_parameter)?;
        if let Some(id) = number.as_u64() {
            cursor.number().map_err(&in_parameter)?;
            return Ok(if id == 0 { CorrelationId::None } else { CorrelationId::Number(id) });
        }
    }
    let text = cursor.expect_string().map_err(&in_parameter)?;
    Ok(CorrelationId::from_text(&String::from_utf8_lossy(&text))?)
}

/// Returns the value of a parameter without a meaning in the protocol: text, a number or a boolean.
pub(super) fn custom_value(name: &str, cursor: &mut JsonCursor<'_>) -> Result<ParameterValue> {
    match cursor.kind() {
        Kind::String => {
            let text = cursor.string()?;
            Ok(ParameterValue::String(String::from_utf8_lossy(&text).into_owned()))
        }
        Kind::Bool => Ok(ParameterValue::Bool(cursor.boolean()?)),
        Kind::Number => Ok(match cursor.number()? {
            Number::Negative(n) => ParameterValue::Int(n),
            Number::Unsigned(n) => match i64::try_from(n) {
                Ok(n) => ParameterValue::Int(n),
                Err(_) => ParameterValue::Uint(n),
            },
            Number::Real(x) => ParameterValue::Double(x),
        }),
        Kind::Object | Kind::Array | Kind::Null | Kind::Other => {
            Err(DecodeError::ParameterType(limits::name(name.as_bytes()).into_owned()))
        }
    }
}
