//! One element of `inputs`.

use std::borrow::Cow;

use bytes::Bytes;
use galatea_config::ModelConfig;
use galatea_types::{Buffer, DataType, Regions, Shape, Tensor, UnreadInput};

use super::{
    advice,
    decode_error::{DecodeError, Result},
    field::Member,
    json::{JsonCursor, for_each_element, for_each_member},
    json_error::JsonError,
    limits::{self, MAX_RANK},
    region::RegionParameters,
    tensor_data::{self, Elements, ExpectedData},
};

/// The sources of inputs that are not in the JSON.
pub(super) struct Sources<'a> {
    pub tail: BinaryTail<'a>,
    pub regions: &'a dyn Regions,
    pub model: &'a ModelConfig,
    /// The inputs in regions.
    pub unread: Vec<UnreadInput>,
}

impl Sources<'_> {
    /// Refuses a body that continues after the last tensor.
    pub fn check_used_up(&self) -> Result<()> {
        if self.tail.is_used_up() {
            return Ok(());
        }
        Err(DecodeError::UnusedBytes(self.model.name().to_string()))
    }
}

/// The binary tensors after the JSON header, in input order.
pub(super) struct BinaryTail<'a> {
    pub body: &'a Bytes,
    /// The position of the next tensor.
    pub next: usize,
}

impl BinaryTail<'_> {
    /// Returns the next `size` bytes, or the number of missing ones.
    fn take(&mut self, size: u64) -> Result<Buffer, u64> {
        let available = self.body.len().saturating_sub(self.next);
        let missing = size.saturating_sub(available as u64);
        let end = usize::try_from(size).ok().and_then(|n| self.next.checked_add(n));
        let end = end.filter(|&end| end <= self.body.len()).ok_or(missing)?;
        let slice = self.body.slice(self.next..end);
        self.next = end;
        Ok(slice.into())
    }

    fn is_used_up(&self) -> bool {
        self.next >= self.body.len()
    }
}

#[derive(Clone, Copy)]
struct KeptInputs<'a> {
    model: &'a ModelConfig,
    before: &'a [Tensor],
}

impl KeptInputs<'_> {
    fn elements_of(self, name: &str) -> Elements {
        let is_first = || self.before.iter().all(|tensor| &*tensor.name != name);
        match self.model.input(name) {
            Some(_) if is_first() => Elements::Kept,
            _ => Elements::Checked,
        }
    }
}

#[derive(Default)]
struct InputMembers<'a> {
    name: Member<Cow<'a, [u8]>>,
    /// `None` for a name that is not a data type.
    data_type: Member<Option<DataType>>,
    shape: Member<Shape>,
    parameters: Member<SourceParameters<'a>>,
    data: Member<Buffer>,
}

/// The parameters of an input that name the source of its data, if it is not in `data`.
#[derive(Default)]
struct SourceParameters<'a> {
    binary_data_size: Member<u64>,
    region: RegionParameters<'a>,
}

/// The description of an input without its data.
struct InputDescription<'a> {
    name: &'a [u8],
    data_type: Option<DataType>,
    shape: &'a Shape,
}

/// Reads the input object at the cursor and moves past it. `before` are the inputs before it.
///
/// Its data is kept only if the model has such an input and this is the first with its name. Other data is checked all
/// the same, for the texts of its errors, and dropped. The request is then refused for the name.
pub(super) fn decode(
    cursor: &mut JsonCursor<'_>,
    sources: &mut Sources<'_>,
    before: &[Tensor],
) -> Result<Tensor> {
    let wanted = KeptInputs { model: sources.model, before };
    let mut members = InputMembers::default();
    let start = cursor.position();
    for_each_member(cursor, |key, cursor| match key {
        b"name" => members.name.read(cursor, JsonCursor::expect_string),
        b"datatype" => members.data_type.read(cursor, read_data_type),
        b"shape" => members.shape.read(cursor, |cursor| read_shape(cursor, b"")),
        b"parameters" => members.parameters.read(cursor, read_source_parameters),
        b"data" => {
            // Clients write name, type and shape first, so one pass is enough. In another order the data is read later.
            let described = InputDescription::of(&members.name, &members.data_type, &members.shape);
            members.data.read(cursor, |cursor| {
                described.and_then(|it| it.read_data(cursor, wanted).ok()).ok_or(DataBeforeShape)
            })
        }
        _ => cursor.skip_value(),
    })?;
    members
        .into_tensor(cursor, wanted, sources)
        .map_err(|error| advice::of_input(error, &cursor.at(start), before.len(), sources.model))
}

/// The error for data before the name, type or shape of its input.
struct DataBeforeShape;

