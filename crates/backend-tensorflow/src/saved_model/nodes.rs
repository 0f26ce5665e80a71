//! The nodes of a `GraphDef` file: a graph that declares no inputs and outputs, but whose nodes may be either.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{Read, Seek},
    path::Path,
};

use galatea_protobuf_file::{Field, FieldValue, ReadError, Reader, Span};

/// Nodes that are kept of one file.
const MOST_NODES: usize = 1_000_000;

/// Names of nodes.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    /// Those that take a value from outside.
    pub placeholders: BTreeSet<String>,
    /// All others.
    pub others: BTreeSet<String>,
}

impl Nodes {
    /// Whether there is the node of a tensor's name, `node` or `node:index`.
    pub fn has(&self, tensor: &str) -> bool {
        let node = tensor.rsplit_once(':').map_or(tensor, |(node, _)| node);
        self.placeholders.contains(node) || self.others.contains(node)
    }
}

pub(crate) fn nodes_of_file(path: &Path) -> Result<Nodes, ReadError> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    read_nodes(file, length)
}

pub(super) fn read_nodes(input: impl Read + Seek, length: u64) -> Result<Nodes, ReadError> {
    let mut nodes = Nodes::default();
    Reader::new(input).fields(Span { end: length }, |reader, field| {
        let Field { number: 1, value: FieldValue::Bytes(span) } = field else { return Ok(()) };
        if nodes.placeholders.len() + nodes.others.len() >= MOST_NODES {
            return Err(ReadError::TooManyFields);
        }
        let (mut name, mut kind) = (String::new(), String::new());
        reader.fields(span, |reader, field| {
            match field {
                Field { number: 1, value: FieldValue::Bytes(span) } => name = reader.text(span)?,
                Field { number: 2, value: FieldValue::Bytes(span) } => kind = reader.text(span)?,
                _ => {}
            }
            Ok(())
        })?;
        let list = match kind.starts_with("Placeholder") {
            true => &mut nodes.placeholders,
            false => &mut nodes.others,
        };
        list.insert(name);
        Ok(())
    })?;
    if nodes.placeholders.is_empty() && nodes.others.is_empty() {
        return Err(ReadError::Malformed);
    }
    Ok(nodes)
}
