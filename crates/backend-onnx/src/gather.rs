//! From requests to the model's inputs.

use std::ffi::CStr;

use galatea_backend::{
    Batch,
    batching::{Content, join, tensors_of},
};
use galatea_types::{Result, Tensor};

use crate::{
    model::{OnnxModel, Port},
    ort::Value,
};

/// The joined inputs of `part`, the positions of the requests in `batch` that run together.
pub(crate) fn inputs<'m>(
    model: &'m OnnxModel,
    batch: &Batch,
    part: &[usize],
) -> Result<Vec<(&'m CStr, Value)>> {
    let mut values = Vec::with_capacity(model.inputs.len());
    for port in &model.inputs {
        let tensors = tensors_of(batch, part, &port.spec)?;
        // An optional input nobody brought: the model's own value holds.
        if !tensors.is_empty() {
            values.push((port.info.c_name.as_c_str(), value(model, port, &tensors)?));
        }
    }
    Ok(values)
}

fn value(model: &OnnxModel, port: &Port, tensors: &[&Tensor]) -> Result<Value> {
    let is_scalar = port.info.dims.is_empty();
    let joined = join(&port.spec, is_scalar, model.config.has_batching(), tensors)?;
    match joined.content {
        Content::Elements(data) => {
            Value::over(&model.library, data, &joined.shape, port.spec.data_type)
        }
        Content::Texts(texts) => Value::texts(&model.library, &texts, &joined.shape),
    }
}
