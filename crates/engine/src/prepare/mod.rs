//! Checks of a request against the model's configuration. Order and texts are Triton's: clients match on them.

mod error;

use galatea_config::{ModelConfig, TensorSpec, names_of};
use galatea_types::{DataType, InferRequest, PreparedRequest, Result, Tensor, byte_strings};

use self::error::{BatchReading, ItemShape, MissingInputs, RequestError, UnexpectedShape};

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

fn check_outputs(request: &InferRequest, config: &ModelConfig) -> Result<(), RequestError> {
    match request.outputs.iter().find(|output| config.output(&output.name).is_none()) {
        None => Ok(()),
        Some(output) => Err(RequestError::UnexpectedOutput {
            output: output.name.to_string(),
            model: config.name().to_string(),
            known: names_of(config.outputs()),
        }),
    }
}

fn check_inputs(request: &InferRequest, config: &ModelConfig) -> Result<u32, RequestError> {
    check_input_count(request, config)?;
    let batch_size = batch_size(request, config)?;
    for input in &request.inputs {
        let spec = spec_of(input, config)?;
        check_input(input, spec, config)?;
    }
    check_required_inputs(request, config)?;
    let batch_size = u32::try_from(batch_size).ok().filter(|&size| size >= 1);
    let batch_size = batch_size.ok_or_else(|| bad_batch_size(request, config))?;
    for input in &request.inputs {
        check_byte_size(input, config.name())?;
    }
    Ok(batch_size)
}

fn spec_of<'c>(input: &Tensor, config: &'c ModelConfig) -> Result<&'c TensorSpec, RequestError> {
    config.input(&input.name).ok_or_else(|| {
        let (input, model) = subject(input, config.name());
        RequestError::UnexpectedInput { input, model, known: names_of(config.inputs()) }
    })
}

/// Names of the input and the model, for an error.
fn subject(input: &Tensor, model: &str) -> (String, String) {
    (input.name.to_string(), model.to_owned())
}

fn check_input_count(request: &InferRequest, config: &ModelConfig) -> Result<(), RequestError> {
    let required = config.inputs().iter().filter(|s| !s.is_optional).count();
    let given = request.inputs.len();
    if (required..=config.inputs().len()).contains(&given) {
        return Ok(());
    }
    Err(missing_inputs(request, config, required))
}

/// The count may be right while an optional input stands in for a required one.
fn check_required_inputs(request: &InferRequest, config: &ModelConfig) -> Result<(), RequestError> {
    let required = config.inputs().iter().filter(|s| !s.is_optional);
    if required.clone().all(|spec| request.input(&spec.name).is_some()) {
        return Ok(());
    }
    Err(missing_inputs(request, config, required.count()))
}

fn missing_inputs(request: &InferRequest, config: &ModelConfig, required: usize) -> RequestError {
    let missing =
        config.inputs().iter().filter(|s| !s.is_optional && request.input(&s.name).is_none());
    RequestError::MissingInputs(Box::new(MissingInputs {
        model: config.name().to_string(),
        required,
        total: config.inputs().len(),
        given: request.inputs.iter().map(|tensor| tensor.name.to_string()).collect(),
        missing: missing.map(|spec| spec.name.to_string()).collect(),
    }))
}

fn batch_size(request: &InferRequest, config: &ModelConfig) -> Result<i64, RequestError> {
    if !config.has_batching() {
        return Ok(1);
    }
    let mut batch: Option<i64> = None;
    for input in &request.inputs {
        spec_of(input, config)?;
        let Some(&first) = input.shape.first() else {
            let (input, model) = subject(input, config.name());
            return Err(RequestError::NoBatchDimension { input, model });
        };
        if *batch.get_or_insert(first) != first {
            let (input, model) = subject(input, config.name());
            return Err(RequestError::BatchSizesDiffer { input, model });
        }
    }
    let batch = batch.unwrap_or(1);
    // A batch below 1 is refused only after the shapes, as in Triton: a wrong shape is the better hint.
    if batch > i64::from(config.max_batch_size()) {
        return Err(bad_batch_size(request, config));
    }
    Ok(batch)
}

fn bad_batch_size(request: &InferRequest, config: &ModelConfig) -> RequestError {
    let is_item = |input: &&Tensor| {
        config.input(&input.name).is_some_and(|spec| spec.dims.admits(&input.shape))
    };
    let item = request.inputs.iter().find(is_item).map(|input| {
        Box::new(ItemShape { input: input.name.to_string(), shape: input.shape.clone() })
    });
    RequestError::BatchSize { max: config.max_batch_size(), model: config.name().to_string(), item }
}

fn check_input(
    input: &Tensor,
    spec: &TensorSpec,
    config: &ModelConfig,
) -> Result<(), RequestError> {
    let (got, has_batching) = (&input.shape, config.has_batching());
    if input.data_type != spec.data_type {
        let (got, expected) = (input.data_type, spec.data_type);
        let (input, model) = subject(input, config.name());
        return Err(RequestError::DataType { input, model, got, expected });
    }
    let dims = if has_batching { got.get(1..).unwrap_or_default() } else { got };
    if dims.len() == spec.dims.len() && dims.contains(&-1) {
        let (input, model) = subject(input, config.name());
        return Err(RequestError::UnspecifiedDimension { input, model, got: got.clone() });
    }
    if !spec.dims.admits(dims) {
        let expected = if has_batching { spec.dims.with_leading(-1) } else { spec.dims.clone() };
        let (input, model) = subject(input, config.name());
        let reading = BatchReading::of(got, &spec.dims, has_batching);
        let shape =
            UnexpectedShape { input, model, expected, got: got.clone(), has_batching, reading };
        return Err(RequestError::Shape(Box::new(shape)));
    }
    Ok(())
}

fn check_byte_size(input: &Tensor, model: &str) -> Result<(), RequestError> {
    if input.data_type == DataType::Bytes {
        return check_strings(input, model);
    }
    let got = input.data.len();
    match input.shape.byte_size(input.data_type) {
        Some(expected) if expected == got => Ok(()),
        Some(expected) => {
            let (input, model) = subject(input, model);
            Err(RequestError::ByteSize { input, model, expected, got })
        }
        None => Err(too_many_elements(input, model)),
    }
}

fn too_many_elements(input: &Tensor, model: &str) -> RequestError {
    let shape = input.shape.clone();
    let (input, model) = subject(input, model);
    RequestError::TooManyElements { input, model, shape }
}

/// Walks the length indicators: every element must lie inside the buffer and their number must fit the shape.
fn check_strings(input: &Tensor, model: &str) -> Result<(), RequestError> {
    let Some(expected) = input.shape.element_count() else {
        return Err(too_many_elements(input, model));
    };
    let data = input.host().map_err(RequestError::NotInHostMemory)?;
    let mut got = 0usize;
    for element in byte_strings::elements(data) {
        if got == expected {
            let (input, model) = subject(input, model);
            return Err(RequestError::ExcessStrings { input, model, got: got + 1, expected });
        }
        element.map_err(|truncated| RequestError::truncated(&input.name, model, truncated))?;
        got += 1;
    }
    if got != expected {
        let (input, model) = subject(input, model);
        return Err(RequestError::MissingStrings { input, model, got, expected });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
