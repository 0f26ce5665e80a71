//! Checks of a request against the model's configuration, in the order and with the texts of the contract
//! (H-70 to H-78): clients match on them.

use std::fmt::Write as _;

use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{
    DataType, Error, InferRequest, PreparedRequest, Result, Shape, Tensor,
    byte_strings::{self, Truncated},
};

const BATCH_DIMENSION_NOTE: &str = "NOTE: Setting a non-zero max_batch_size in the model config requires a \
batch dimension to be prepended to each input shape. If you want to specify the full shape including the \
batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs \
for more info on max_batch_size.";

/// Checks `request` and finds its batch size. The errors are complete: nothing needs to be put before them.
pub(crate) fn prepare(request: InferRequest, config: &ModelConfig) -> Result<PreparedRequest> {
    check_outputs(&request, config)?;
    let batch_size = check_inputs(&request, config).map_err(|refusal| match refusal {
        Refusal::WithId(text) => Error::invalid_arg(format!("{}{text}", request.message_prefix())),
        Refusal::Plain(text) => Error::invalid_arg(text),
    })?;
    Ok(PreparedRequest::assume_checked(request, batch_size))
}

/// Some texts name the request, some do not: as in the original.
enum Refusal {
    WithId(String),
    Plain(String),
}

fn check_outputs(request: &InferRequest, config: &ModelConfig) -> Result<()> {
    for output in &request.outputs {
        if config.output(&output.name).is_none() {
            let (name, model) = (&output.name, config.name());
            return Err(Error::invalid_arg(format!(
                "unexpected inference output '{name}' for model '{model}'"
            )));
        }
    }
    Ok(())
}

fn check_inputs(request: &InferRequest, config: &ModelConfig) -> Result<u32, Refusal> {
    check_input_count(request, config)?;
    let batch_size = batch_size(request, config)?;
    for input in &request.inputs {
        let spec = spec_of(input, config)?;
        check_input(input, spec, config).map_err(Refusal::WithId)?;
    }
    check_required_inputs(request, config)?;
    let batch_size = u32::try_from(batch_size).ok().filter(|&size| size >= 1);
    let batch_size = batch_size.ok_or_else(|| batch_size_refusal(config))?;
    for input in &request.inputs {
        check_byte_size(input, config.name()).map_err(Refusal::WithId)?;
    }
    Ok(batch_size)
}

fn spec_of<'c>(input: &Tensor, config: &'c ModelConfig) -> Result<&'c TensorSpec, Refusal> {
    config.input(&input.name).ok_or_else(|| {
        let (name, model) = (&input.name, config.name());
        Refusal::Plain(format!("unexpected inference input '{name}' for model '{model}'"))
    })
}

fn check_input_count(request: &InferRequest, config: &ModelConfig) -> Result<(), Refusal> {
    let required = config.inputs().iter().filter(|s| !s.is_optional).count();
    let given = request.inputs.len();
    if (required..=config.inputs().len()).contains(&given) {
        return Ok(());
    }
    Err(missing_inputs(request, config, required))
}

/// The count may be right while an optional input stands in for a required one.
fn check_required_inputs(request: &InferRequest, config: &ModelConfig) -> Result<(), Refusal> {
    let required = config.inputs().iter().filter(|s| !s.is_optional);
    if required.clone().all(|spec| request.input(&spec.name).is_some()) {
        return Ok(());
    }
    Err(missing_inputs(request, config, required.count()))
}

fn missing_inputs(request: &InferRequest, config: &ModelConfig, required: usize) -> Refusal {
    let total = config.inputs().len();
    let expected = if required == total {
        format!("expected {total} inputs")
    } else {
        format!("expected number of inputs between {required} and {total}")
    };
    let given = request.inputs.iter().map(|t| &*t.name);
    let missing =
        config.inputs().iter().filter(|s| !s.is_optional && request.input(&s.name).is_none());
    Refusal::WithId(format!(
        "{expected} but got {} inputs for model '{}'. Got input(s) {}, but missing required input(s) {}. \
         Please provide all required input(s).",
        request.inputs.len(),
        config.name(),
        quoted_list(given),
        quoted_list(missing.map(|s| &*s.name)),
    ))
}

fn quoted_list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut list = String::from("[");
    for (i, name) in names.enumerate() {
        let comma = if i > 0 { "," } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(list, "{comma}'{name}'");
    }
    list.push(']');
    list
}

