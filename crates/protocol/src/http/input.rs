//! One element of `inputs`.

use bytes::Bytes;
use galatea_config::ModelConfig;
use galatea_types::{Buffer, DataType, Shape, Tensor};

use super::{
    decode_error::{DecodeError, Result},
    field::{read_at, read_member},
    json::{Cursor, for_each_element, for_each_member},
    limits::{self, MAX_RANK},
    region::RegionParameters,
    tensor_data::{self, Elements, Expected},
};
use crate::regions::Regions;

/// Where the data of inputs comes from when it is not in the JSON.
pub(super) struct Sources<'a> {
    pub tail: BinaryTail<'a>,
    pub regions: &'a dyn Regions,
    pub model: &'a ModelConfig,
}

impl Sources<'_> {
    /// Refuses a body that goes on behind the last tensor.
    pub fn check_used_up(&self) -> Result<()> {
        if self.tail.is_used_up() {
            return Ok(());
        }
        Err(DecodeError::UnusedBytes(self.model.name().to_string()))
    }
}

/// The binary tensors behind the JSON header, handed out in input order.
pub(super) struct BinaryTail<'a> {
    pub body: &'a Bytes,
    /// Where the next tensor starts.
    pub next: usize,
}

impl BinaryTail<'_> {
    /// The next `size` bytes, or how many are missing.
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

/// Which inputs have their data kept.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    model: &'a ModelConfig,
    before: &'a [Tensor],
}

impl Wanted<'_> {
    fn elements_of(self, name: &str) -> Elements {
        let is_first = || self.before.iter().all(|tensor| &*tensor.name != name);
        match self.model.input(name) {
            Some(_) if is_first() => Elements::Kept,
            _ => Elements::Checked,
        }
    }
}

/// Where in the text each member's value starts.
#[derive(Default)]
struct Members {
    name: Option<usize>,
    data_type: Option<usize>,
    shape: Option<usize>,
    parameters: Option<usize>,
    data: Option<usize>,
}

/// Where the data of an input comes from, besides `data`.
#[derive(Default)]
struct SourceParameters {
    binary_data_size: Option<usize>,
    region: RegionParameters,
}

/// Reads the input object the cursor stands on and steps over it. `before` are the inputs that stand before it.
///
/// Its data is kept only where the model has such an input and the request has it once. Else it is checked as any
/// other, for the texts of its errors, and forgotten: the request is refused by the name then.
pub(super) fn decode(
    cursor: &mut Cursor<'_>,
    sources: &mut Sources<'_>,
    before: &[Tensor],
) -> Result<Tensor> {
    let wanted = Wanted { model: sources.model, before };
    let mut members = Members::default();
    let mut data = None;
    for_each_member(cursor, |key, cursor| {
        let slot = match key {
            b"name" => &mut members.name,
            b"datatype" => &mut members.data_type,
            b"shape" => &mut members.shape,
            b"parameters" => &mut members.parameters,
            b"data" => &mut members.data,
            _ => return cursor.skip_value(),
        };
        if slot.is_some() {
            return cursor.skip_value();
        }
        *slot = Some(cursor.position());
        if key == b"data" {
            // Clients write name, type and shape first: one pass then does it. Else `data` is read later.
            let mut ahead = cursor.clone();
            data = members.read_data(&mut ahead, wanted).ok();
            if data.is_some() {
                *cursor = ahead;
                return Ok(());
            }
        }
        cursor.skip_value()
    })?;
    members.into_tensor(cursor, data, wanted, sources)
}

