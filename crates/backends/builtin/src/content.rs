//! Access to the inputs of requests, with a check of content against shape.

use galatea_types::{Error, InferRequest, Result, Tensor, byte_strings};

/// Checks that a tensor holds as many elements as its shape says.
pub(crate) fn check_content(tensor: &Tensor) -> Result<()> {
    let is_whole = match tensor.shape.byte_size(tensor.data_type) {
        Some(size) => size == tensor.data.len(),
        None => byte_strings::count(tensor.host()?).ok() == tensor.shape.element_count(),
    };
    if is_whole {
        return Ok(());
    }
    let (name, size) = (&tensor.name, tensor.data.len());
    let (data_type, shape) = (tensor.data_type, &tensor.shape);
    Err(Error::invalid_arg(format!("input '{name}' of {size} bytes is not {data_type} {shape}")))
}

/// Returns an input of a request after checking its content against its shape.
pub(crate) fn input<'a>(request: &'a InferRequest, name: &str) -> Result<&'a Tensor> {
    let input = request.input(name).ok_or_else(|| {
        let model = &request.model_name;
        Error::invalid_arg(format!("model '{model}' got no input '{name}'"))
    })?;
    check_content(input)?;
    Ok(input)
}
