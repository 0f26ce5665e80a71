//! What an ONNX file declares, read from the file itself, without ONNX Runtime: inputs, outputs, and the files of its
//! weights. Nodes and weights are skipped, so that a file of gigabytes costs as much as its names do.
//!
//! # Invariants
//! - Any file is read or refused: what is kept is bounded by the size of the file, and what is looked at by a number.

use std::{
    collections::BTreeSet,
    ffi::CString,
    fs::File,
    io::{self, Read, Seek},
    path::{Component, Path, PathBuf},
};

use galatea_protobuf_file::{Field, FieldValue, ReadError, Reader, Span};
use galatea_types::Shape;

use crate::{
    ort::{TensorInfo, ValueKind, from_element_type},
    signature::Signature,
};

/// Names that are kept of one file.
const MOST_NAMES: usize = 100_000;
const MOST_DIMS: usize = 64;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeaderError {
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("it is not an ONNX model, or not the whole of one")]
    Malformed,
    #[error("it has no graph")]
    NoGraph,
    #[error("it has more parts than are looked at")]
    TooManyFields,
}

impl From<ReadError> for HeaderError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Read(error) => Self::Read(error),
            ReadError::Malformed => Self::Malformed,
            ReadError::TooManyFields => Self::TooManyFields,
        }
    }
}

/// What a file declares.
#[derive(Debug, Default)]
pub(crate) struct Header {
    pub inputs: Vec<TensorInfo>,
    pub outputs: Vec<TensorInfo>,
    /// Of inputs and outputs: those without a shape, which ONNX Runtime infers where it can.
    pub without_shape: BTreeSet<String>,
    /// Weights that are listed by name.
    initializers: BTreeSet<String>,
    /// Files of weights beside the model.
    external: BTreeSet<String>,
    ir_version: u64,
}

/// One input or output.
#[derive(Default)]
struct Declared {
    name: String,
    kind: Option<ValueKind>,
    dims: Option<Vec<i64>>,
}

impl Header {
    pub fn of_file(path: &Path) -> Result<Self, HeaderError> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Self::read(file, length)
    }

    /// Of the first `length` bytes.
    pub fn read(input: impl Read + Seek, length: u64) -> Result<Self, HeaderError> {
        let mut header = Self::default();
        let mut has_graph = false;
        Reader::new(input).fields(Span { end: length }, |reader, field| {
            match field {
                Field { number: 1, value: FieldValue::Number(version) } => {
                    header.ir_version = version
                }
                Field { number: 7, value: FieldValue::Bytes(graph) } => {
                    has_graph = true;
                    header.graph(reader, graph)?;
                }
                _ => {}
            }
            Ok(())
        })?;
        if has_graph { Ok(header) } else { Err(HeaderError::NoGraph) }
    }

    fn graph<R: Read + Seek>(
        &mut self,
        reader: &mut Reader<R>,
        graph: Span,
    ) -> Result<(), ReadError> {
        reader.fields(graph, |reader, field| {
            if self.size() > MOST_NAMES {
                return Err(ReadError::TooManyFields);
            }
            match field {
                Field { number: 5, value: FieldValue::Bytes(span) } => {
                    self.initializer(reader, span)?
                }
                Field { number: 11, value: FieldValue::Bytes(span) } => {
                    let info = self.declared(reader, span)?;
                    self.inputs.push(info);
                }
                Field { number: 12, value: FieldValue::Bytes(span) } => {
                    let info = self.declared(reader, span)?;
                    self.outputs.push(info);
                }
                _ => {}
            }
            Ok(())
        })
    }

    fn size(&self) -> usize {
        self.inputs.len() + self.outputs.len() + self.initializers.len() + self.external.len()
    }

    /// Of weights only the name, and the file if they lie in one.
    fn initializer<R: Read + Seek>(
        &mut self,
        reader: &mut Reader<R>,
        weights: Span,
    ) -> Result<(), ReadError> {
        reader.fields(weights, |reader, field| {
            match field {
                Field { number: 8, value: FieldValue::Bytes(span) } => {
                    self.initializers.insert(reader.text(span)?);
                }
                Field { number: 13, value: FieldValue::Bytes(span) } => {
                    self.external.extend(location(reader, span)?);
                }
                _ => {}
            }
            Ok(())
        })
    }

    fn declared<R: Read + Seek>(
        &mut self,
        reader: &mut Reader<R>,
        value: Span,
    ) -> Result<TensorInfo, ReadError> {
        let mut declared = Declared::default();
        reader.fields(value, |reader, field| {
            match field {
                Field { number: 1, value: FieldValue::Bytes(span) } => {
                    declared.name = reader.text(span)?
                }
                Field { number: 2, value: FieldValue::Bytes(span) } => {
                    read_type(reader, span, &mut declared)?
                }
                _ => {}
            }
            Ok(())
        })?;
        let Declared { name, kind, dims } = declared;
        if dims.is_none() && matches!(kind, Some(ValueKind::Tensor(_))) {
            self.without_shape.insert(name.clone());
        }
        Ok(TensorInfo {
            c_name: CString::new(name.as_str()).map_err(|_| ReadError::Malformed)?,
            name,
            kind: kind.unwrap_or(ValueKind::Other),
            dims: Shape::from(dims.unwrap_or_default()),
        })
    }

    /// As ONNX Runtime gives it.
    pub fn into_signature(self) -> Signature {
        const OVERRIDABLE_SINCE: u64 = 4;
        let is_weight = |info: &TensorInfo| self.initializers.contains(&info.name);
        let (initializers, inputs): (Vec<_>, Vec<_>) = self.inputs.into_iter().partition(is_weight);
        let can_override = self.ir_version >= OVERRIDABLE_SINCE;
        let initializers = if can_override { initializers } else { Vec::new() };
        Signature { inputs, initializers, outputs: self.outputs }
    }

    /// The first file of weights that is not beside the model. Paths that lead elsewhere are the runtime's to refuse.
    pub fn missing_weights(&self, model: &Path) -> Option<&str> {
        let folder = model.parent()?;
        let is_missing = |name: &&String| {
            let path = PathBuf::from(name.as_str());
            let is_inside = path
                .components()
                .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
            is_inside && !folder.join(path).exists()
        };
        self.external.iter().find(is_missing).map(String::as_str)
    }
}

