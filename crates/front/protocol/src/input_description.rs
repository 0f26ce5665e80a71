//! The description of a model's inputs, added to errors about requests that the model does not accept.

use galatea_config::{ModelConfig, names_of};

/// Describes the input with this name, or lists the inputs that exist.
pub(crate) fn taken_as(input: Option<&str>, model: &ModelConfig) -> String {
    let known = input.and_then(|name| model.input(name));
    let Some(spec) = known else {
        return format!("the model's inputs are {}", names_of(model.inputs()));
    };
    let dims = if model.has_batching() { spec.dims.with_leading(-1) } else { spec.dims.clone() };
    let any = match dims.contains(&-1) {
        true => ", where -1 stands for the size that your data has",
        false => "",
    };
    format!("the model takes {} of shape {dims}{any}", spec.data_type.protocol_name())
}
