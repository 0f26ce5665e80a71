//! Common parts of the sequence models: checks of their configurations, and reading of their requests.

use galatea_backend::misconfigured;
use galatea_config::{FieldPath, ModelConfig, Scheduling, SequenceControl, TensorSpec};
use galatea_types::{Buffer, Code, DataType, Error, InferRequest, Result, Tensor};

use crate::{content::input, stream::words};

/// Returns the error of a configuration that a backend does not support.
pub(crate) fn unfit(text: &str, field: impl Into<FieldPath>, advice: &str) -> Error {
    misconfigured(Code::InvalidArg, text, field, advice)
}

/// Checks that a sequence model has exactly the control inputs of these names. `text`: the error otherwise.
pub(crate) fn check_controls<'a>(
    config: &'a ModelConfig,
    names: &[&str],
    text: &str,
) -> Result<&'a [SequenceControl]> {
    let controls: &[_] = match config.scheduling() {
        Scheduling::Sequence(batching) => &batching.controls,
        _ => &[],
    };
    let has = |name: &&str| controls.iter().any(|control| *control.input == **name);
    if controls.len() == names.len() && names.iter().all(has) {
        return Ok(controls);
    }
    let advice = format!("list a `control_input` for each of {}", names.join(", "));
    Err(unfit(text, FieldPath::from("sequence_batching").field("control_input"), &advice))
}

/// Checks that the model has one input `INPUT` and one output `OUTPUT`, both of the same single dimension, INT32.
pub(crate) fn check_vectors(config: &ModelConfig) -> Result<()> {
    let [input] = config.inputs() else {
        return Err(vector("input", "model must have input 'INPUT' with vector shape, any length"));
    };
    if input.dims.len() != 1 {
        let text = "model must have one input 'INPUT' with vector shape, any length";
        return Err(vector("input", text));
    }
    check_kind("input", "INPUT", input)?;
    let [output] = config.outputs() else {
        let text = "model must have one output 'OUTPUT' with vector shape, any length";
        return Err(vector("output", text));
    };
    if output.dims != input.dims {
        let text = "model must have output 'OUTPUT' with shape matching 'INPUT'";
        return Err(vector("output", text));
    }
    check_kind("output", "OUTPUT", output)
}

fn vector(field: &'static str, text: &str) -> Error {
    unfit(
        text,
        field,
        "write one `INPUT` and one `OUTPUT`, both `TYPE_INT32` with the same `dims: [ n ]`",
    )
}

fn check_kind(field: &'static str, name: &str, spec: &TensorSpec) -> Result<()> {
    if spec.data_type != DataType::Int32 {
        return Err(vector(field, &format!("model {field} must have TYPE_INT32 data-type")));
    }
    if &*spec.name != name {
        return Err(vector(field, &format!("model {field} must be named '{name}'")));
    }
    Ok(())
}

/// Returns true if a control input is set, in whichever type it is.
pub(crate) fn flag(request: &InferRequest, name: &str) -> Result<bool> {
    Ok(input(request, name)?.host()?.iter().any(|&byte| byte != 0))
}

/// Returns the first element of an INT32 input.
pub(crate) fn number(request: &InferRequest, name: &str) -> Result<i32> {
    let first = words(input(request, name)?.host()?).next();
    let first = first.ok_or_else(|| Error::invalid_arg(format!("input '{name}' is empty")))?;
    Ok(i32::from_le_bytes(first))
}

/// Returns the sum of all elements of `INPUT`. Sums wrap around.
pub(crate) fn sum(request: &InferRequest) -> Result<i32> {
    let elements = words(input(request, "INPUT")?.host()?);
    Ok(elements.map(i32::from_le_bytes).fold(0, i32::wrapping_add))
}

/// Refuses a request of several rows: the steps of a sequence come one by one.
pub(crate) fn check_single(batch_size: u32) -> Result<()> {
    match batch_size {
        0 | 1 => Ok(()),
        _ => Err(Error::unsupported("unable to execute more than one timestep at a time")),
    }
}

/// Returns `OUTPUT` in the shape of `INPUT`, with the value in each element, or nothing if it was not requested.
pub(crate) fn answer(request: &InferRequest, value: i32) -> Result<Vec<Tensor>> {
    if !request.wants_output("OUTPUT") {
        return Ok(Vec::new());
    }
    let input = input(request, "INPUT")?;
    let count = input.data.len() / size_of::<i32>();
    let data = Buffer::from(value.to_le_bytes().repeat(count));
    Ok(vec![Tensor::new("OUTPUT", DataType::Int32, input.shape.clone(), data)])
}
