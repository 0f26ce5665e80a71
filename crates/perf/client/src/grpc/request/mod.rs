//! Inference requests as they travel over gRPC.

use std::{collections::BTreeMap, slice};

use bytes::{BufMut, Bytes, BytesMut};
use galatea_proto::inference::{
    InferParameter, ModelInferRequest,
    infer_parameter::ParameterChoice,
    model_infer_request::{InferInputTensor, InferRequestedOutputTensor},
};
use galatea_types::{ParameterValue, Result};
use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint},
};

use super::{
    compression::compress,
    message::{PREFIX, prefix},
};
use crate::{
    Compression, InferMark, InferTemplate, InputData, RegionSlice, RequestedOutput, SequenceMark,
    Target, request_error::RequestError,
};

/// Tensor data up to this length is joined with the head, so that it travels in one frame.
const JOIN_LIMIT: usize = 16 << 10;

/// Field numbers of `ModelInferRequest`, and of the entries of its parameters.
const ID: u32 = 3;
const PARAMETERS: u32 = 4;
const RAW_INPUT_CONTENTS: u32 = 7;

/// A whole request without marks, and the pieces to build one with marks.
#[derive(Debug)]
pub(crate) struct GrpcInfer {
    /// The whole message without marks up to `tail`, with its prefix.
    plain: Bytes,
    /// The uncompressed message, up to its tensor data if that is large.
    base: Bytes,
    /// Tensor data that is not copied, with the keys before it.
    data: Vec<Bytes>,
    compression: Compression,
}

impl GrpcInfer {
    pub fn new(target: &Target, template: &InferTemplate, id: Option<&str>) -> Result<Self> {
        let id = id.unwrap_or_default().to_owned();
        let mut base = ModelInferRequest { id, ..message(template) }.encode_to_vec();
        let contents = template.inputs.iter().filter_map(|input| match &input.data {
            InputData::Inline(data) => Some(data.clone()),
            InputData::Region(_) => None,
        });
        let contents: Vec<_> = contents.collect();
        let total: usize = contents.iter().map(Bytes::len).sum();
        let mut data = Vec::new();
        for content in contents {
            if total <= JOIN_LIMIT {
                content_key(content.len(), &mut base);
                base.extend_from_slice(&content);
            } else {
                let mut key = Vec::new();
                content_key(content.len(), &mut key);
                data.extend([Bytes::from(key), content]);
            }
        }
        let mut request =
            Self { plain: Bytes::new(), base: base.into(), data, compression: target.compression };
        request.plain = request.assemble(&[])?;
        Ok(request)
    }

    /// Returns the message's bytes up to its tail, with the prefix.
    pub fn front(&self, mark: InferMark) -> Result<Bytes> {
        if mark.id.is_none() && mark.sequence.is_none() {
            return Ok(self.plain.clone());
        }
        let mut fields = Vec::with_capacity(128);
        put_mark(mark, &mut fields);
        self.assemble(&fields)
    }

    /// Returns the bytes after the front.
    pub fn tail(&self) -> slice::Iter<'_, Bytes> {
        match self.compression {
            Compression::None => self.data.iter(),
            _ => [].iter(),
        }
    }

    /// Builds the message. Fields may have any order, so those of the mark come first.
    fn assemble(&self, mark: &[u8]) -> Result<Bytes> {
        if self.compression != Compression::None {
            let data = self.data.iter().map(|bytes| &bytes[..]);
            let parts = [mark, &self.base].into_iter().chain(data);
            let packed = compress(self.compression, parts).map_err(RequestError::Compression)?;
            return Ok([&checked_prefix(true, packed.len())?[..], &packed].concat().into());
        }
        let tail: usize = self.data.iter().map(Bytes::len).sum();
        let front = mark.len() + self.base.len();
        let mut out = BytesMut::with_capacity(PREFIX + front);
        out.put_slice(&checked_prefix(false, front + tail)?);
        out.put_slice(mark);
        out.put_slice(&self.base);
        Ok(out.freeze())
    }
}

/// Returns the prefix. gRPC implementations keep lengths in signed 32-bit numbers.
fn checked_prefix(is_compressed: bool, length: usize) -> Result<[u8; PREFIX], RequestError> {
    let prefix = prefix(is_compressed, length).filter(|_| i32::try_from(length).is_ok());
    prefix.ok_or(RequestError::TooLong { length })
}

