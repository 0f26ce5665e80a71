//! Batches for models that are compiled for one batch size: smaller ones are filled up with zeros, or refused.

use bytes::Bytes;
use galatea_backend::batching::{Content, JoinedInput, ModelOutput};
use galatea_config::TensorSpec;
use galatea_types::{AlignedBlock, DataType, Error, Result, Shape, byte_strings};

use crate::model::OpenVinoModel;

/// Returns an input with as many items as the model is compiled for.
///
/// # Errors
/// Triton's text, if there are fewer items and the model's parameters do not ask for filling.
pub(crate) fn fill_batch<'t>(
    joined: JoinedInput<'t>,
    spec: &TensorSpec,
    model: &OpenVinoModel,
) -> Result<JoinedInput<'t>> {
    let wanted = i64::from(model.config.max_batch_size());
    let items = joined.shape.first().copied().unwrap_or(0);
    if items == wanted {
        return Ok(joined);
    }
    if !model.settings.pads_batches || items > wanted {
        return Err(Error::internal(format!(
            "expected requests with batch size '{wanted}', got '{items}'... this error can be avoided by setting \
             'ENABLE_BATCH_PADDING' parameter in model configuration to 'YES' at a performance cost."
        )));
    }
    let dims = joined.shape.get(1..).map(Shape::from).unwrap_or_default();
    let shape = dims.with_leading(wanted);
    let too_large =
        || Error::internal(format!("input '{}' of shape {shape} is too large", spec.name));
    let filled = |data: Bytes| {
        let size = shape.byte_size(spec.data_type).ok_or_else(too_large)?;
        let mut block = AlignedBlock::with_capacity(size);
        block.extend_from_slice(&data);
        block.extend_zeroed(size.saturating_sub(data.len()));
        Ok::<_, Error>(Content::Elements(block.into_bytes()))
    };
    let content = match joined.content {
        Content::Elements(data) => filled(data)?,
        Content::OnDevice(data) => filled(data.to_host()?)?,
        Content::Texts(mut texts) => {
            texts.resize(shape.element_count().ok_or_else(too_large)?, &[]);
            Content::Texts(texts)
        }
    };
    Ok(JoinedInput { shape, content, is_shared: false })
}

/// Returns the first `items` of an output, those that were requested.
pub(crate) fn without_filling(
    output: ModelOutput,
    items: i64,
    data_type: DataType,
) -> Result<ModelOutput> {
    let Some((&all, dims)) = output.shape.split_first() else { return Ok(output) };
    if all <= items {
        return Ok(output);
    }
    let shape = Shape::from(dims).with_leading(items);
    let end = match (shape.byte_size(data_type), shape.element_count()) {
        (Some(size), _) => Some(size),
        (None, Some(count)) => byte_strings::size_of_first(output.data.host()?, count),
        (None, None) => None,
    };
    let data = end.and_then(|end| output.data.slice(0..end));
    let data =
        data.ok_or_else(|| Error::internal("an output has fewer items than were computed"))?;
    Ok(ModelOutput { shape, data })
}
