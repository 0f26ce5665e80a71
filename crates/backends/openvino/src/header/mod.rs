//! Reads the declarations of an IR file (`model.xml`) without OpenVINO: its inputs, its outputs, their layouts, and the
//! bytes of weights it needs.

mod layer;
mod reader;

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

use self::{layer::Layer, reader::read_net};
use crate::openvino::TensorInfo;

/// Most bytes of a file that is read. Files of models with hundreds of layers have a few megabytes.
const MOST_BYTES: u64 = 64 << 20;

/// The reason why a file cannot be read as an IR model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeaderError {
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is larger than {} MiB", MOST_BYTES >> 20)]
    TooLarge,
    #[error("it is not a complete XML file: {0}")]
    Xml(String),
    #[error("its elements are nested more than {0} deep")]
    TooDeep(usize),
    #[error("it is not an OpenVINO IR file: it has no <net> with <layers>")]
    NoNet,
}

/// An input or output as the file declares it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Declared {
    /// Name, type and dimensions.
    pub info: TensorInfo,
    /// True if the layout says that the first dimension is the batch (`N`).
    pub has_batch: bool,
}

/// The declarations of a file.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Header {
    pub inputs: Vec<Declared>,
    pub outputs: Vec<Declared>,
    /// Bytes that the file of weights must have.
    pub weight_bytes: u64,
}

impl Header {
    pub fn of_file(path: &Path) -> Result<Self, HeaderError> {
        let file = File::open(path)?;
        if file.metadata()?.len() > MOST_BYTES {
            return Err(HeaderError::TooLarge);
        }
        Self::read(BufReader::new(file.take(MOST_BYTES)))
    }

    pub fn read(source: impl BufRead) -> Result<Self, HeaderError> {
        let mut parts = Parts::default();
        match read_net(source, &mut parts)? {
            true => Ok(parts.into_header()),
            false => Err(HeaderError::NoNet),
        }
    }

    /// Returns true if the layouts say that the model takes batches.
    pub fn can_batch(&self) -> bool {
        let mut all = self.inputs.iter().chain(&self.outputs);
        !self.inputs.is_empty() && all.all(|declared| declared.has_batch)
    }
}

/// Reads a header for the fuzz target: reading must end, whatever the bytes are.
pub fn read_header(bytes: &[u8]) -> Option<usize> {
    let header = Header::read(bytes).ok()?;
    Some(header.inputs.len() + header.outputs.len())
}

/// Parts of the layers that are kept until the edges are known.
#[derive(Default)]
struct Parts {
    inputs: Vec<Declared>,
    results: Vec<(String, Declared)>,
    result_ids: HashSet<String>,
    /// Names and layout of a layer's outputs, by layer and port.
    sources: HashMap<(String, String), (String, bool)>,
    /// Layer and port that feed a result.
    feeds: HashMap<String, (String, String)>,
    weight_bytes: u64,
}

impl Parts {
    fn add(&mut self, layer: Layer) {
        self.weight_bytes = self.weight_bytes.max(layer.weights_end());
        match layer.kind.as_str() {
            "Parameter" => self.inputs.push(layer.as_input()),
            "Result" => {
                let declared = layer.as_output();
                self.result_ids.insert(layer.id.clone());
                self.results.push((layer.id, declared));
                return;
            }
            _ => {}
        }
        for port in layer.outputs {
            if !port.names.is_empty() || port.has_batch {
                let name = layer::first_name(&port.names);
                self.sources.insert((layer.id.clone(), port.id), (name, port.has_batch));
            }
        }
    }

    fn into_header(self) -> Header {
        let Self { inputs, results, sources, feeds, weight_bytes, .. } = self;
        let complete = |(id, mut declared): (String, Declared)| {
            if let Some((name, has_batch)) = feeds.get(&id).and_then(|from| sources.get(from)) {
                declared.has_batch |= has_batch;
                if declared.info.name.is_empty() {
                    declared.info.name.clone_from(name);
                }
            }
            declared
        };
        Header { inputs, outputs: results.into_iter().map(complete).collect(), weight_bytes }
    }
}

#[cfg(test)]
mod tests;