impl<'a> InputMembers<'a> {
    fn into_tensor(
        self,
        cursor: &JsonCursor<'a>,
        wanted: KeptInputs<'_>,
        sources: &mut Sources<'_>,
    ) -> Result<Tensor> {
        let parameters = self.parameters.take(cursor, read_source_parameters)?.unwrap_or_default();
        check_one_source(self.data.is_there(), &parameters)?;
        let SourceParameters { binary_data_size, region } = parameters;
        let name = self.name.require(cursor, "name", JsonCursor::expect_string)?;
        let data_type = self.data_type.require(cursor, "datatype", read_data_type)?;
        let shape = self.shape.require(cursor, "shape", |cursor| read_shape(cursor, &name))?;
        let size =
            binary_data_size.take_field(cursor, "binary_data_size", JsonCursor::expect_u64)?;
        let data = if let Some(size) = size {
            sources.tail.take(size).map_err(|missing| {
                let (input, model) = (text(&name), sources.model.name().to_string());
                DecodeError::MissingBytes { input, missing, model }
            })?
        } else if let Some(span) = region.span(cursor, sources.regions)? {
            sources.unread.push(UnreadInput { index: wanted.before.len(), span });
            Buffer::default()
        } else {
            let described = InputDescription { name: &name, data_type, shape: &shape };
            let data = self.data.take(cursor, |cursor| described.read_data(cursor, wanted))?;
            data.unwrap_or_default()
        };
        let data_type = data_type.ok_or_else(|| DecodeError::InvalidDataType(text(&name)))?;
        Ok(Tensor::new(limits::name(&name), data_type, shape, data))
    }
}

impl<'a> InputDescription<'a> {
    /// Returns `None` if one of them is missing so far, or cannot be read.
    fn of(
        name: &'a Member<Cow<'_, [u8]>>,
        data_type: &Member<Option<DataType>>,
        shape: &'a Member<Shape>,
    ) -> Option<Self> {
        Some(Self { name: name.value()?, data_type: *data_type.value()?, shape: shape.value()? })
    }

    fn read_data(&self, cursor: &mut JsonCursor<'_>, wanted: KeptInputs<'_>) -> Result<Buffer> {
        let name = limits::name(self.name);
        let Some(data_type) = self.data_type else {
            return Err(DecodeError::InvalidDataType(name.into_owned()));
        };
        let Some(count) = self.shape.element_count() else {
            let (input, shape) = (name.into_owned(), self.shape.clone());
            return Err(DecodeError::TooManyElements { input, shape });
        };
        if count == 0 {
            // Triton ignores the data of an empty tensor.
            cursor.skip_value()?;
            return Ok(Buffer::default());
        }
        if data_type.byte_size().is_some_and(|size| count.checked_mul(size).is_none()) {
            let (input, shape) = (name.into_owned(), self.shape.clone());
            return Err(DecodeError::TooManyBytes { input, shape, data_type });
        }
        let elements = wanted.elements_of(&name);
        tensor_data::decode(cursor, ExpectedData { data_type, count, input_name: &name, elements })
    }
}

fn text(name: &[u8]) -> String {
    limits::name(name).into_owned()
}

/// Returns `None` for a name that is not a data type.
fn read_data_type(cursor: &mut JsonCursor<'_>) -> Result<Option<DataType>, JsonError> {
    let name = cursor.expect_string()?;
    Ok(std::str::from_utf8(&name).ok().and_then(DataType::from_protocol_name))
}

fn read_shape(cursor: &mut JsonCursor<'_>, name: &[u8]) -> Result<Shape> {
    let mut shape = Shape::scalar();
    for_each_element(cursor, |cursor| -> Result<()> {
        let dim = cursor.expect_u64()?;
        if shape.len() == MAX_RANK {
            return Err(DecodeError::TooManyDimensions { input: text(name), most: MAX_RANK });
        }
        let in_range = i64::try_from(dim);
        shape.push(in_range.map_err(|_| DecodeError::DimensionOutOfRange(dim))?);
        Ok(())
    })?;
    Ok(shape)
}

fn read_source_parameters<'a>(
    cursor: &mut JsonCursor<'a>,
) -> Result<SourceParameters<'a>, JsonError> {
    let mut sources = SourceParameters::default();
    for_each_member(cursor, |key, cursor| match key {
        b"binary_data_size" => sources.binary_data_size.read(cursor, JsonCursor::expect_u64),
        key => sources.region.read(key, cursor),
    })?;
    Ok(sources)
}

/// Checks that the data has exactly one source.
fn check_one_source(has_data: bool, parameters: &SourceParameters<'_>) -> Result<()> {
    let fields = [
        ("data", has_data),
        ("binary_data_size", parameters.binary_data_size.is_there()),
        ("shared_memory_region", parameters.region.name_region()),
    ];
    let set = || fields.iter().filter(|(_, is_set)| *is_set).map(|(field, _)| *field);
    if set().count() == 1 { Ok(()) } else { Err(DecodeError::DataSources { set: set().collect() }) }
}
