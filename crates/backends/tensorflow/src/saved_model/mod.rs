//! Reads the declarations of a `saved_model.pb` without TensorFlow: its graphs by their tags, and the signatures of each.
//! Nodes and weights are skipped.
//!
//! # Invariants
//! - Any file is read or refused. The size of the file bounds the kept data, and a number bounds the fields read.

mod choose;
mod nodes;
mod variables;

use std::path::Path;

use galatea_protobuf_file::{
    FieldValue::{Bytes, Number},
    ReadError, Reader, Result, Span,
};
use galatea_types::Shape;

pub(crate) use self::{
    nodes::{Nodes, nodes_of_file},
    variables::restores_variables,
};
use crate::{
    signature::{Signature, TensorInfo, ValueKind},
    tensorflow::data_type_of,
};

/// Most signatures, tensors and tags that are kept of one file.
const MOST_NAMES: usize = 100_000;
const MOST_DIMS: usize = 64;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SavedModelError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("it is not a SavedModel: it has no graph")]
    NoGraph,
}

/// The declarations of a file.
#[derive(Debug, Default)]
pub(crate) struct SavedModel {
    graphs: Vec<MetaGraph>,
    names: usize,
}

/// A graph with its signatures.
#[derive(Debug, Default)]
struct MetaGraph {
    tags: Vec<String>,
    signatures: Vec<Signature>,
}

impl SavedModel {
    pub fn of_file(path: &Path) -> Result<Self, SavedModelError> {
        Self::read(Reader::open(path)?)
    }

    pub fn read(mut reader: Reader<'_>) -> Result<Self, SavedModelError> {
        let mut model = Self::default();
        reader.all_fields(|reader, field, value| {
            if let (2, Bytes(span)) = (field, value) {
                let graph = model.graph(reader, span)?;
                model.graphs.push(graph);
            }
            Ok(())
        })?;
        if model.graphs.is_empty() { Err(SavedModelError::NoGraph) } else { Ok(model) }
    }

    fn graph(&mut self, reader: &mut Reader<'_>, graph: Span) -> Result<MetaGraph> {
        let mut read = MetaGraph::default();
        self.count()?;
        reader.fields(graph, |reader, field, value| {
            match (field, value) {
                (1, Bytes(span)) => self.tags(reader, span, &mut read)?,
                (5, Bytes(span)) => {
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

    fn count(&mut self) -> Result<()> {
        self.names += 1;
        if self.names > MOST_NAMES { Err(ReadError::TooManyFields) } else { Ok(()) }
    }

    fn tags(&mut self, reader: &mut Reader<'_>, meta: Span, graph: &mut MetaGraph) -> Result<()> {
        reader.fields(meta, |reader, field, value| {
            if let (4, Bytes(span)) = (field, value) {
                self.count()?;
                graph.tags.push(reader.text(span)?);
            }
            Ok(())
        })
    }

    /// Reads an entry of the map of signatures.
    fn signature(&mut self, reader: &mut Reader<'_>, entry: Span) -> Result<Signature> {
        let mut signature = Signature::default();
        reader.fields(entry, |reader, field, value| {
            match (field, value) {
                (1, Bytes(span)) => signature.name = reader.text(span)?,
                (2, Bytes(span)) => {
                    reader.fields(span, |reader, field, value| {
                        let Bytes(span) = value else { return Ok(()) };
                        let list = match field {
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

/// Reads an entry of the map of inputs or outputs.
fn tensor(reader: &mut Reader<'_>, entry: Span) -> Result<TensorInfo> {
    let mut name = String::new();
    let mut info = Info::default();
    reader.fields(entry, |reader, field, value| {
        match (field, value) {
            (1, Bytes(span)) => name = reader.text(span)?,
            (2, Bytes(span)) => info = Info::read(reader, span)?,
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
    fn read(reader: &mut Reader<'_>, span: Span) -> Result<Self> {
        let mut info = Self::default();
        reader.fields(span, |reader, field, value| {
            match (field, value) {
                (1, Bytes(span)) => info.point = reader.text(span)?,
                (2, Number(number)) => {
                    info.number = i32::try_from(number).unwrap_or_default();
                }
                (3, Bytes(span)) => info.dims = dims(reader, span)?,
                (4 | 5, Bytes(_)) => info.is_composite = true,
                _ => {}
            }
            Ok(())
        })?;
        Ok(info)
    }
}

/// Reads dimensions: -1 for open ones, `None` if the rank is unknown.
fn dims(reader: &mut Reader<'_>, shape: Span) -> Result<Option<Vec<i64>>, ReadError> {
    let (mut dims, mut is_known) = (Vec::new(), true);
    reader.fields(shape, |reader, field, value| {
        match (field, value) {
            (2, Bytes(span)) => {
                if dims.len() == MOST_DIMS {
                    return Err(ReadError::Malformed);
                }
                // The file does not contain a size of 0.
                let mut dim = 0;
                reader.fields(span, |_, field, value| {
                    if let (1, Number(size)) = (field, value) {
                        dim = i64::try_from(size).unwrap_or(-1);
                    }
                    Ok(())
                })?;
                dims.push(dim);
            }
            (3, Number(unknown)) => is_known = unknown == 0,
            _ => {}
        }
        Ok(())
    })?;
    Ok(is_known.then_some(dims))
}

#[doc(hidden)]
pub fn read_saved_model(bytes: &[u8]) -> bool {
    let nodes = nodes::read_nodes(Reader::of_bytes(bytes)).is_ok();
    let _ = variables::read_variables(Reader::of_bytes(bytes));
    SavedModel::read(Reader::of_bytes(bytes)).is_ok() || nodes
}
