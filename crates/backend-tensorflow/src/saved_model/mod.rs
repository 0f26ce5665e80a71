//! What a `saved_model.pb` declares, read from the file itself, without TensorFlow: its graphs by their tags, and the
//! signatures of each. Nodes and weights are skipped.
//!
//! # Invariants
//! - Any file is read or refused: what is kept is bounded by the size of the file, and what is looked at by a number.

mod choose;
mod nodes;
mod variables;

use std::{
    fs::File,
    io::{Read, Seek},
    path::Path,
};

use galatea_protobuf_file::{Field, FieldValue, ReadError, Reader, Span};
use galatea_types::Shape;

pub(crate) use self::{
    nodes::{Nodes, nodes_of_file},
    variables::restores_variables,
};
use crate::{
    signature::{Signature, TensorInfo, ValueKind},
    tensorflow::data_type_of,
};

/// Signatures, tensors and tags that are kept of one file.
const MOST_NAMES: usize = 100_000;
const MOST_DIMS: usize = 64;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SavedModelError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("it is no SavedModel: there is no graph in it")]
    NoGraph,
}

/// What a file declares.
#[derive(Debug, Default)]
pub(crate) struct SavedModel {
    graphs: Vec<MetaGraph>,
    names: usize,
}

/// A graph and what it can be called with.
#[derive(Debug, Default)]
struct MetaGraph {
    tags: Vec<String>,
    signatures: Vec<Signature>,
}

impl SavedModel {
    pub fn of_file(path: &Path) -> Result<Self, SavedModelError> {
        let file = File::open(path).map_err(ReadError::from)?;
        let length = file.metadata().map_err(ReadError::from)?.len();
        Self::read(file, length)
    }

    /// Of the first `length` bytes.
    pub fn read(input: impl Read + Seek, length: u64) -> Result<Self, SavedModelError> {
        let mut model = Self::default();
        Reader::new(input).fields(Span { end: length }, |reader, field| {
            if let Field { number: 2, value: FieldValue::Bytes(span) } = field {
                let graph = model.graph(reader, span)?;
                model.graphs.push(graph);
            }
            Ok(())
        })?;
        if model.graphs.is_empty() { Err(SavedModelError::NoGraph) } else { Ok(model) }
    }

    fn graph<R: Read + Seek>(
        &mut self,
        reader: &mut Reader<R>,
        graph: Span,
    ) -> Result<MetaGraph, ReadError> {
        let mut read = MetaGraph::default();
        self.count()?;
        reader.fields(graph, |reader, field| {
            match field {
                Field { number: 1, value: FieldValue::Bytes(span) } => {
                    self.tags(reader, span, &mut read)?
                }
                Field { number: 5, value: FieldValue::Bytes(span) } => {
                    self.count()?;
                    let signature = self.signature(reader, span)?;
                    read.signatures.push(signature);
                }
                _ => {}
            }
            Ok(())
        })?;
        read.signatures.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(read)
    }

    fn count(&mut self) -> Result<(), ReadError> {
        self.names += 1;
        if self.names > MOST_NAMES { Err(ReadError::TooManyFields) } else { Ok(()) }
    }

    fn tags<R: Read + Seek>(
        &mut self,
        reader: &mut Reader<R>,
        meta: Span,
        graph: &mut MetaGraph,
    ) -> Result<(), ReadError> {
        reader.fields(meta, |reader, field| {
            if let Field { number: 4, value: FieldValue::Bytes(span) } = field {
                self.count()?;
                graph.tags.push(reader.text(span)?);
            }
            Ok(())
        })
    }

