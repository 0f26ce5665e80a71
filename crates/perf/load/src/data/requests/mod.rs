//! The requests of a run.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use galatea_client::{
    InferTemplate, InputData, InputTensor, Protocol, RegionSlice, RequestedOutput, TensorFormat,
};
use galatea_perf_types::{
    console::Console,
    failure::Result,
    model::{InputInfo, ModelInfo},
    requests::{ExpectedOutput, RequestSource},
    settings::{DataSettings, DataSource, Settings},
    summary::TensorBytes,
};
use galatea_types::ParameterValue;

use super::{
    batch::{check_batches, join, known_byte_size, tensor},
    dataset::{Dataset, Step, bad_data, bad_requests},
    directory::read_directory,
    generate::generate,
    json::JsonReader,
};

/// Requests are made at their first use and kept, unless all of them together would take more bytes than this.
const KEPT_BYTES: usize = 1 << 30;

/// All requests of a run, one for each stream and step.
pub struct Requests {
    pub(super) model: ModelInfo,
    pub(super) data: Dataset,
    pub(super) batch_size: usize,
    parameters: Vec<(String, ParameterValue)>,
    input_format: TensorFormat,
    output_format: TensorFormat,
    slices: Option<Slices>,
    made: Vec<Vec<MadeRequests>>,
    keeps_templates: bool,
}

/// The region part of each tensor.
#[derive(Clone, Default)]
pub(super) struct Slices {
    /// Parts by input, stream and step.
    pub inputs: HashMap<(usize, usize, usize), RegionSlice>,
    pub outputs: HashMap<String, RegionSlice>,
}

#[derive(Default)]
struct MadeRequests {
    template: OnceLock<Arc<InferTemplate>>,
    expected: OnceLock<Vec<ExpectedOutput>>,
}

impl Requests {
    /// Reads or generates the data. Reports the amount read on `console`.
    pub fn new(settings: &Settings, model: &ModelInfo, console: &mut dyn Console) -> Result<Self> {
        let data = read_data(&settings.data, model, console)?;
        let batch_size = usize::try_from(settings.batch_size).unwrap_or(usize::MAX).max(1);
        check_batches(&data, model, batch_size).map_err(bad_requests)?;
        let steps = |stream: &Vec<Step>| stream.iter().map(|_| MadeRequests::default()).collect();
        Ok(Self {
            made: data.streams.iter().map(steps).collect(),
            keeps_templates: kept_bytes(&data, batch_size) <= KEPT_BYTES,
            model: model.clone(),
            data,
            batch_size,
            parameters: parameters(settings),
            input_format: settings.data.input_format,
            output_format: settings.data.output_format,
            slices: None,
        })
    }

    /// Puts the tensors into regions.
    pub(super) fn use_slices(&mut self, slices: &Slices, console: &mut dyn Console) {
        if self.data.streams.iter().flatten().any(|step| !step.expected.is_empty()) {
            console.err(
                "WARNING: 'validation_data' is not checked, as the outputs lie in shared memory.\n",
            );
        }
        self.slices = Some(slices.clone());
        self.made.iter_mut().flatten().for_each(|made| *made = MadeRequests::default());
    }

    fn make(&self, stream: usize, step: usize) -> Arc<InferTemplate> {
        let inputs = self.model.inputs.iter().enumerate();
        let region = |name: &str| self.slices.as_ref()?.outputs.get(name).cloned();
        let outputs = self.model.outputs.iter().map(|output| RequestedOutput {
            name: output.name.clone(),
            region: region(&output.name),
            classes: 0,
        });
        Arc::new(InferTemplate {
            model: self.model.name.clone(),
            version: self.model.version.clone(),
            inputs: inputs.filter_map(|(index, _)| self.input(index, stream, step)).collect(),
            outputs: outputs.collect(),
            parameters: self.parameters.clone(),
            input_format: self.input_format,
            output_format: self.output_format,
        })
    }

    /// Returns an input; `None` if it is optional and left out.
    fn input(&self, index: usize, stream: usize, step: usize) -> Option<InputTensor> {
        let info = self.model.inputs.get(index)?;
        let first = tensor(self.data.step(stream, step)?, index)?;
        let slice = self.slices.as_ref().and_then(|s| s.inputs.get(&(index, stream, step)));
        let data = match slice {
            Some(slice) => InputData::Region(slice.clone()),
            None => InputData::Inline(self.input_bytes(index, stream, step)),
        };
        Some(InputTensor {
            name: info.name.clone(),
            data_type: info.data_type,
            shape: self.request_shape(info, &first.shape),
            data,
        })
    }

    /// Returns the expected outputs, joined over the batch like the server's response; empty if nothing is expected.
    fn expected_outputs(&self, stream: usize, step: usize) -> Vec<ExpectedOutput> {
        let output = |index: usize, name: &str| {
            let steps = self.data.batch(stream, step, self.batch_size);
            // Compared only if every step of the batch has an expectation.
            let pieces: Option<Vec<_>> =
                steps.map(|step| step.expected.get(index).and_then(Option::as_ref)).collect();
            Some(ExpectedOutput { name: name.to_owned(), data: join(pieces?.into_iter()) })
        };
        let outputs = self.model.outputs.iter().enumerate();
        outputs.filter_map(|(index, info)| output(index, &info.name)).collect()
    }

    /// Returns the data of an input: that of each step of the batch.
    pub(super) fn input_bytes(&self, index: usize, stream: usize, step: usize) -> Bytes {
        join(self.input_pieces(index, stream, step).into_iter())
    }

