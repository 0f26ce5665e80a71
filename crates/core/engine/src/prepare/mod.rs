//! Checks requests against the model's configuration. Order and texts are Triton's, because clients match on them.

mod error;

use galatea_config::{ModelConfig, TensorSpec, names_of};
use galatea_types::{DataType, InferRequest, PreparedRequest, Result, Tensor, byte_strings};

use self::error::Refusal;

/// Checks `request` and finds its batch size. The errors are complete and need no prefix.
pub(crate) fn prepare(request: InferRequest, config: &ModelConfig) -> Result<PreparedRequest> {
    let checked = check_outputs(&request, config).and_then(|()| check_inputs(&request, config));
    let batch_size = checked.map_err(|error| error.for_request(&request))?;
    Ok(PreparedRequest::assume_checked(request, batch_size))
}

/// Checks one tensor for an input of the model like a tensor of a request.
pub(crate) fn check_tensor(tensor: &Tensor, spec: &TensorSpec, config: &ModelConfig) -> Result<()> {
    let checked = check_input(tensor, spec, config);
    let checked = checked.and_then(|()| check_byte_size(tensor, config.name()));
    checked.map_err(|error| error.for_request(&InferRequest::new(config.name().clone())))
}

fn check_outputs(request: &InferRequest, config: &ModelConfig) -> Result<(), Refusal> {
    match request.outputs.iter().find(|output| config.output(output).is_none()) {
        None => Ok(()),
        Some(output) => {
            let (model, known) = (config.name(), names_of(config.outputs()));
            Err(Refusal::without_id(format!(
                "unexpected inference output '{output}' for model '{model}' (its outputs: {known})"
            )))
        }
    }
}

fn check_inputs(request: &InferRequest, config: &ModelConfig) -> Result<u32, Refusal> {
    let counts = required_inputs(config).count()..=config.inputs().len();
    if !counts.contains(&request.inputs.len()) {
        return Err(error::missing_inputs(request, config, *counts.start()));
    }
    let batch_size = batch_size(request, config)?;
    for input in &request.inputs {
        let spec = spec_of(input, config)?;
        check_input(input, spec, config)?;
    }
    // The count may be right although an optional input replaces a required one.
    if !required_inputs(config).all(|spec| request.input(&spec.name).is_some()) {
        return Err(error::missing_inputs(request, config, *counts.start()));
    }
    let batch_size = u32::try_from(batch_size).ok().filter(|&size| size >= 1);
    let batch_size = batch_size.ok_or_else(|| error::batch_size(request, config))?;
    for input in &request.inputs {
        check_byte_size(input, config.name())?;
    }
    Ok(batch_size)
}

fn spec_of<'c>(input: &Tensor, config: &'c ModelConfig) -> Result<&'c TensorSpec, Refusal> {
    config.input(&input.name).ok_or_else(|| {
        let (name, model, known) = (&input.name, config.name(), names_of(config.inputs()));
        Refusal::without_id(format!(
            "unexpected inference input '{name}' for model '{model}' (its inputs: {known})"
        ))
    })
}

fn required_inputs(config: &ModelConfig) -> impl Iterator<Item = &TensorSpec> {
    config.inputs().iter().filter(|spec| !spec.is_optional)
}

fn batch_size(request: &InferRequest, config: &ModelConfig) -> Result<i64, Refusal> {
    if !config.has_batching() {
        return Ok(1);
    }
    let mut batch: Option<i64> = None;
    for input in &request.inputs {
        spec_of(input, config)?;
        let (name, model) = (&input.name, config.name());
        let Some(&first) = input.shape.first() else {
            return Err(Refusal::new(format!(
                "input '{name}' has no shape but model requires batch dimension for '{model}'"
            )));
        };
        if *batch.get_or_insert(first) != first {
            return Err(Refusal::new(format!(
                "input '{name}' batch size does not match other inputs for '{model}'"
            )));
        }
    }
    let batch = batch.unwrap_or(1);
    // As in Triton, a batch below 1 is refused only after the shapes: a wrong shape is the better hint.
    if batch > i64::from(config.max_batch_size()) {
        return Err(error::batch_size(request, config));
    }
    Ok(batch)
}

fn check_input(input: &Tensor, spec: &TensorSpec, config: &ModelConfig) -> Result<(), Refusal> {
    let Tensor { name, data_type, shape: got, .. } = input;
    let model = config.name();
    if *data_type != spec.data_type {
        let expected = spec.data_type;
        return Err(Refusal::new(format!(
            "inference input '{name}' data-type is '{data_type}', but model '{model}' expects '{expected}'"
        )));
    }
    let dims = if config.has_batching() { got.get(1..).unwrap_or_default() } else { got };
    if dims.len() == spec.dims.len() && dims.contains(&-1) {
        return Err(Refusal::new(format!(
            "All input dimensions should be specified for input '{name}' for model '{model}', got {got}"
        )));
    }
    if !spec.dims.admits(dims) {
        return Err(error::unexpected_shape(input, &spec.dims, config));
    }
    Ok(())
}

fn check_byte_size(input: &Tensor, model: &str) -> Result<(), Refusal> {
    if input.data_type == DataType::Bytes {
        return check_strings(input, model);
    }
    let got = input.data.len();
    match input.shape.byte_size(input.data_type) {
        Some(expected) if expected == got => Ok(()),
        Some(expected) => Err(Refusal::new(format!(
            "input byte size mismatch for input '{}' for model '{model}'. Expected {expected}, got {got}",
            input.name
        ))),
        None => Err(too_many_elements(input, model)),
    }
}

fn too_many_elements(input: &Tensor, model: &str) -> Refusal {
    Refusal::new(format!(
        "the shape {} of input '{}' for model '{model}' has more elements than can be addressed",
        input.shape, input.name
    ))
}

/// Checks the lengths of strings: every element must be inside the buffer, and their number must fit the shape.
fn check_strings(input: &Tensor, model: &str) -> Result<(), Refusal> {
    let Some(expected) = input.shape.element_count() else {
        return Err(too_many_elements(input, model));
    };
    let data = input.host().map_err(|error| Refusal::new(error.to_string()))?;
    let name = &input.name;
    let mut got = 0usize;
    for element in byte_strings::elements(data) {
        got += 1;
        if got > expected {
            return Err(Refusal::new(format!(
                "unexpected number of string elements {got} for inference input '{name}' for model '{model}', expecting {expected}"
            )));
        }
        element.map_err(|truncated| error::truncated(name, model, truncated))?;
    }
    if got != expected {
        return Err(Refusal::new(format!(
            "expected {expected} string elements for inference input '{name}' for model '{model}', got {got}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
