//! The JSON form of a configuration, for clients and for overrides: names as in the `.proto`, in its order,
//! every default printed, 64-bit integers as numbers.

mod error;
mod lenient_json;
mod pointer;
mod reader;
mod writer;

use galatea_types::{Error, Result};
use prost_reflect::DynamicMessage;
use serde_json::Value;

pub(crate) use self::{pointer::pointer, writer::key_text};
use crate::{
    RawModelConfig,
    schema::{self, MAX_ELEMENTS, MAX_SOURCE_SIZE},
};

/// Reads a configuration override.
///
/// Field names may be written as in the `.proto` or in camel case, enums by name in any case or by number, integers as numbers or
/// strings. `null` means left out. Names without quotes, single quotes and a comma behind the last element are read as Triton
/// reads them: see [`is_strict_json`].
///
/// # Errors
/// `InvalidArg` with the text `Invalid config override: {path}: {reason}`.
pub fn parse_json(json: &str) -> Result<RawModelConfig> {
    read(json).map_err(|reason| Error::invalid_arg(format!("Invalid config override: {reason}")))
}

fn read(json: &str) -> Result<RawModelConfig, String> {
    if json.len() > MAX_SOURCE_SIZE {
        return Err(format!("it has {} bytes, the limit is {MAX_SOURCE_SIZE}", json.len()));
    }
    let value = read_value(json).map_err(|error| error.to_string())?;
    if count_elements(&value) > MAX_ELEMENTS {
        return Err(format!("its lists and maps have more than {MAX_ELEMENTS} members together"));
    }
    let descriptor = schema::model_config().ok_or(schema::BROKEN)?;
    let message = reader::read_message(descriptor, &value).map_err(|error| error.to_string())?;
    message.transcode_to().map_err(|error| error.to_string())
}

/// Reads strict JSON first: nearly everybody sends it, and its errors are clearer.
fn read_value(json: &str) -> serde_json::Result<Value> {
    serde_json::from_str(json)
        .or_else(|error| serde_json::from_str(&lenient_json::to_json(json)).map_err(|_| error))
}

/// Returns whether a configuration override is standard JSON.
pub fn is_strict_json(json: &str) -> bool {
    serde_json::from_str::<Value>(json).is_ok()
}

/// Counts the members of all lists and objects. The JSON reader bounds the depth of the recursion.
fn count_elements(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.len() + values.iter().map(count_elements).sum::<usize>(),
        Value::Object(members) => {
            members.len() + members.values().map(count_elements).sum::<usize>()
        }
        _ => 0,
    }
}

/// Returns the configuration as one line of JSON. Messages and `oneof` members that are not set are left out; maps are in the
/// order of their keys.
pub fn to_json(raw: &RawModelConfig) -> String {
    let mut json = String::new();
    if let Some(descriptor) = schema::model_config() {
        let mut message = DynamicMessage::new(descriptor);
        // Both sides are the same message type, so this cannot fail; an empty object would show it.
        if message.transcode_from(raw).is_ok() {
            writer::write_message(&message, &mut json);
        }
    }
    if json.is_empty() {
        json.push_str("{}");
    }
    json
}

#[cfg(test)]
mod tests;