    /// An entry of the map of signatures.
    fn signature<R: Read + Seek>(
        &mut self,
        reader: &mut Reader<R>,
        entry: Span,
    ) -> Result<Signature, ReadError> {
        let mut signature = Signature::default();
        reader.fields(entry, |reader, field| {
            match field {
                Field { number: 1, value: FieldValue::Bytes(span) } => {
                    signature.name = reader.text(span)?
                }
                Field { number: 2, value: FieldValue::Bytes(span) } => {
                    reader.fields(span, |reader, field| {
                        let FieldValue::Bytes(span) = field.value else { return Ok(()) };
                        let list = match field.number {
                            1 => &mut signature.inputs,
                            2 => &mut signature.outputs,
                            _ => return Ok(()),
                        };
                        self.count()?;
                        list.push(tensor(reader, span)?);
                        Ok(())
                    })?;
                }
                _ => {}
            }
            Ok(())
        })?;
        signature.inputs.sort_by(|a, b| a.name.cmp(&b.name));
        signature.outputs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(signature)
    }
}

/// An entry of the map of inputs or outputs.
fn tensor<R: Read + Seek>(reader: &mut Reader<R>, entry: Span) -> Result<TensorInfo, ReadError> {
    let mut name = String::new();
    let mut info = Info::default();
    reader.fields(entry, |reader, field| {
        match field {
            Field { number: 1, value: FieldValue::Bytes(span) } => name = reader.text(span)?,
            Field { number: 2, value: FieldValue::Bytes(span) } => info = Info::read(reader, span)?,
            _ => {}
        }
        Ok(())
    })?;
    let kind = match data_type_of(info.number) {
        _ if info.is_composite => ValueKind::Composite,
        Some(data_type) => ValueKind::Tensor(data_type),
        None => ValueKind::OtherTensor(info.number),
    };
    Ok(TensorInfo { name, point: info.point, kind, dims: info.dims.map(Shape::from) })
}

/// A `TensorInfo` of the file.
#[derive(Default)]
struct Info {
    point: String,
    is_composite: bool,
    number: i32,
    dims: Option<Vec<i64>>,
}

impl Info {
    fn read<R: Read + Seek>(reader: &mut Reader<R>, span: Span) -> Result<Self, ReadError> {
        let mut info = Self::default();
        reader.fields(span, |reader, field| {
            match field {
                Field { number: 1, value: FieldValue::Bytes(span) } => {
                    info.point = reader.text(span)?
                }
                Field { number: 2, value: FieldValue::Number(number) } => {
                    info.number = i32::try_from(number).unwrap_or_default();
                }
                Field { number: 3, value: FieldValue::Bytes(span) } => {
                    info.dims = dims(reader, span)?
                }
                Field { number: 4 | 5, value: FieldValue::Bytes(_) } => info.is_composite = true,
                _ => {}
            }
            Ok(())
        })?;
        Ok(info)
    }
}

/// -1 for what the model leaves open; `None` where the rank is unknown.
fn dims<R: Read + Seek>(
    reader: &mut Reader<R>,
    shape: Span,
) -> Result<Option<Vec<i64>>, ReadError> {
    let (mut dims, mut is_known) = (Vec::new(), true);
    reader.fields(shape, |reader, field| {
        match field {
            Field { number: 2, value: FieldValue::Bytes(span) } => {
                if dims.len() == MOST_DIMS {
                    return Err(ReadError::Malformed);
                }
                // A size of 0 is not written.
                let mut dim = 0;
                reader.fields(span, |_, field| {
                    if let Field { number: 1, value: FieldValue::Number(size) } = field {
                        dim = i64::try_from(size).unwrap_or(-1);
                    }
                    Ok(())
                })?;
                dims.push(dim);
            }
            Field { number: 3, value: FieldValue::Number(unknown) } => is_known = unknown == 0,
            _ => {}
        }
        Ok(())
    })?;
    Ok(is_known.then_some(dims))
}

#[doc(hidden)]
pub fn read_saved_model(bytes: &[u8]) -> bool {
    let length = bytes.len() as u64;
    let nodes = nodes::read_nodes(std::io::Cursor::new(bytes), length).is_ok();
    let _ = variables::read_variables(std::io::Cursor::new(bytes), length);
    SavedModel::read(std::io::Cursor::new(bytes), length).is_ok() || nodes
}
