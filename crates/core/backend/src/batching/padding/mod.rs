//! Pads requests of different shapes to run them together (`pad_batches`): inputs are padded to one shape, outputs are cut
//! back.

mod region;
#[cfg(all(test, feature = "testing"))]
mod tests;

use galatea_config::{ModelConfig, PaddedInput, Padding, PaddingMask, TensorSpec};
use galatea_types::{AlignedBlock, Buffer, DataType, Error, Result, Shape, Tensor, byte_strings};

use self::region::{Piece, pieces};
use super::{
    join::{Content, JoinedInput, elements, missing, tensors_of, texts},
    model_output::OutputSlice,
    reshape::to_model,
};
use crate::Batch;

/// The shapes that the requests of a group are padded to.
pub(super) struct PaddedGroup<'c> {
    config: &'c ModelConfig,
    padding: &'c Padding,
    /// The shapes of each padded input in the group, except the mask.
    inputs: Vec<InputShapes<'c>>,
}

/// The shapes of one input.
struct InputShapes<'c> {
    spec: &'c TensorSpec,
    /// The shape in each request.
    own: Vec<Shape>,
    /// The dimensions that all are padded to, without the batch.
    target: Shape,
}

impl<'c> PaddedGroup<'c> {
    /// Returns `None` if the model's requests are not padded.
    pub fn of(config: &'c ModelConfig, batch: &Batch, group: &[usize]) -> Result<Option<Self>> {
        let Some(padding) = config.padding() else { return Ok(None) };
        let is_padded = |spec: &&TensorSpec| {
            padding.input(&spec.name).is_some() && padding.mask_named(&spec.name).is_none()
        };
        let mut inputs = Vec::with_capacity(padding.inputs.len());
        for spec in config.inputs().iter().filter(is_padded) {
            let tensors = tensors_of(batch, group, spec)?;
            let own: Vec<Shape> = tensors.iter().map(|tensor| tensor.shape.clone()).collect();
            if let Some(target) = target(padding, spec, &own)? {
                inputs.push(InputShapes { spec, own, target });
            }
        }
        Ok(Some(Self { config, padding, inputs }))
    }

    fn sizes(&self, input: &str) -> Option<&InputShapes<'c>> {
        self.inputs.iter().find(|sizes| &*sizes.spec.name == input)
    }

    /// Returns an input in the form for the model, if it is a padded one and something must be padded.
    pub fn join<'t>(
        &self,
        spec: &TensorSpec,
        is_scalar: bool,
        batch: &'t Batch,
        group: &[usize],
    ) -> Option<Result<JoinedInput<'t>>>
    where
        'c: 't,
    {
        let input = self.padding.input(&spec.name)?;
        if let Some(mask) = self.padding.mask_named(&spec.name) {
            return Some(self.mask(mask, spec, input, batch, group));
        }
        let sizes = self.sizes(&spec.name)?;
        if sizes.own.iter().all(|own| own.get(1..) == Some(&*sizes.target)) {
            return None;
        }
        Some(tensors_of(batch, group, spec).and_then(|tensors| {
            let (items, content) = match spec.data_type {
                DataType::Bytes => padded_texts(spec, &sizes.target, &input.value, &tensors)?,
                _ => padded_elements(spec, &sizes.target, &input.value, &tensors)?,
            };
            let shape = to_model(spec, is_scalar, &sizes.target).with_leading(items);
            Ok(JoinedInput { shape, content, is_shared: false })
        }))
    }

    /// Returns the mask: that of the request, else one as long as the request's input.
    fn mask<'t>(
        &self,
        mask: &PaddingMask,
        spec: &TensorSpec,
        input: &PaddedInput,
        batch: &Batch,
        group: &[usize],
    ) -> Result<JoinedInput<'t>> {
        let source = self.sizes(&mask.source).ok_or_else(|| missing(spec))?;
        let dims = |dims: &[i64]| mask_dims(spec, source.spec, dims).ok_or_else(|| missing(spec));
        let mut masks = Vec::with_capacity(group.len());
        for (&index, own) in group.iter().zip(&source.own) {
            let (items, own_dims) = own.split_first().ok_or_else(|| missing(spec))?;
            let shape = dims(own_dims)?.with_leading(*items);
            masks.push(match batch.request(index).and_then(|request| request.input(&spec.name)) {
                None => ones(spec, &mask.one, shape, own.element_count().unwrap_or(0))?,
                Some(given) if given.shape == shape => given.clone(),
                Some(given) => return Err(other_mask(spec, given, source.spec, own)),
            });
        }
        let target = dims(&source.target)?;
        let masks: Vec<&Tensor> = masks.iter().collect();
        let (items, content) = padded_elements(spec, &target, &input.value, &masks)?;
        let shape = to_model(spec, false, &target).with_leading(items);
        Ok(JoinedInput { shape, content, is_shared: false })
    }

    /// Cuts the request's rows of an output to the length of its input. `position` is its place in the group.
    pub fn cut(
        &self,
        spec: &TensorSpec,
        position: usize,
        slice: OutputSlice,
    ) -> Result<OutputSlice> {
        let source = self.padding.source_of(&spec.name).and_then(|source| self.sizes(source));
        let Some(source) = source else { return Ok(slice) };
        let OutputSlice { shape, data } = &slice;
        let wrong = || self.not_divided(spec, source, shape);
        let own = source.own.get(position).ok_or_else(wrong)?;
        let mut wanted = shape.clone();
        let dims = spec.dims.iter().zip(source.spec.dims.iter()).enumerate();
        for (at, _) in dims.filter(|(_, (output, input))| **output < 0 && **input < 0) {
            let (padded, own) = (source.target.get(at), own.get(at + 1));
            match (wanted.dims_mut().get_mut(at + 1), own) {
                (Some(size), Some(own)) if Some(&*size) == padded => *size = *own,
                _ => return Err(wrong()),
            }
        }
        if wanted == *shape {
            return Ok(slice);
        }
        let data = corner(spec.data_type, &wanted, shape, data).ok_or_else(wrong)?;
        Ok(OutputSlice { shape: wanted, data })
    }

    fn not_divided(&self, output: &TensorSpec, source: &InputShapes<'_>, shape: &Shape) -> Error {
        Error::internal(format!(
            "output '{name}' of model '{}' has shape {shape}, and is not as long as the padded input '{}' of shape {}: \
             name the input whose length it has, or none, in the parameter pad_batches.length_of.{name}",
            self.config.name(),
            source.spec.name,
            source.target.with_leading(shape.first().copied().unwrap_or(0)),
            name = output.name
        ))
    }
}

