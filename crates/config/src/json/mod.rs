//! The JSON form of a configuration (C-70, H-06, R-30): names as in the `.proto`, in its order, every
//! default printed, 64-bit integers as numbers.

mod reader;
mod writer;

use galatea_types::{Error, Result};
use prost_reflect::DynamicMessage;

use crate::{RawModelConfig, schema};

/// Reads a configuration override.
///
/// Field names may be written as in the `.proto` or in camel case, enums by name in any case or by
/// number, integers as numbers or strings; `null` is the same as left out.
///
/// # Errors
/// `InvalidArg` with the text `Invalid config override: {path}: {reason}`.
pub fn parse_json(json: &str) -> Result<RawModelConfig> {
    read(json).map_err(|reason| Error::invalid_arg(format!("Invalid config override: {reason}")))
}

fn read(json: &str) -> std::result::Result<RawModelConfig, String> {
    let value = serde_json::from_str(json).map_err(|e| e.to_string())?;
    let descriptor = schema::model_config().ok_or(schema::BROKEN)?;
    let message = reader::read_message(descriptor, &value).map_err(|e| e.to_string())?;
    message.transcode_to().map_err(|e| e.to_string())
}

/// The configuration as one line of JSON. Messages and `oneof` members that are not set are left out;
/// maps are printed in the order of their keys.
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
