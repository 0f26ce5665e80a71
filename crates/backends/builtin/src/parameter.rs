//! Reads whole numbers from the parameters of a model configuration.

use std::num::ParseIntError;

use galatea_backend::misconfigured;
use galatea_config::{FieldPath, ModelConfig};
use galatea_types::{Code, Result};

/// Returns the model parameter `name` as a whole number, or 0 if it is missing.
pub(crate) fn whole_number(config: &ModelConfig, name: &str) -> Result<u64> {
    let Some(text) = config.parameters().get(name) else {
        return Ok(0);
    };
    text.trim().parse().map_err(|e: ParseIntError| {
        let model = config.name();
        let text = format!("parameter '{name}' of model '{model}' is '{text}': {e}");
        let field = FieldPath::from("parameters").named(name).field("value").field("string_value");
        misconfigured(Code::InvalidArg, text, field, "write a whole number")
    })
}
