//! Reads the declarations of an ONNX file without ONNX Runtime: inputs, outputs, and the files of its weights. Nodes and
//! weights are skipped, so that only names cost time, even in a file of gigabytes.
//!
//! # Invariants
//! - Any file is read or refused. The size of the file bounds the kept data, and a number bounds the fields read.

use std::{
    collections::BTreeSet,
    ffi::CString,
    fs::File,
    io::{self, Read, Seek},
    path::{Component, Path, PathBuf},
};

use galatea_protobuf_file::{
    FieldValue::{Bytes, Number},
    ReadError, Reader, Result, Span,
};
use galatea_types::{DataType, Shape};

use crate::{
    ort::{TensorInfo, ValueKind, from_element_type},
    signature::Signature,
};

/// Most names that are kept of one file.
const MOST_NAMES: usize = 100_000;
const MOST_DIMS: usize = 64;
/// Bytes behind the first four of a model in the format ORT.
const ORT: &[u8] = b"ORTM";

#[derive(Debug, thiserror::Error)]
pub(crate) enum HeaderError {
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("it is not an ONNX model, or it is incomplete")]
    Malformed,
    #[error("it is in ONNX Runtime's own format (ORT), which only ONNX Runtime reads")]
    OrtFormat,
    #[error("it has no graph")]
    NoGraph,
    #[error("it has too many parts to inspect")]
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

/// The declarations of a file.
#[derive(Debug, Default)]
pub(crate) struct Header {
    pub inputs: Vec<TensorInfo>,
    pub outputs: Vec<TensorInfo>,
    /// Inputs and outputs without a shape. ONNX Runtime infers it if it can.
    pub without_shape: BTreeSet<String>,
    /// Names of listed weights.
    initializers: BTreeSet<String>,
    /// Files of weights beside the model.
    external: BTreeSet<String>,
    /// Version of the format.
    pub ir_version: u64,
    /// Version of the standard's own operators; 0: unknown.
    pub opset: u64,
}

#[derive(Default)]
struct Declared {
    name: String,
    kind: Option<ValueKind>,
    dims: Option<Vec<i64>>,
}

impl Header {
    pub fn of_file(path: &Path) -> Result<Self, HeaderError> {
        let mut file = File::open(path)?;
        let mut start = [0; 8];
        if file.metadata()?.len() >= 8 {
            file.read_exact(&mut start)?;
            file.rewind()?;
        }
        if start.ends_with(ORT) {
            return Err(HeaderError::OrtFormat);
        }
        Self::read(Reader::of_file(file)?)
    }

    pub fn read(mut reader: Reader<'_>) -> Result<Self, HeaderError> {
        let mut header = Self::default();
        let mut has_graph = false;
        reader.all_fields(|reader, field, value| {
            match (field, value) {
                (1, Number(version)) => header.ir_version = version,
                (8, Bytes(span)) => {
                    header.opset = header.opset.max(standard_opset(reader, span)?);
                }
                (7, Bytes(graph)) => {
                    has_graph = true;
                    header.graph(reader, graph)?;
                }
                _ => {}
            }
            Ok(())
        })?;
        if has_graph { Ok(header) } else { Err(HeaderError::NoGraph) }
    }