/// An entry of a weight's external data: its file.
fn location<R: Read + Seek>(
    reader: &mut Reader<R>,
    entry: Span,
) -> Result<Option<String>, ReadError> {
    let (mut key, mut value) = (String::new(), None);
    reader.fields(entry, |reader, field| {
        match field {
            Field { number: 1, value: FieldValue::Bytes(span) } => key = reader.text(span)?,
            Field { number: 2, value: FieldValue::Bytes(span) } => value = Some(reader.text(span)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(value.filter(|_| key == "location"))
}

fn read_type<R: Read + Seek>(
    reader: &mut Reader<R>,
    kind: Span,
    declared: &mut Declared,
) -> Result<(), ReadError> {
    reader.fields(kind, |reader, field| {
        let FieldValue::Bytes(span) = field.value else { return Ok(()) };
        match field.number {
            1 => read_tensor(reader, span, declared)?,
            4 => declared.kind = Some(ValueKind::Sequence),
            5 => declared.kind = Some(ValueKind::Map),
            8 | 9 => declared.kind = Some(ValueKind::Other),
            _ => {}
        }
        Ok(())
    })
}

fn read_tensor<R: Read + Seek>(
    reader: &mut Reader<R>,
    tensor: Span,
    declared: &mut Declared,
) -> Result<(), ReadError> {
    let mut element = 0;
    reader.fields(tensor, |reader, field| {
        match field {
            Field { number: 1, value: FieldValue::Number(number) } => {
                element = i32::try_from(number).unwrap_or_default();
            }
            Field { number: 2, value: FieldValue::Bytes(span) } => {
                declared.dims = Some(read_dims(reader, span)?);
            }
            _ => {}
        }
        Ok(())
    })?;
    let known = from_element_type(element).map(ValueKind::Tensor);
    declared.kind = Some(known.unwrap_or(ValueKind::OtherTensor(element)));
    Ok(())
}

/// -1 for what the model leaves open.
fn read_dims<R: Read + Seek>(reader: &mut Reader<R>, shape: Span) -> Result<Vec<i64>, ReadError> {
    let mut dims = Vec::new();
    reader.fields(shape, |reader, field| {
        let Field { number: 1, value: FieldValue::Bytes(span) } = field else { return Ok(()) };
        if dims.len() == MOST_DIMS {
            return Err(ReadError::Malformed);
        }
        let mut dim = -1;
        reader.fields(span, |_, field| {
            if let Field { number: 1, value: FieldValue::Number(size) } = field {
                dim = i64::try_from(size).unwrap_or(-1);
            }
            Ok(())
        })?;
        dims.push(dim);
        Ok(())
    })?;
    Ok(dims)
}

#[doc(hidden)]
pub fn read_header(bytes: &[u8]) -> bool {
    Header::read(io::Cursor::new(bytes), bytes.len() as u64).is_ok()
}