impl Members {
    fn into_tensor(
        self,
        cursor: &Cursor<'_>,
        data: Option<Buffer>,
        wanted: Wanted<'_>,
        sources: &mut Sources<'_>,
    ) -> Result<Tensor> {
        let parameters = self.source_parameters(cursor)?;
        self.check_one_source(&parameters)?;
        let name = self.name(cursor)?;
        let data_type = self.data_type(cursor)?;
        let shape = self.shape(cursor)?;
        let data = if let Some(at) = parameters.binary_data_size {
            let size = read_at(cursor, at, "binary_data_size", Cursor::expect_u64)?;
            sources.tail.take(size).map_err(|missing| {
                let (input, model) = (name.clone(), sources.model.name().to_string());
                DecodeError::MissingBytes { input, missing, model }
            })?
        } else if let Some(span) = parameters.region.span(cursor, sources.regions)? {
            span.read()?
        } else {
            match (data, self.data) {
                (Some(data), _) => data,
                (None, Some(at)) => self.read_data(&mut cursor.at(at), wanted)?,
                (None, None) => Buffer::default(),
            }
        };
        let Some(data_type) = data_type else {
            return Err(DecodeError::InvalidDataType(name));
        };
        Ok(Tensor::new(name, data_type, shape, data))
    }

    fn read_data(&self, cursor: &mut Cursor<'_>, wanted: Wanted<'_>) -> Result<Buffer> {
        let name = self.name(cursor)?;
        let Some(data_type) = self.data_type(cursor)? else {
            return Err(DecodeError::InvalidDataType(name));
        };
        let shape = self.shape(cursor)?;
        let Some(count) = shape.element_count() else {
            return Err(DecodeError::TooManyElements { input: name, shape });
        };
        if count == 0 {
            // Triton does not look at the data of an empty tensor.
            cursor.skip_value()?;
            return Ok(Buffer::default());
        }
        let elements = wanted.elements_of(&name);
        tensor_data::decode(cursor, Expected { data_type, count, input_name: &name, elements })
    }

    fn name(&self, cursor: &Cursor<'_>) -> Result<String> {
        let name = read_member(cursor, self.name, "name", Cursor::expect_string)?;
        Ok(limits::name(&name).into_owned())
    }

    /// `None` for a name that is no data type.
    fn data_type(&self, cursor: &Cursor<'_>) -> Result<Option<DataType>> {
        let name = read_member(cursor, self.data_type, "datatype", Cursor::expect_string)?;
        Ok(std::str::from_utf8(&name).ok().and_then(DataType::from_protocol_name))
    }

    fn shape(&self, cursor: &Cursor<'_>) -> Result<Shape> {
        read_member(cursor, self.shape, "shape", |cursor| -> Result<Shape> {
            let mut shape = Shape::scalar();
            for_each_element(cursor, |cursor| -> Result<()> {
                let dim = cursor.expect_u64()?;
                if shape.len() == MAX_RANK {
                    let input = self.name(cursor)?;
                    return Err(DecodeError::TooManyDimensions { input, most: MAX_RANK });
                }
                let in_range = i64::try_from(dim);
                shape.push(in_range.map_err(|_| DecodeError::DimensionOutOfRange(dim))?);
                Ok(())
            })?;
            Ok(shape)
        })
    }

    fn source_parameters(&self, cursor: &Cursor<'_>) -> Result<SourceParameters> {
        let mut sources = SourceParameters::default();
        let Some(at) = self.parameters else { return Ok(sources) };
        for_each_member(&mut cursor.at(at), |key, cursor| {
            match key {
                b"binary_data_size" => {
                    sources.binary_data_size.get_or_insert(cursor.position());
                }
                key => sources.region.note(key, cursor.position()),
            }
            cursor.skip_value()
        })?;
        Ok(sources)
    }

    /// The data must come from exactly one place.
    fn check_one_source(&self, sources: &SourceParameters) -> Result<()> {
        let fields = [
            ("data", self.data.is_some()),
            ("binary_data_size", sources.binary_data_size.is_some()),
            ("shared_memory_region", sources.region.name_region()),
        ];
        let set: Vec<&'static str> =
            fields.iter().filter(|(_, is_set)| *is_set).map(|(f, _)| *f).collect();
        if set.len() == 1 { Ok(()) } else { Err(DecodeError::DataSources { set }) }
    }
}