    fn graph(&mut self, reader: &mut Reader<'_>, graph: Span) -> Result<()> {
        reader.fields(graph, |reader, field, value| {
            if self.size() > MOST_NAMES {
                return Err(ReadError::TooManyFields);
            }
            match (field, value) {
                (5, Bytes(span)) => self.initializer(reader, span)?,
                (11, Bytes(span)) => {
                    let info = self.declared(reader, span)?;
                    self.inputs.push(info);
                }
                (12, Bytes(span)) => {
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

    /// Reads of a weight only the name, and its file if it has one.
    fn initializer(&mut self, reader: &mut Reader<'_>, weights: Span) -> Result<()> {
        reader.fields(weights, |reader, field, value| {
            match (field, value) {
                (8, Bytes(span)) => {
                    self.initializers.insert(reader.text(span)?);
                }
                (13, Bytes(span)) => {
                    self.external.extend(location(reader, span)?);
                }
                _ => {}
            }
            Ok(())
        })
    }

    fn declared(&mut self, reader: &mut Reader<'_>, value: Span) -> Result<TensorInfo> {
        let mut declared = Declared::default();
        reader.fields(value, |reader, field, value| {
            match (field, value) {
                (1, Bytes(span)) => declared.name = reader.text(span)?,
                (2, Bytes(span)) => read_type(reader, span, &mut declared)?,
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
            dims: dims.map(Shape::from),
        })
    }

    /// Returns the signature in ONNX Runtime's form.
    pub fn into_signature(self) -> Signature {
        const OVERRIDABLE_SINCE: u64 = 4;
        let is_weight = |info: &TensorInfo| self.initializers.contains(&info.name);
        let (initializers, inputs): (Vec<_>, Vec<_>) = self.inputs.into_iter().partition(is_weight);
        let can_override = self.ir_version >= OVERRIDABLE_SINCE;
        let initializers = if can_override { initializers } else { Vec::new() };
        Signature { inputs, initializers, outputs: self.outputs }
    }

    /// Marks tensors with an open number of dimensions, as the file declares them. The library reports those like scalars.
    pub fn open_ranks(signature: &mut Signature, path: &Path) {
        let has_none = |info: &TensorInfo| info.dims.as_ref().is_some_and(|dims| dims.is_empty());
        if !signature.inputs.iter().chain(&signature.outputs).any(has_none) {
            return;
        }
        let Ok(header) = Self::of_file(path) else { return };
        let all = signature.inputs.iter_mut().chain(&mut signature.outputs);
        for info in all.filter(|info| has_none(info) && header.without_shape.contains(&info.name)) {
            info.dims = None;
        }
    }

    /// Returns the first file of weights missing beside the model. The runtime refuses paths that lead elsewhere.
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

/// Returns the version of a set of operators if it is the standard's own; otherwise 0.
fn standard_opset(reader: &mut Reader<'_>, set: Span) -> Result<u64> {
    let (mut is_standard, mut number) = (true, 0);
    reader.fields(set, |reader, field, value| {
        match (field, value) {
            (1, Bytes(span)) => {
                is_standard = matches!(reader.text(span)?.as_str(), "" | "ai.onnx");
            }
            (2, Number(version)) => number = version,
            _ => {}
        }
        Ok(())
    })?;
    Ok(if is_standard { number } else { 0 })
}

/// Returns the file in an entry of a weight's external data.
fn location(reader: &mut Reader<'_>, entry: Span) -> Result<Option<String>> {
    let (mut key, mut file) = (String::new(), None);
    reader.fields(entry, |reader, field, value| {
        match (field, value) {
            (1, Bytes(span)) => key = reader.text(span)?,
            (2, Bytes(span)) => file = Some(reader.text(span)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(file.filter(|_| key == "location"))
}

fn read_type(reader: &mut Reader<'_>, kind: Span, declared: &mut Declared) -> Result<()> {
    reader.fields(kind, |reader, field, value| {
        let Bytes(span) = value else { return Ok(()) };
        match field {
            1 => read_tensor(reader, span, declared)?,
            4 => {
                let kind = read_sequence(reader, span)?;
                if kind == ValueKind::Maps {
                    declared.dims = Some(vec![-1, -1]);
                }
                declared.kind = Some(kind);
            }
            5 => declared.kind = Some(ValueKind::Map),
            8 | 9 => declared.kind = Some(ValueKind::Other),
            _ => {}
        }
        Ok(())
    })
}

/// Reads the one element type of a sequence: a map to FP32, or something else.
fn read_sequence(reader: &mut Reader<'_>, sequence: Span) -> Result<ValueKind> {
    let mut kind = ValueKind::Sequence;
    // Field 1 of a sequence is a type, field 5 of that is a map, and field 2 of that is the type of the values.
    reader.fields(sequence, |reader, field, value| {
        let (1, Bytes(element)) = (field, value) else { return Ok(()) };
        reader.fields(element, |reader, field, value| {
            let (5, Bytes(map)) = (field, value) else { return Ok(()) };
            reader.fields(map, |reader, field, value| {
                let (2, Bytes(values)) = (field, value) else {
                    return Ok(());
                };
                let mut declared = Declared::default();
                reader.fields(values, |reader, field, value| match (field, value) {
                    (1, Bytes(tensor)) => read_tensor(reader, tensor, &mut declared),
                    _ => Ok(()),
                })?;
                if declared.kind == Some(ValueKind::Tensor(DataType::Fp32)) {
                    kind = ValueKind::Maps;
                }
                Ok(())
            })
        })
    })?;
    Ok(kind)
}

fn read_tensor(reader: &mut Reader<'_>, tensor: Span, declared: &mut Declared) -> Result<()> {
    let mut element = 0;
    reader.fields(tensor, |reader, field, value| {
        match (field, value) {
            (1, Number(number)) => {
                element = i32::try_from(number).unwrap_or_default();
            }
            (2, Bytes(span)) => {
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

/// Reads dimensions. -1 stands for one that the model leaves open.
fn read_dims(reader: &mut Reader<'_>, shape: Span) -> Result<Vec<i64>> {
    let mut dims = Vec::new();
    reader.fields(shape, |reader, field, value| {
        let (1, Bytes(span)) = (field, value) else { return Ok(()) };
        if dims.len() == MOST_DIMS {
            return Err(ReadError::Malformed);
        }
        let mut dim = -1;
        reader.fields(span, |_, field, value| {
            if let (1, Number(size)) = (field, value) {
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
    Header::read(Reader::of_bytes(bytes)).is_ok()
}
