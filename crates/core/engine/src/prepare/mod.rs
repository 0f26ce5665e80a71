//! Checks of a request against the model's configuration. Order and texts are Triton's: clients match on them.

mod error;

use galatea_config::{ModelConfig, TensorSpec, names_of};
use galatea_types::{DataType, InferRequest, PreparedRequest, Result, Tensor, byte_strings};

use self::error::Refusal;

/// Checks `request` and finds its batch size. The errors are complete: nothing needs to be put before them.
pub(crate) fn prepare(request: InferRequest, config: &ModelConfig) -> Result<PreparedRequest> {
    let checked = check_outputs(&request, config).and_then(|()| check_inputs(&request, config));
    let batch_size = checked.map_err(|error| error.for_request(&request))?;
    Ok(PreparedRequest::assume_checked(request, batch_size))
}

/// Checks one tensor for an input of the model, as it is checked in a request.
pub(crate) fn check_tensor(tensor: &Tensor, spec: &TensorSpec, config: &ModelConfig) -> Result<()> {
    let checked = check_input(tensor, spec, config);
    let checked = checked.and_then(|()| check_byte_size(tensor, config.name()));
    checked.map_err(|error| error.for_request(&InferRequest::new(config.name().clone())))
}

fn check_outputs(request: &InferRequest, config: &ModelConfig) -> Result<(), Refusal> {
    match request.outputs.iter().find(|output| config.output(output).is_none()) {
        None => Ok(()),
        Some(output) => Err(Refusal::without_id(format!(
            "unexpected inference output '{}' for model '{}' (its outputs: {})",
            output,
            config.name(),
            names_of(config.outputs())
        ))),
    }
}

fn check_inputs(request: &InferRequest, config: &ModelConfig) -> Result<u32, Refusal> {
    check_input_count(request, config)?;
    let batch_size = batch_size(request, config)?;
    for input in &request.inputs {
        let spec = spec_of(input, config)?;
        check_input(input, spec, config)?;
    }
    check_required_inputs(request, config)?;
    let batch_size = u32::try_from(batch_size).ok().filter(|&size| size >= 1);
    let batch_size = batch_size.ok_or_else(|| error::batch_size(request, config))?;
    for input in &request.inputs {
        check_byte_size(input, config.name())?;
    }
    Ok(batch_size)
}

fn spec_of<'c>(input: &Tensor, config: &'c ModelConfig) -> Result<&'c TensorSpec, Refusal> {
    config.input(&input.name).ok_or_else(|| {
        Refusal::without_id(format!(
            "unexpected inference input '{}' for model '{}' (its inputs: {})",
            input.name,
            config.name(),
            names_of(config.inputs())
        ))
    })
}

fn check_input_count(request: &InferRequest, config: &ModelConfig) -> Result<(), Refusal> {
    let required = config.inputs().iter().filter(|s| !s.is_optional).count();
    let given = request.inputs.len();
    if (required..=config.inputs().len()).contains(&given) {
        return Ok(());
    }
    Err(error::missing_inputs(request, config, required))
}

/// The count may be right while an optional input stands in for a required one.
fn check_required_inputs(request: &InferRequest, config: &ModelConfig) -> Result<(), Refusal> {
    let required = config.inputs().iter().filter(|s| !s.is_optional);
    if required.clone().all(|spec| request.input(&spec.name).is_some()) {
        return Ok(());
    }
    Err(error::missing_inputs(request, config, required.count()))
}

fn batch_size(request: &InferRequest, config: &ModelConfig) -> Result<i64, Refusal> {
    if !config.has_batching() {
        return Ok(1);
    }
    let mut batch: Option<i64> = None;
    for input in &request.inputs {
        spec_of(input, config)?;
        let Some(&first) = input.shape.first() else {
            return Err(Refusal::new(format!(
                "input '{}' has no shape but model requires batch dimension for '{}'",
                input.name,
                config.name()
            )));
        };
        if *batch.get_or_insert(first) != first {
            return Err(Refusal::new(format!(
                "input '{}' batch size does not match other inputs for '{}'",
                input.name,
                config.name()
            )));
        }
    }
    let batch = batch.unwrap_or(1);
    // A batch below 1 is refused only after the shapes, as in Triton: a wrong shape is the better hint.
    if batch > i64::from(config.max_batch_size()) {
        return Err(error::batch_size(request, config));
    }
    Ok(batch)
}

fn check_input(input: &Tensor, spec: &TensorSpec, config: &ModelConfig) -> Result<(), Refusal> {
    let (got, has_batching) = (&input.shape, config.has_batching());
    if input.data_type != spec.data_type {
        return Err(Refusal::new(format!(
            "inference input '{}' data-type is '{}', but model '{}' expects '{}'",
            input.name,
            input.data_type,
            config.name(),
            spec.data_type
        )));
    }
    let dims = if has_batching { got.get(1..).unwrap_or_default() } else { got };
    if dims.len() == spec.dims.len() && dims.contains(&-1) {
        return Err(Refusal::new(format!(
            "All input dimensions should be specified for input '{}' for model '{}', got {got}",
            input.name,
            config.name()
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

/// Walks the length indicators: every element must lie inside the buffer and their number must fit the shape.
fn check_strings(input: &Tensor, model: &str) -> Result<(), Refusal> {
    let Some(expected) = input.shape.element_count() else {
        return Err(too_many_elements(input, model));
    };
    let data = input.host().map_err(|error| Refusal::new(error.to_string()))?;
    let mut got = 0usize;
    for element in byte_strings::elements(data) {
        if got == expected {
            return Err(Refusal::new(format!(
                "unexpected number of string elements {} for inference input '{}' for model '{model}', expecting {expected}",
                got + 1,
                input.name
            )));
        }
        element.map_err(|truncated| error::truncated(&input.name, model, truncated))?;
        got += 1;
    }
    if got != expected {
        return Err(Refusal::new(format!(
            "expected {expected} string elements for inference input '{}' for model '{model}', got {got}",
            input.name
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
