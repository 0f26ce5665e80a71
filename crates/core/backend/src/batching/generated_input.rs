//! Inputs of the model that are made from the shapes of a batch's requests (`batch_input`), with the values that Triton makes.

use galatea_config::{BatchInput, BatchInputKind, TensorSpec};
use galatea_types::{AlignedBlock, DataType, Error, Result, Shape, Tensor};

use super::join::{Content, JoinedInput};

/// Makes the tensor for each target of `batch_input`. `sources` is the source input of each request.
pub(super) fn generate(
    batch_input: &BatchInput,
    target: &TensorSpec,
    sources: &[&Tensor],
) -> Result<JoinedInput<'static>> {
    use BatchInputKind as Kind;

    let too_large = || too_large(target);
    let counts = || sources.iter().map(|tensor| tensor.shape.element_count());
    let counts = || counts().collect::<Option<Vec<usize>>>().ok_or_else(too_large);
    let (dims, values) = match batch_input.kind {
        Kind::ElementCount => (None, counts()?),
        Kind::AccumulatedElementCount => (None, accumulated(counts()?).ok_or_else(too_large)?),
        Kind::AccumulatedElementCountWithZero => {
            let ends = accumulated(counts()?).ok_or_else(too_large)?;
            (None, [0].into_iter().chain(ends).collect())
        }
        Kind::MaxElementCountAsShape => {
            // The shape carries the value.
            (None, vec![0; counts()?.into_iter().max().unwrap_or(0)])
        }
        Kind::ItemShape => {
            let rows =
                sources.iter().map(|tensor| tensor.shape.first().copied().unwrap_or(0)).sum();
            let width = sources.first().map_or(0, |tensor| tensor.shape.len().saturating_sub(1));
            let width = i64::try_from(width).map_err(|_| too_large())?;
            (Some(Shape::from([rows, width])), item_shapes(sources).ok_or_else(too_large)?)
        }
        Kind::ItemShapeFlatten => (None, item_shapes(sources).ok_or_else(too_large)?),
    };
    let length = i64::try_from(values.len()).map_err(|_| too_large())?;
    let shape = dims.unwrap_or_else(|| Shape::from([length]));
    let data = written(batch_input.data_type, &values).ok_or_else(too_large)?;
    Ok(JoinedInput { shape, content: Content::Elements(data.into_bytes()), is_shared: false })
}

fn accumulated(counts: Vec<usize>) -> Option<Vec<usize>> {
    let mut total = 0_usize;
    let add = |count| {
        total = total.checked_add(count)?;
        Some(total)
    };
    counts.into_iter().map(add).collect()
}

/// Returns the dimensions of each item without the batch dimension, repeated for each item of a request.
fn item_shapes(sources: &[&Tensor]) -> Option<Vec<usize>> {
    let mut values = Vec::new();
    for tensor in sources {
        let (&items, dims) = tensor.shape.split_first()?;
        let dims: Vec<usize> =
            dims.iter().map(|&dim| usize::try_from(dim).ok()).collect::<Option<_>>()?;
        for _ in 0..items {
            values.extend_from_slice(&dims);
        }
    }
    Some(values)
}

/// Returns `None` if a number does not fit into INT32.
fn written(data_type: DataType, values: &[usize]) -> Option<AlignedBlock> {
    let mut block = AlignedBlock::with_capacity(values.len().checked_mul(size_of::<i32>())?);
    for &value in values {
        let value = i32::try_from(value).ok()?;
        match data_type {
            DataType::Fp32 => block.extend_from_slice(&(value as f32).to_le_bytes()),
            _ => block.extend_from_slice(&value.to_le_bytes()),
        }
    }
    Some(block)
}

fn too_large(target: &TensorSpec) -> Error {
    Error::invalid_arg(format!(
        "batch input '{}' cannot be computed: the shapes of the batch are too large",
        target.name
    ))
}

#[cfg(test)]
mod tests {
    use galatea_config::testing::{model_config, tensor_spec};

    use super::*;

    /// Shape and numbers for requests of these shapes.
    fn made(kind: &str, data_type: &str, shapes: &[&[i64]]) -> (Shape, Vec<f32>) {
        let config = model_config(&format!(
            "backend: 'b' input {{ name: 'x' data_type: TYPE_UINT8 dims: -1 }}
             batch_input {{ kind: {kind} target_name: 't' data_type: {data_type} source_input: 'x' }}"
        ));
        let tensors: Vec<Tensor> = shapes
            .iter()
            .map(|&shape| Tensor::new("x", DataType::Uint8, Shape::from(shape), Vec::new()))
            .collect();
        let sources: Vec<&Tensor> = tensors.iter().collect();
        let target = tensor_spec("t", DataType::Int32, [-1]);
        let joined = generate(&config.batch_inputs()[0], &target, &sources).expect("made");
        let Content::Elements(data) = joined.content else { panic!("numbers") };
        let number = |bytes: &[u8]| match data_type {
            "TYPE_FP32" => f32::from_le_bytes(bytes.try_into().expect("4 bytes")),
            _ => i32::from_le_bytes(bytes.try_into().expect("4 bytes")) as f32,
        };
        (joined.shape, data.chunks(4).map(number).collect())
    }

    #[track_caller]
    fn check(kind: &str, shapes: &[&[i64]], shape: &[i64], values: &[f32]) {
        for data_type in ["TYPE_INT32", "TYPE_FP32"] {
            let expected = (Shape::from(shape), values.to_vec());
            assert_eq!(made(kind, data_type, shapes), expected, "{kind} {data_type}");
        }
    }

    #[test]
    fn element_counts_are_per_request_and_include_the_batch_dimension() {
        let shapes: &[&[i64]] = &[&[1, 2], &[2, 2], &[1, 1], &[1, 3]];
        check("BATCH_ELEMENT_COUNT", shapes, &[4], &[2.0, 4.0, 1.0, 3.0]);
        check("BATCH_ACCUMULATED_ELEMENT_COUNT", shapes, &[4], &[2.0, 6.0, 7.0, 10.0]);
        let with_zero = [0.0, 2.0, 6.0, 7.0, 10.0];
        check("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", shapes, &[5], &with_zero);
        check("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", shapes, &[4], &[0.0; 4]);
    }

    #[test]
    fn shapes_are_per_item() {
        let shapes: &[&[i64]] = &[&[2, 3, 1], &[1, 2, 2]];
        let values = [3.0, 1.0, 3.0, 1.0, 2.0, 2.0];
        check("BATCH_ITEM_SHAPE", shapes, &[3, 2], &values);
        check("BATCH_ITEM_SHAPE_FLATTEN", shapes, &[6], &values);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert!(written(DataType::Int32, &[usize::MAX]).is_none());
        assert!(accumulated(vec![usize::MAX, 1]).is_none());
    }
}
