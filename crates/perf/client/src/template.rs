//! A description of an inference request, before any wire form.

use bytes::Bytes;
use galatea_types::{DataType, ParameterValue};

/// The encoding of tensors over HTTP; gRPC always carries them raw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TensorFormat {
    /// The binary tensor extension: raw bytes after the JSON header.
    #[default]
    Binary,
    /// Numbers in the JSON document.
    Json,
}

/// An inference request that will be sent many times.
#[derive(Clone, Debug, Default)]
pub struct InferTemplate {
    /// The model's name.
    pub model: String,
    /// The version; empty: the server chooses.
    pub version: String,
    /// The inputs, in the order of the request.
    pub inputs: Vec<InputTensor>,
    /// The requested outputs; empty: all outputs of the model.
    pub outputs: Vec<RequestedOutput>,
    /// Parameters of the request.
    pub parameters: Vec<(String, ParameterValue)>,
    /// Encoding of inputs, HTTP only.
    pub input_format: TensorFormat,
    /// Encoding of outputs, HTTP only.
    pub output_format: TensorFormat,
}

/// One input of a request.
#[derive(Clone, Debug)]
pub struct InputTensor {
    /// The input's name.
    pub name: String,
    /// The type of its elements.
    pub data_type: DataType,
    /// The shape, with the batch dimension if the model has one.
    pub shape: Vec<i64>,
    /// Its elements, or the region that has them.
    pub data: InputData,
}

/// Elements of an input.
#[derive(Clone, Debug)]
pub enum InputData {
    /// Row-major little-endian elements; BYTES elements with their 4-byte length in front.
    Inline(Bytes),
    /// A part of a registered shared memory region.
    Region(RegionSlice),
}

/// An output that the response must have.
#[derive(Clone, Debug)]
pub struct RequestedOutput {
    /// The output's name.
    pub name: String,
    /// The region that the server writes it to; `None`: the response has it.
    pub region: Option<RegionSlice>,
    /// Number of most likely classes to return instead of the numbers; zero: the numbers. Ignored with a region.
    pub classes: u32,
}

/// A part of a registered shared memory region, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSlice {
    /// The name under which the region is registered.
    pub region: String,
    /// Start of the part.
    pub offset: usize,
    /// Length of the part.
    pub byte_size: usize,
}

/// The difference between two sendings of one template.
#[derive(Clone, Copy, Debug, Default)]
pub struct InferMark {
    /// The request's `id`, in decimal.
    pub id: Option<u64>,
    /// The sequence of the request.
    pub sequence: Option<SequenceMark>,
}

/// `sequence_id`, `sequence_start` and `sequence_end` of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceMark {
    /// The sequence's correlation id.
    pub id: u64,
    /// It is the first request of the sequence.
    pub start: bool,
    /// It is the last request of the sequence.
    pub end: bool,
}

/// A tensor of a response.
#[derive(Clone, Debug)]
pub struct OutputTensor {
    /// The output's name.
    pub name: String,
    /// The type of its elements.
    pub data_type: DataType,
    /// The shape, with the batch dimension if the model has one.
    pub shape: Vec<i64>,
    /// The data, as in [`InputData::Inline`], also when the response carried JSON; empty if it is in a region.
    pub data: Bytes,
}
