//! An inference request as described, before any wire form.

use bytes::Bytes;
use galatea_types::{DataType, ParameterValue};

/// How tensors travel over HTTP; gRPC always carries them raw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TensorFormat {
    #[default]
    Binary,
    Json,
}

/// An inference request that will be sent many times.
#[derive(Clone, Debug)]
pub struct InferTemplate {
    pub model: String,
    /// Empty: the server chooses.
    pub version: String,
    pub inputs: Vec<InputTensor>,
    /// Empty: all outputs of the model.
    pub outputs: Vec<RequestedOutput>,
    pub parameters: Vec<(String, ParameterValue)>,
    /// HTTP only.
    pub input_format: TensorFormat,
    /// HTTP only.
    pub output_format: TensorFormat,
}

#[derive(Clone, Debug)]
pub struct InputTensor {
    pub name: String,
    pub data_type: DataType,
    /// With the batch dimension, if the model has one.
    pub shape: Vec<i64>,
    pub data: InputData,
}

#[derive(Clone, Debug)]
pub enum InputData {
    /// Row-major little-endian elements; BYTES elements with their 4-byte length in front.
    Inline(Bytes),
    Region(RegionSlice),
}

#[derive(Clone, Debug)]
pub struct RequestedOutput {
    pub name: String,
    /// Where the server is to write it; `None`: into the response.
    pub region: Option<RegionSlice>,
}

/// A part of a registered shared memory region, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSlice {
    pub region: String,
    pub offset: usize,
    pub byte_size: usize,
}

/// What differs between two sendings of one template.
#[derive(Clone, Copy, Debug, Default)]
pub struct InferMark {
    /// The request's `id`, in decimal.
    pub id: Option<u64>,
    pub sequence: Option<SequenceMark>,
}

/// `sequence_id`, `sequence_start` and `sequence_end` of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceMark {
    pub id: u64,
    pub start: bool,
    pub end: bool,
}

/// A tensor of a response.
#[derive(Clone, Debug)]
pub struct OutputTensor {
    pub name: String,
    pub data_type: DataType,
    pub shape: Vec<i64>,
    /// As in [`InputData::Inline`], also when the response carried JSON; empty if it lies in a region.
    pub data: Bytes,
}