    /// Returns the length of [`Requests::input_bytes`].
    pub(super) fn input_byte_size(&self, index: usize, stream: usize, step: usize) -> usize {
        let lengths = self.input_pieces(index, stream, step).into_iter().map(Bytes::len);
        lengths.fold(0, usize::saturating_add)
    }

    fn input_pieces(&self, index: usize, stream: usize, step: usize) -> Vec<&Bytes> {
        let is_shared = self.model.inputs.get(index).is_some_and(|input| input.is_shape_tensor);
        let size = if is_shared { 1 } else { self.batch_size };
        let steps = self.data.batch(stream, step, size);
        steps.filter_map(|step| Some(&tensor(step, index)?.data)).collect()
    }

    /// Counts the bytes of tensors in a request and in a response. Steps of the data count alike, however often they are sent.
    pub fn tensor_bytes(&self) -> TensorBytes {
        let streams = self.data.streams.iter().enumerate();
        let steps = streams.flat_map(|(stream, steps)| (0..steps.len()).map(move |i| (stream, i)));
        let steps: Vec<_> = steps.collect();
        let of_step = |&(stream, step): &(usize, usize)| -> u64 {
            let inputs = 0..self.model.inputs.len();
            inputs.map(|index| self.input_byte_size(index, stream, step) as u64).sum()
        };
        let inputs: u64 = steps.iter().map(of_step).fold(0, u64::saturating_add);
        let sizes = self.model.outputs.iter().map(known_byte_size);
        let outputs = sizes.flatten().fold(0, usize::saturating_add);
        let unknown = self.model.outputs.iter().filter(|o| known_byte_size(o).is_none());
        TensorBytes {
            inputs_per_request: inputs.checked_div(steps.len() as u64).unwrap_or(0),
            outputs_per_response: outputs.saturating_mul(self.batch_size) as u64,
            uncounted_outputs: unknown.map(|output| output.name.clone()).collect(),
        }
    }

    fn request_shape(&self, input: &InputInfo, shape: &[i64]) -> Vec<i64> {
        let is_batched = self.model.max_batch_size > 0 && !input.is_shape_tensor;
        let batch = is_batched.then(|| i64::try_from(self.batch_size).unwrap_or(i64::MAX));
        batch.into_iter().chain(shape.iter().copied()).collect()
    }

    fn made(&self, stream: usize, step: usize) -> Option<&MadeRequests> {
        self.made.get(stream)?.get(step)
    }
}

impl RequestSource for Requests {
    fn stream_count(&self) -> usize {
        self.data.stream_count()
    }

    fn step_count(&self, stream: usize) -> usize {
        self.data.step_count(stream)
    }

    fn template(&self, stream: usize, step: usize) -> Arc<InferTemplate> {
        let make = || self.make(stream, step);
        match self.made(stream, step) {
            Some(made) if self.keeps_templates => made.template.get_or_init(make).clone(),
            _ => make(),
        }
    }

    fn expected(&self, stream: usize, step: usize) -> Option<&[ExpectedOutput]> {
        if self.slices.is_some() || self.data.step(stream, step)?.expected.is_empty() {
            return None;
        }
        let expected = &self.made(stream, step)?.expected;
        let expected = expected.get_or_init(|| self.expected_outputs(stream, step));
        (!expected.is_empty()).then_some(expected)
    }

    fn is_user_data(&self) -> bool {
        self.data.is_user_data
    }
}

fn read_data(
    settings: &DataSettings,
    model: &ModelInfo,
    console: &mut dyn Console,
) -> Result<Dataset> {
    let step = match &settings.source {
        DataSource::Zero => generate(model, settings, false).map_err(bad_data)?,
        DataSource::Random => generate(model, settings, true).map_err(bad_data)?,
        DataSource::Files(files) => match files.first().filter(|first| first.is_dir()) {
            Some(directory) => read_directory(model, directory).map_err(bad_data)?,
            None => {
                let mut reader = JsonReader::new(model);
                files.iter().try_for_each(|file| reader.read_file(file))?;
                let data = reader.finish()?;
                console.out(&data_line(&data));
                return Ok(data);
            }
        },
    };
    Ok(Dataset::of_one(step))
}

fn data_line(data: &Dataset) -> String {
    let streams = data.stream_count();
    let steps = match streams {
        1 => format!(" with {} step/steps", data.step_count(0)),
        _ => String::new(),
    };
    format!(" Successfully read data for {streams} stream/streams{steps}.\n")
}

/// Returns the parameters. Every gRPC request to a decoupled model asks for the final-response marker.
fn parameters(settings: &Settings) -> Vec<(String, ParameterValue)> {
    let mut parameters = settings.request_parameters.clone();
    if settings.protocol == Protocol::Grpc {
        let name = "triton_enable_empty_final_response".to_owned();
        parameters.push((name, ParameterValue::Bool(true)));
    }
    parameters
}

/// Returns the bytes that templates hold besides the data itself: without batching they share it.
fn kept_bytes(data: &Dataset, batch_size: usize) -> usize {
    if batch_size == 1 {
        return 0;
    }
    let tensors = data.streams.iter().flatten().flat_map(|step| &step.inputs).flatten();
    let single = tensors.map(|tensor| tensor.data.len()).fold(0, usize::saturating_add);
    single.saturating_mul(batch_size)
}

#[cfg(test)]
mod tests;
