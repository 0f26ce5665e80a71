//! Joins the tensors of requests into inputs of the model: without a copy for a single request, with one copy for several.
//! Data in the memory of a device is copied to the host, unless the model takes it there.

use bytes::Bytes;
use galatea_config::TensorSpec;
use galatea_types::{
    AlignedBlock, Buffer, DataType, DeviceAllocator, Error, Result, Shape, Tensor, byte_strings,
};

use super::reshape::to_model;
use crate::Batch;

/// Returns the error of a request that lacks a required input.
pub fn missing(spec: &TensorSpec) -> Error {
    Error::internal(format!("a request of the batch lacks input '{}'", spec.name))
}

/// Returns the input's tensor of each request in the group; empty for an optional input that no request has. Fails if
/// only some have it.
pub(super) fn tensors_of<'b>(
    batch: &'b Batch,
    group: &[usize],
    spec: &TensorSpec,
) -> Result<Vec<&'b Tensor>> {
    let tensors: Vec<&Tensor> =
        group.iter().filter_map(|&index| batch.request(index)?.input(&spec.name)).collect();
    match tensors.len() {
        0 if spec.is_optional => Ok(tensors),
        n if n == group.len() => Ok(tensors),
        _ => Err(missing(spec)),
    }
}

/// An input in the form that the model gets.
#[derive(Debug, PartialEq)]
pub struct JoinedInput<'t> {
    /// The shape for the model, including the batch dimension.
    pub shape: Shape,
    /// As many elements as the shape has.
    pub content: Content<'t>,
    /// True if the elements are the request's own memory. Others may read it, so it must not be changed.
    pub is_shared: bool,
}

/// The elements of an input.
#[derive(Debug, PartialEq)]
pub enum Content<'t> {
    /// Elements of a fixed size. The first is aligned to a multiple of it, because libraries read them through typed pointers.
    Elements(Bytes),
    /// Elements of a fixed size in the memory of the model's device; only for models that name a device.
    OnDevice(Buffer),
    /// The elements of a BYTES tensor.
    Texts(Vec<&'t [u8]>),
}

/// Joins one tensor per request; dimensions after the first must be equal. `is_scalar`: the model declares a tensor without
/// dimensions. `device`: the device that the model takes inputs in, if not the host.
pub(super) fn join<'t>(
    spec: &TensorSpec,
    is_scalar: bool,
    has_batching: bool,
    device: Option<&dyn DeviceAllocator>,
    tensors: &[&'t Tensor],
) -> Result<JoinedInput<'t>> {
    let shape = joined_shape(spec, is_scalar, has_batching, tensors)?;
    let (content, is_shared) = match (spec.data_type, device, tensors) {
        (DataType::Bytes, ..) => (Content::Texts(texts(spec, tensors)?), true),
        (_, Some(device), _) => {
            let (data, is_shared) = on_device(spec, device, tensors)?;
            (Content::OnDevice(data), is_shared)
        }
        (_, None, [one]) => {
            let (data, is_shared) = aligned(spec, one)?;
            (Content::Elements(data), is_shared)
        }
        (_, None, several) => (Content::Elements(concatenate(spec, several)?), false),
    };
    Ok(JoinedInput { shape, content, is_shared })
}

/// Returns the texts of all requests. They were counted when the requests were checked, and are counted again here, so that
/// a wrong number can never reach a library.
pub(super) fn texts<'t>(spec: &TensorSpec, tensors: &[&'t Tensor]) -> Result<Vec<&'t [u8]>> {
    let mut texts = Vec::new();
    for tensor in tensors {
        let start = texts.len();
        for element in byte_strings::elements(tensor.host()?) {
            texts.push(element.map_err(|_| not_filled(spec, tensor))?);
        }
        if tensor.shape.element_count() != Some(texts.len() - start) {
            return Err(not_filled(spec, tensor));
        }
    }
    Ok(texts)
}

fn aligned(spec: &TensorSpec, tensor: &Tensor) -> Result<(Bytes, bool)> {
    check_size(spec, tensor)?;
    let Buffer::Host(theirs) = &tensor.data else { return Ok((tensor.data.to_host()?, false)) };
    let data = tensor.data.aligned(spec.data_type.byte_size().unwrap_or(1))?;
    let is_shared = data.as_ptr() == theirs.as_ptr();
    Ok((data, is_shared))
}

/// Returns the elements in the device's memory: in place for a single request that has them there, else copied to one block.
fn on_device(
    spec: &TensorSpec,
    device: &dyn DeviceAllocator,
    tensors: &[&Tensor],
) -> Result<(Buffer, bool)> {
    tensors.iter().try_for_each(|tensor| check_size(spec, tensor))?;
    if let [Tensor { data: data @ Buffer::Device(memory), .. }] = tensors
        && memory.device() == device.device()
    {
        return Ok((data.clone(), true));
    }
    let mut block = device.allocate(tensors.iter().map(|tensor| tensor.data.len()).sum())?;
    let mut offset = 0;
    for tensor in tensors {
        block.write(offset, &tensor.data)?;
        offset += tensor.data.len();
    }
    Ok((Buffer::Device(block.freeze()), false))
}

/// Returns elements of a fixed size for the host, as many as the shape has.
pub(super) fn elements<'t>(spec: &TensorSpec, tensor: &'t Tensor) -> Result<&'t [u8]> {
    check_size(spec, tensor)?;
    tensor.host()
}

fn check_size(spec: &TensorSpec, tensor: &Tensor) -> Result<()> {
    match tensor.shape.byte_size(spec.data_type) == Some(tensor.data.len()) {
        true => Ok(()),
        false => Err(not_filled(spec, tensor)),
    }
}