/// Returns the dimensions that an input of all requests is padded to; `None` if no request has it.
fn target(padding: &Padding, spec: &TensorSpec, shapes: &[Shape]) -> Result<Option<Shape>> {
    let mut longest: Option<Shape> = None;
    for shape in shapes {
        let dims = shape.get(1..).unwrap_or_default();
        if !spec.dims.admits(dims) {
            let name = &spec.name;
            let text = format!("input '{name}' has shape {shape}, which is none of the model's");
            return Err(Error::internal(text));
        }
        let so_far = longest.get_or_insert_with(|| Shape::from(dims));
        so_far.dims_mut().iter_mut().zip(dims).for_each(|(most, &dim)| *most = dim.max(*most));
    }
    let round_up = |mut longest: Shape| {
        let open = longest.dims_mut().iter_mut().zip(spec.dims.iter());
        open.filter(|(_, spec)| **spec < 0).for_each(|(dim, _)| *dim = padding.length(*dim));
        longest
    };
    Ok(longest.map(round_up))
}

/// Returns the dimensions of a mask. Its open dimensions are those of its input, in order.
fn mask_dims(mask: &TensorSpec, source: &TensorSpec, dims: &[i64]) -> Option<Shape> {
    let mut open = source.dims.iter().zip(dims).filter(|(spec, _)| **spec < 0).map(|(_, &dim)| dim);
    mask.dims.iter().map(|&dim| if dim < 0 { open.next() } else { Some(dim) }).collect()
}

/// Returns a mask of ones. `brought` is the number of bytes of the request's input.
fn ones(spec: &TensorSpec, one: &[u8], shape: Shape, brought: usize) -> Result<Tensor> {
    let data = Buffer::from(one.repeat(check_size(spec, shape.element_count(), brought)?));
    Ok(Tensor { name: spec.name.clone(), data_type: spec.data_type, shape, data })
}

/// Returns the size of a padded input in bytes or texts. Fails above `MOST_GROWTH` times the size in the requests, unless it is
/// at most `HARMLESS`. A tensor without elements may have dimensions of any size.
fn check_size(spec: &TensorSpec, padded: Option<usize>, brought: usize) -> Result<usize> {
    const MOST_GROWTH: usize = 16;
    const HARMLESS: usize = 16 << 20;
    let most = brought.saturating_mul(MOST_GROWTH).max(HARMLESS);
    padded.filter(|&padded| padded <= most).ok_or_else(|| too_large(spec))
}

fn too_large(spec: &TensorSpec) -> Error {
    Error::invalid_arg(format!("input '{}' is too large when it is padded", spec.name))
}

