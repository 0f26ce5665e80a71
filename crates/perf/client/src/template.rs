//! An inference request as described, before any wire form.

use bytes::Bytes;
use galatea_types::{DataType, ParameterValue};

/// How tensors travel over HTTP; gRPC always carries them raw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TensorFormat {
    /// The binary tensor extension: raw bytes behind the JSON header.
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
    /// Empty: the server chooses.
    pub version: String,
    /// The inputs, in the order of the request.
    pub inputs: Vec<InputTensor>,
    /// Empty: all outputs of the model.
    pub outputs: Vec<RequestedOutput>,
    /// Parameters of the request.
    pub parameters: Vec<(String, ParameterValue)>,
    /// HTTP only.
    pub input_format: TensorFormat,
    /// HTTP only.
    pub output_format: TensorFormat,
}

/// One input of a request.
#[derive(Clone, Debug)]
pub struct InputTensor {
    /// The input's name.
    pub name: String,
    /// The type of its elements.
    pub data_type: DataType,
    /// With the batch dimension, if the model has one.
    pub shape: Vec<i64>,
    /// Its elements, or where they are.
    pub data: InputData,
}

/// Elements of an input.
#[derive(Clone, Debug)]
pub enum InputData {
    /// Row-major little-endian elements; BYTES elements with their 4-byte length in front.
    Inline(Bytes),
    /// In a registered shared memory region.
    Region(RegionSlice),
}

/// An output that the response is to have.
#[derive(Clone, Debug)]
pub struct RequestedOutput {
    /// The output's name.
    pub name: String,
    /// Where the server is to write it; `None`: into the response.
    pub region: Option<RegionSlice>,
    /// As so many classes, the most likely first, instead of as numbers; zero: as it is. With a region it means nothing.
    pub classes: u32,
}

/// A part of a registered shared memory region, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSlice {
    /// The name under which the region is registered.
    pub region: String,
    /// Where the part begins.
    pub offset: usize,
    /// How long the part is.
    pub byte_size: usize,
}

/// What differs between two sendings of one template.
#[derive(Clone, Copy, Debug, Default)]
pub struct InferMark {
    /// The request's `id`, in decimal.
    pub id: Option<u64>,
    /// The sequence it belongs to.
    pub sequence: Option<SequenceMark>,
}

/// `sequence_id`, `sequence_start` and `sequence_end` of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceMark {
    /// The sequence's correlation id.
    pub id: u64,
    /// Whether it is the first request of the sequence.
    pub start: bool,
    /// Whether it is the last one.
    pub end: bool,
}

/// A tensor of a response.
#[derive(Clone, Debug)]
pub struct OutputTensor {
    /// The output's name.
    pub name: String,
    /// The type of its elements.
    pub data_type: DataType,
    /// With the batch dimension, if the model has one.
    pub shape: Vec<i64>,
    /// As in [`InputData::Inline`], also when the response carried JSON; empty if it lies in a region.
    pub data: Bytes,
}
