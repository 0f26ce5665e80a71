//! The nodes of a `GraphDef` file: a graph that declares no inputs and outputs, but whose nodes may be either.

use std::{collections::BTreeSet, path::Path};

use galatea_protobuf_file::{FieldValue::Bytes, ReadError, Reader, Result};

/// Most nodes that are kept of one file.
const MOST_NODES: usize = 1_000_000;

#[derive(Debug, Default)]
pub(crate) struct Nodes {
    /// Nodes that take a value from outside.
    pub placeholders: BTreeSet<String>,
    /// All other nodes.
    pub others: BTreeSet<String>,
}

impl Nodes {
    /// Returns true if the node of a tensor's name, `node` or `node:index`, exists.
    pub fn has(&self, tensor: &str) -> bool {
        let node = tensor.rsplit_once(':').map_or(tensor, |(node, _)| node);
        self.placeholders.contains(node) || self.others.contains(node)
    }
}

pub(crate) fn nodes_of_file(path: &Path) -> Result<Nodes> {
    read_nodes(Reader::open(path)?)
}

pub(super) fn read_nodes(mut reader: Reader<'_>) -> Result<Nodes> {
    let mut nodes = Nodes::default();
    reader.all_fields(|reader, field, value| {
        let (1, Bytes(span)) = (field, value) else { return Ok(()) };
        if nodes.placeholders.len() + nodes.others.len() >= MOST_NODES {
            return Err(ReadError::TooManyFields);
        }
        let (mut name, mut kind) = (String::new(), String::new());
        reader.fields(span, |reader, field, value| {
            match (field, value) {
                (1, Bytes(span)) => name = reader.text(span)?,
                (2, Bytes(span)) => kind = reader.text(span)?,
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