fn batch_size(request: &InferRequest, config: &ModelConfig) -> Result<i64, Refusal> {
    if !config.has_batching() {
        return Ok(1);
    }
    let model = config.name();
    let mut batch: Option<i64> = None;
    for input in &request.inputs {
        spec_of(input, config)?;
        let name = &input.name;
        let Some(&first) = input.shape.first() else {
            let text = format!(
                "input '{name}' has no shape but model requires batch dimension for '{model}'"
            );
            return Err(Refusal::WithId(text));
        };
        if *batch.get_or_insert(first) != first {
            let text =
                format!("input '{name}' batch size does not match other inputs for '{model}'");
            return Err(Refusal::WithId(text));
        }
    }
    let batch = batch.unwrap_or(1);
    // A batch below 1 is refused only after the shapes, as in the original: a wrong shape is the better hint.
    if batch > i64::from(config.max_batch_size()) {
        return Err(batch_size_refusal(config));
    }
    Ok(batch)
}

fn batch_size_refusal(config: &ModelConfig) -> Refusal {
    let (max, model) = (config.max_batch_size(), config.name());
    Refusal::WithId(format!("inference request batch-size must be <= {max} for '{model}'"))
}

fn check_input(input: &Tensor, spec: &TensorSpec, config: &ModelConfig) -> Result<(), String> {
    let (name, model) = (&input.name, config.name());
    if input.data_type != spec.data_type {
        return Err(format!(
            "inference input '{name}' data-type is '{}', but model '{model}' expects '{}'",
            input.data_type, spec.data_type
        ));
    }
    let dims =
        if config.has_batching() { input.shape.get(1..).unwrap_or_default() } else { &input.shape };
    if dims.len() == spec.dims.len() && dims.contains(&-1) {
        return Err(format!(
            "All input dimensions should be specified for input '{name}' for model '{model}', got {}",
            input.shape
        ));
    }
    if !spec.dims.admits(dims) {
        let batching = config.has_batching();
        let expected = if batching { spec.dims.with_leading(-1) } else { spec.dims.clone() };
        let note = if batching { BATCH_DIMENSION_NOTE } else { "" };
        return Err(format!(
            "unexpected shape for input '{name}' for model '{model}'. Expected {expected}, got {}. {note}",
            input.shape
        ));
    }
    Ok(())
}

fn check_byte_size(input: &Tensor, model: &str) -> Result<(), String> {
    let name = &input.name;
    if input.data_type == DataType::Bytes {
        return check_strings(input, model);
    }
    let got = input.data.len();
    match input.shape.byte_size(input.data_type) {
        Some(expected) if expected == got => Ok(()),
        Some(expected) => Err(format!(
            "input byte size mismatch for input '{name}' for model '{model}'. Expected {expected}, got {got}"
        )),
        None => Err(too_large(name, model, &input.shape)),
    }
}

fn too_large(name: &str, model: &str, shape: &Shape) -> String {
    format!(
        "the shape {shape} of input '{name}' for model '{model}' has more elements than can be addressed"
    )
}

/// Walks the length indicators: every element must lie inside the buffer and their number must fit the shape.
fn check_strings(input: &Tensor, model: &str) -> Result<(), String> {
    let name = &input.name;
    let Some(expected) = input.shape.element_count() else {
        return Err(too_large(name, model, &input.shape));
    };
    let data = input.host().map_err(|error| error.message().to_owned())?;
    let mut count = 0usize;
    for element in byte_strings::elements(data) {
        if count == expected {
            return Err(format!(
                "unexpected number of string elements {} for inference input '{name}' for model '{model}', expecting {expected}",
                count + 1
            ));
        }
        element.map_err(|truncated| truncated_strings(name, model, truncated))?;
        count += 1;
    }
    if count != expected {
        return Err(format!(
            "expected {expected} string elements for inference input '{name}' for model '{model}', got {count}"
        ));
    }
    Ok(())
}

fn truncated_strings(input: &str, model: &str, truncated: Truncated) -> String {
    match truncated {
        Truncated::Length { available } => format!(
            "incomplete string length indicator for inference input '{input}' for model '{model}', expecting \
             4 bytes but only {available} bytes available. Please make sure the string length indicator is in \
             one buffer."
        ),
        Truncated::Element { length, available } => format!(
            "incomplete string data for inference input '{input}' for model '{model}', expecting string of \
             length {length} but only {available} bytes available. Please make sure the string is in one buffer."
        ),
    }
}

#[cfg(test)]
mod tests;
