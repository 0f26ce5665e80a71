//! The initial states of sequences: zeros, or a file in the model's folder `initial_state`.

use std::path::Path;

use galatea_config::{Diagnostic, FieldPath, InitialData, ModelConfig, Scheduling, SequenceState};
use galatea_types::{Buffer, Code, DataType, Error, Result, Shape, Tensor};

use crate::model_file::{DataFile, Part, zeroed};

/// The largest number of bytes of one initial state, which all sequences share.
const MAX_BYTES: usize = 1 << 30;

const FOLDER: &str = "initial_state";

/// Returns the initial value of each state, in the order of the configuration, with a batch dimension if the model has one.
///
/// # Errors
/// For a state that is too large, and a file that cannot be read or is too short.
pub(crate) fn read(config: &ModelConfig, model_dir: &Path) -> Result<Vec<Tensor>> {
    let Scheduling::Sequence(batching) = config.scheduling() else { return Ok(Vec::new()) };
    let states = batching.states.iter().enumerate();
    states.map(|(index, state)| FirstValue { config, model_dir, index, state }.tensor()).collect()
}

struct FirstValue<'a> {
    config: &'a ModelConfig,
    model_dir: &'a Path,
    /// The index of the state in the configuration.
    index: usize,
    state: &'a SequenceState,
}

impl FirstValue<'_> {
    fn tensor(&self) -> Result<Tensor> {
        let dims = match &self.state.initial {
            Some(initial) => initial.dims.clone(),
            // A variable size is 1 at first.
            None => self.state.dims.iter().map(|&dim| dim.max(1)).collect(),
        };
        let element = self.state.data_type.byte_size().unwrap_or(size_of::<u32>());
        let size = dims.element_count().and_then(|count| count.checked_mul(element));
        let size = size.filter(|&size| size <= MAX_BYTES).ok_or_else(|| self.too_large(&dims))?;
        let data = match self.state.initial.as_ref().map(|initial| &initial.data) {
            Some(InitialData::File(file)) => self.file(file, size, &dims)?,
            Some(InitialData::Zeros) | None => {
                zeroed(size).map_err(|_| self.too_large(&dims))?.freeze()
            }
        };
        let shape = if self.config.has_batching() { dims.with_leading(1) } else { dims };
        Ok(Tensor::new(self.state.input.clone(), self.state.data_type, shape, data))
    }

    /// Returns the first bytes of the file, or all of it for strings.
    fn file(&self, name: &str, size: usize, dims: &Shape) -> Result<Buffer> {
        let missing = "put the file there, or write `zero_data: true` in its place";
        let model = self.config.name();
        let file = DataFile { model, model_dir: self.model_dir, folder: FOLDER, name, missing };
        let is_text = self.state.data_type == DataType::Bytes;
        let part = if is_text { Part::AllUpTo(MAX_BYTES) } else { Part::First(size) };
        file.read(part)?.map_err(|length| match is_text {
            true => self.too_large(dims),
            false => self.too_short(name, size, length),
        })
    }

    fn too_large(&self, dims: &Shape) -> Error {
        let (input, model) = (&self.state.input, self.config.name());
        self.wrong(
            format!(
                "state '{input}' of model '{model}' is too large with its shape {dims} at the beginning of a \
                 sequence: the limit is {MAX_BYTES} bytes"
            ),
            "write smaller `dims`",
        )
    }

    /// Returns the error of a file that is too short, in Triton's words.
    fn too_short(&self, file: &str, size: usize, length: u64) -> Error {
        self.wrong(
            format!(
                "initial_state setting expects {size} bytes, but the data provided from {file}only has {length} \
                 bytes."
            ),
            "change `dims`, or the file",
        )
    }

    fn wrong(&self, text: String, advice: &str) -> Error {
        let field = FieldPath::from("sequence_batching.state").index(self.index);
        let found = Diagnostic::error(text).about(field).with_advice(advice.to_owned());
        found.into_unplaced_error(Code::InvalidArg)
    }
}
