//! From requests to the model's inputs: without a copy for a request alone, with one where several join.

use std::ffi::CStr;

use galatea_backend::Batch;
use galatea_types::{AlignedBlock, Buffer, DataType, Error, InferRequest, Result, Shape, Tensor};

use crate::{
    byte_strings,
    model::{OnnxModel, Port},
    ort::Value,
    reshape::to_model,
};

/// Whether the tensors of one request hold what their shapes say. Checked before requests are joined, so
/// that a bad one fails alone.
pub(crate) fn check(model: &OnnxModel, request: &InferRequest) -> Result<()> {
    for port in &model.inputs {
        let Some(tensor) = request.input(&port.spec.name) else {
            if port.spec.is_optional {
                continue;
            }
            return Err(missing(port));
        };
        let fits = match port.spec.data_type {
            DataType::Bytes => {
                let count = byte_strings::count(&tensor.data);
                count.is_some() && count == tensor.shape.element_count()
            }
            fixed => tensor.shape.byte_size(fixed) == Some(tensor.data.len()),
        };
        if !fits {
            return Err(Error::invalid_arg(format!(
                "input '{}' holds {} bytes, which do not fill shape {} of {}",
                port.spec.name,
                tensor.data.len(),
                tensor.shape,
                port.spec.data_type
            )));
        }
    }
    Ok(())
}

/// The joined inputs of `part`, the positions of the requests in `batch` that run together.
pub(crate) fn inputs<'m>(
    model: &'m OnnxModel,
    batch: &Batch,
    part: &[usize],
) -> Result<Vec<(&'m CStr, Value)>> {
    let mut values = Vec::with_capacity(model.inputs.len());
    for port in &model.inputs {
        let tensors: Vec<&Tensor> =
            part.iter().filter_map(|&index| batch.request(index)?.input(&port.spec.name)).collect();
        match tensors.len() {
            // An optional input nobody brought: the model's own value holds.
            0 if port.spec.is_optional => continue,
            n if n == part.len() => {}
            _ => return Err(missing(port)),
        }
        values.push((port.info.c_name.as_c_str(), join(model, port, &tensors)?));
    }
    Ok(values)
}

fn missing(port: &Port) -> Error {
    Error::internal(format!("a request of the batch lacks input '{}'", port.spec.name))
}

fn join(model: &OnnxModel, port: &Port, tensors: &[&Tensor]) -> Result<Value> {
    let shape = joined_shape(model, port, tensors)?;
    if port.spec.data_type == DataType::Bytes {
        return texts(model, tensors, &shape);
    }
    let data = match tensors {
        [one] => aligned(&one.data, port.spec.data_type),
        several => concatenate(several),
    };
    Value::over(&model.library, data, &shape, port.spec.data_type)
}

/// The library reads elements through typed pointers, so each must lie on a multiple of its size.
fn aligned(data: &Buffer, data_type: DataType) -> Buffer {
    data.aligned(data_type.byte_size().unwrap_or(1))
}

fn concatenate(tensors: &[&Tensor]) -> Buffer {
    let mut block = AlignedBlock::with_capacity(tensors.iter().map(|t| t.data.len()).sum());
    tensors.iter().for_each(|t| block.extend_from_slice(&t.data));
    block.freeze()
}

/// The shape the model sees: dimensions after the first must be the same in all.
fn joined_shape(model: &OnnxModel, port: &Port, tensors: &[&Tensor]) -> Result<Shape> {
    let Some((first, others)) = tensors.split_first() else { return Err(missing(port)) };
    if !model.config.has_batching() {
        return Ok(to_model(port, &first.shape));
    }
    let Some((&batch, dims)) = first.shape.split_first() else { return Err(missing(port)) };
    let mut total = batch;
    for other in others {
        match other.shape.split_first() {
            Some((&batch, theirs)) if theirs == dims => total += batch,
            _ => {
                return Err(Error::internal(format!(
                    "input '{}' has different shapes in one batch: {} and {}",
                    port.spec.name, first.shape, other.shape
                )));
            }
        }
    }
    Ok(to_model(port, dims).with_leading(total))
}

fn texts(model: &OnnxModel, tensors: &[&Tensor], shape: &Shape) -> Result<Value> {
    let mut texts = Vec::new();
    for tensor in tensors {
        byte_strings::split(&tensor.data, &mut texts);
    }
    Value::texts(&model.library, &texts, shape)
}