fn message(template: &InferTemplate) -> ModelInferRequest {
    ModelInferRequest {
        model_name: template.model.clone(),
        model_version: template.version.clone(),
        id: String::new(),
        parameters: template
            .parameters
            .iter()
            .map(|(name, value)| (name.clone(), parameter(value)))
            .collect(),
        inputs: template
            .inputs
            .iter()
            .map(|input| InferInputTensor {
                name: input.name.clone(),
                datatype: input.data_type.protocol_name().to_owned(),
                shape: input.shape.clone(),
                parameters: match &input.data {
                    InputData::Inline(_) => BTreeMap::new(),
                    InputData::Region(region) => region_parameters(region),
                },
                contents: None,
            })
            .collect(),
        outputs: template
            .outputs
            .iter()
            .map(|output| InferRequestedOutputTensor {
                name: output.name.clone(),
                parameters: output_parameters(output),
            })
            .collect(),
        raw_input_contents: Vec::new(),
    }
}

fn parameter(value: &ParameterValue) -> InferParameter {
    let choice = match value {
        ParameterValue::Bool(value) => ParameterChoice::BoolParam(*value),
        ParameterValue::Int(value) => ParameterChoice::Int64Param(*value),
        ParameterValue::Uint(value) => ParameterChoice::Uint64Param(*value),
        ParameterValue::Double(value) => ParameterChoice::DoubleParam(*value),
        ParameterValue::String(value) => ParameterChoice::StringParam(value.clone()),
    };
    InferParameter { parameter_choice: Some(choice) }
}

fn output_parameters(output: &RequestedOutput) -> BTreeMap<String, InferParameter> {
    match (&output.region, output.classes) {
        (Some(region), _) => region_parameters(region),
        (None, 0) => BTreeMap::new(),
        (None, classes) => {
            let classes = parameter(&ParameterValue::Int(classes.into()));
            BTreeMap::from([("classification".to_owned(), classes)])
        }
    }
}

fn region_parameters(region: &RegionSlice) -> BTreeMap<String, InferParameter> {
    let number = |value: usize| ParameterValue::Int(i64::try_from(value).unwrap_or(i64::MAX));
    let mut values = vec![
        ("shared_memory_region", ParameterValue::String(region.region.clone())),
        ("shared_memory_byte_size", number(region.byte_size)),
    ];
    if region.offset != 0 {
        values.push(("shared_memory_offset", number(region.offset)));
    }
    values.into_iter().map(|(name, value)| (name.to_owned(), parameter(&value))).collect()
}

fn content_key(length: usize, out: &mut Vec<u8>) {
    encode_key(RAW_INPUT_CONTENTS, WireType::LengthDelimited, out);
    encode_varint(length as u64, out);
}

/// Writes the mark as fields of a `ModelInferRequest`: entries of a map may be anywhere in the message.
fn put_mark(mark: InferMark, out: &mut Vec<u8>) {
    if let Some(id) = mark.id {
        put_bytes(ID, id.to_string().as_bytes(), out);
    }
    if let Some(SequenceMark { id, start, end }) = mark.sequence {
        // Servers read sequence ids from `int64_param`, and its bits as unsigned.
        put_entry("sequence_id", 2, id, out);
        put_entry("sequence_start", 1, start.into(), out);
        put_entry("sequence_end", 1, end.into(), out);
    }
}

/// Writes an entry of `parameters`: the name, and an `InferParameter` with one varint in field `choice`.
fn put_entry(name: &str, choice: u32, value: u64, out: &mut Vec<u8>) {
    let mut parameter = [0; 11];
    let mut room = &mut parameter[..];
    encode_key(choice, WireType::Varint, &mut room);
    encode_varint(value, &mut room);
    let left = room.len();
    let parameter = parameter.get(..parameter.len() - left).unwrap_or_default();
    // The name and the value each have a key and a length of one byte.
    encode_key(PARAMETERS, WireType::LengthDelimited, out);
    encode_varint((4 + name.len() + parameter.len()) as u64, out);
    put_bytes(1, name.as_bytes(), out);
    put_bytes(2, parameter, out);
}

fn put_bytes(field: u32, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(field, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests;