fn not_filled(spec: &TensorSpec, tensor: &Tensor) -> Error {
    Error::invalid_arg(format!(
        "input '{}' holds {} bytes, which do not fill shape {} of {}",
        spec.name,
        tensor.data.len(),
        tensor.shape,
        spec.data_type
    ))
}

fn concatenate(spec: &TensorSpec, tensors: &[&Tensor]) -> Result<Bytes> {
    let mut block = AlignedBlock::with_capacity(tensors.iter().map(|t| t.data.len()).sum());
    for tensor in tensors {
        check_size(spec, tensor)?;
        tensor.data.append_to(&mut block)?;
    }
    Ok(block.into_bytes())
}

fn joined_shape(
    spec: &TensorSpec,
    is_scalar: bool,
    has_batching: bool,
    tensors: &[&Tensor],
) -> Result<Shape> {
    if spec.allows_ragged_batch {
        return ragged_shape(spec, tensors);
    }
    let Some((first, others)) = tensors.split_first() else { return Err(missing(spec)) };
    if !has_batching {
        return Ok(to_model(spec, is_scalar, &first.shape));
    }
    let Some((&batch, dims)) = first.shape.split_first() else { return Err(missing(spec)) };
    let mut total = batch;
    for other in others {
        match other.shape.split_first() {
            Some((&batch, theirs)) if theirs == dims => total += batch,
            _ => {
                return Err(Error::internal(format!(
                    "input '{}' has different shapes in one batch: {} and {}",
                    spec.name, first.shape, other.shape
                )));
            }
        }
    }
    Ok(to_model(spec, is_scalar, dims).with_leading(total))
}

/// Returns the shape of all requests' elements, joined in one dimension.
fn ragged_shape(spec: &TensorSpec, tensors: &[&Tensor]) -> Result<Shape> {
    let mut total = Some(0_i64);
    for tensor in tensors {
        let count = tensor.shape.element_count().and_then(|count| i64::try_from(count).ok());
        total = total.zip(count).and_then(|(total, count)| total.checked_add(count));
    }
    let too_large = || Error::invalid_arg(format!("input '{}' is too large", spec.name));
    Ok(Shape::from([total.ok_or_else(too_large)?]))
}

#[cfg(test)]
mod tests {
    use galatea_config::testing::tensor_spec;

    use super::*;

    fn spec(data_type: DataType, dims: &[i64]) -> TensorSpec {
        tensor_spec("x", data_type, dims)
    }

    #[test]
    fn a_single_tensor_is_not_copied() {
        let mut block = AlignedBlock::with_capacity(8);
        block.extend_from_slice(&[1; 8]);
        let tensor = Tensor::new("x", DataType::Int32, [2, 1], block.freeze());
        let joined =
            join(&spec(DataType::Int32, &[1]), false, true, None, &[&tensor]).expect("joins");
        let Content::Elements(data) = joined.content else { panic!("elements") };
        assert_eq!(data.as_ptr(), tensor.host().expect("host memory").as_ptr());
        assert_eq!(joined.shape, Shape::from([2, 1]));
    }

    #[test]
    fn tensors_are_joined_along_the_first_dimension() {
        let tensor =
            |n: i64, byte| Tensor::new("x", DataType::Uint8, [n, 2], vec![byte; 2 * n as usize]);
        let (a, b) = (tensor(1, 1), tensor(2, 2));
        let mut spec = spec(DataType::Uint8, &[2]);
        spec.reshape = Some(Shape::from([1, 2]));
        let joined = join(&spec, false, true, None, &[&a, &b]).expect("joins");
        assert_eq!(joined.shape, Shape::from([3, 1, 2]));
        assert_eq!(joined.content, Content::Elements(vec![1, 1, 2, 2, 2, 2].into()));
        let odd = Tensor::new("x", DataType::Uint8, [1, 3], vec![0; 3]);
        let error = join(&spec, false, true, None, &[&a, &odd]).expect_err("differs");
        assert!(error.message().contains("different shapes in one batch: [1,2] and [1,3]"));
    }

    #[test]
    fn ragged_tensors_of_any_shape_are_joined_in_one_dimension() {
        let tensor = |shape: &[i64], bytes: &[u8]| {
            Tensor::new("x", DataType::Uint8, Shape::from(shape), bytes.to_vec())
        };
        let (a, b) = (tensor(&[1, 2], &[1, 2]), tensor(&[2, 1, 2], &[3, 4, 5, 6]));
        let mut spec = spec(DataType::Uint8, &[-1]);
        spec.allows_ragged_batch = true;
        spec.reshape = Some(Shape::from([-1, 1]));
        let joined = join(&spec, false, true, None, &[&a, &b]).expect("joins");
        assert_eq!(joined.shape, Shape::from([6]));
        assert_eq!(joined.content, Content::Elements(vec![1, 2, 3, 4, 5, 6].into()));
        assert_eq!(join(&spec, false, false, None, &[&b]).expect("joins").shape, Shape::from([4]));
    }

    #[test]
    fn a_tensor_with_too_few_elements_is_refused() {
        let spec = spec(DataType::Bytes, &[-1]);
        let join = |data: &[u8]| {
            let tensor = Tensor::new("x", DataType::Bytes, [1], data.to_vec());
            super::join(&spec, false, false, None, &[&tensor]).map(|joined| joined.shape)
        };
        assert_eq!(join(b"\x01\0\0\0a").expect("whole"), Shape::from([1]));
        for bad in [&b"\x02\0\0\0a"[..], b"", b"\0\0\0\0\0\0\0\0"] {
            assert!(join(bad).is_err());
        }
    }
}