fn other_mask(spec: &TensorSpec, given: &Tensor, source: &TensorSpec, shape: &Shape) -> Error {
    Error::invalid_arg(format!(
        "input '{}' has shape {}, but it is the mask of input '{}' of shape {shape}",
        spec.name, given.shape, source.name
    ))
}

/// Returns the number of items of all tensors.
fn items(tensors: &[&Tensor]) -> i64 {
    tensors.iter().filter_map(|tensor| tensor.shape.first()).sum()
}

/// Returns, for each tensor, the places of its elements in one of dimensions `target`.
fn places(spec: &TensorSpec, target: &Shape, tensors: &[&Tensor]) -> Result<Vec<Vec<Piece>>> {
    let of = |tensor: &&Tensor| pieces(&tensor.shape, &target.with_leading(items(&[tensor])));
    let places: Option<Vec<_>> = tensors.iter().map(of).collect();
    places.ok_or_else(|| too_large(spec))
}

/// Pads elements of a fixed size.
fn padded_elements<'t>(
    spec: &TensorSpec,
    target: &Shape,
    value: &[u8],
    tensors: &[&Tensor],
) -> Result<(i64, Content<'t>)> {
    let items = items(tensors);
    let size = target.with_leading(items).byte_size(spec.data_type);
    let size = check_size(spec, size, tensors.iter().map(|tensor| tensor.data.len()).sum())?;
    let mut block = AlignedBlock::with_capacity(size);
    let places = places(spec, target, tensors)?;
    let is_zero = value.iter().all(|&byte| byte == 0);
    for (tensor, pieces) in tensors.iter().zip(places) {
        let mut own = elements(spec, tensor)?;
        for piece in pieces {
            match piece {
                Piece::Own(count) => {
                    let split = own.split_at_checked(count.saturating_mul(value.len()));
                    let (next, rest) = split.ok_or_else(|| too_large(spec))?;
                    block.extend_from_slice(next);
                    own = rest;
                }
                Piece::Around(count) if is_zero => block.extend_zeroed(count * value.len()),
                Piece::Around(count) => (0..count).for_each(|_| block.extend_from_slice(value)),
            }
        }
    }
    Ok((items, Content::Elements(block.into_bytes())))
}

fn padded_texts<'t>(
    spec: &TensorSpec,
    target: &Shape,
    value: &'t [u8],
    tensors: &[&'t Tensor],
) -> Result<(i64, Content<'t>)> {
    let items = items(tensors);
    let count = target.with_leading(items).element_count();
    let brought = tensors.iter().filter_map(|tensor| tensor.shape.element_count()).sum();
    let mut all = Vec::with_capacity(check_size(spec, count, brought)?);
    let places = places(spec, target, tensors)?;
    for (tensor, pieces) in tensors.iter().zip(places) {
        let mut own = texts(spec, &[tensor])?.into_iter();
        for piece in pieces {
            match piece {
                Piece::Own(count) => all.extend(own.by_ref().take(count)),
                Piece::Around(count) => all.extend(std::iter::repeat_n(value, count)),
            }
        }
    }
    Ok((items, Content::Texts(all)))
}

/// Returns the corner of dimensions `wanted` of a tensor of dimensions `shape`, without a copy if its elements are contiguous.
fn corner(data_type: DataType, wanted: &Shape, shape: &Shape, data: &Buffer) -> Option<Buffer> {
    let pieces = pieces(wanted, shape)?;
    let Some(size) = data_type.byte_size() else { return text_corner(&pieces, wanted, data) };
    if let [Piece::Own(count)] | [Piece::Own(count), Piece::Around(_)] = pieces[..] {
        return data.slice(0..count.checked_mul(size)?);
    }
    let mut all = data.host().ok()?;
    let mut block = AlignedBlock::with_capacity(wanted.byte_size(data_type)?);
    for piece in pieces {
        let (Piece::Own(count) | Piece::Around(count)) = piece;
        let (next, rest) = all.split_at_checked(count.checked_mul(size)?)?;
        if matches!(piece, Piece::Own(_)) {
            block.extend_from_slice(next);
        }
        all = rest;
    }
    Some(block.freeze())
}

fn text_corner(pieces: &[Piece], wanted: &Shape, data: &Buffer) -> Option<Buffer> {
    let mut all = byte_strings::elements(data.host().ok()?);
    let mut own: Vec<&[u8]> = Vec::new();
    for piece in pieces {
        let (Piece::Own(count) | Piece::Around(count)) = piece;
        for element in all.by_ref().take(*count) {
            own.extend(element.ok().filter(|_| matches!(piece, Piece::Own(_))));
        }
    }
    let packed = || byte_strings::pack(&own).ok();
    (wanted.element_count() == Some(own.len())).then(packed)?
}
