//! The tensors of an inference response.

use bytes::Bytes;
use galatea_proto::inference::{
    InferTensorContents, ModelInferResponse, model_infer_response::InferOutputTensor,
};
use galatea_types::{DataType, Result, byte_strings};
use prost::Message;

use super::message::MessageReader;
use crate::{OutputTensor, response_error::ResponseError};

/// Returns the outputs of an encoded `ModelInferResponse`; raw data is not copied.
pub(super) fn decode(message: Bytes) -> Result<Vec<OutputTensor>> {
    let response = ModelInferResponse::decode(message).map_err(ResponseError::Decode)?;
    let ModelInferResponse { outputs, raw_output_contents: raw, .. } = response;
    // Some servers leave out the entry of an output in a region, so the other entries move up.
    let has_all = raw.len() == outputs.len();
    let mut raw = raw.into_iter();
    outputs
        .into_iter()
        .map(|output| {
            let in_region = output.parameters.contains_key("shared_memory_region");
            let data = if in_region && !has_all { None } else { raw.next() };
            tensor(output, data)
        })
        .collect()
}

fn tensor(output: InferOutputTensor, raw: Option<Bytes>) -> Result<OutputTensor> {
    let InferOutputTensor { name, datatype, shape, contents, .. } = output;
    let data_type = DataType::from_protocol_name(&datatype)
        .ok_or_else(|| ResponseError::DataType { output: name.clone(), data_type: datatype })?;
    let data = match (raw, contents) {
        (Some(raw), _) => raw,
        (None, Some(contents)) => Bytes::from(typed(data_type, &contents)),
        (None, None) => Bytes::new(),
    };
    Ok(OutputTensor { name, data_type, shape, data })
}

/// Returns typed contents as row-major little-endian bytes. Small integers travel as 32-bit ones, so only the low bytes count.
fn typed(data_type: DataType, contents: &InferTensorContents) -> Vec<u8> {
    fn bytes<T: Copy, const N: usize>(values: &[T], to: impl Fn(T) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|&value| to(value)).collect()
    }
    match data_type {
        DataType::Bool => bytes(&contents.bool_contents, |value| [u8::from(value)]),
        DataType::Uint8 => bytes(&contents.uint_contents, |value| (value as u8).to_le_bytes()),
        DataType::Uint16 => bytes(&contents.uint_contents, |value| (value as u16).to_le_bytes()),
        DataType::Uint32 => bytes(&contents.uint_contents, u32::to_le_bytes),
        DataType::Uint64 => bytes(&contents.uint64_contents, u64::to_le_bytes),
        DataType::Int8 => bytes(&contents.int_contents, |value| (value as i8).to_le_bytes()),
        DataType::Int16 => bytes(&contents.int_contents, |value| (value as i16).to_le_bytes()),
        DataType::Int32 => bytes(&contents.int_contents, i32::to_le_bytes),
        DataType::Int64 => bytes(&contents.int64_contents, i64::to_le_bytes),
        DataType::Fp32 => bytes(&contents.fp32_contents, f32::to_le_bytes),
        DataType::Fp64 => bytes(&contents.fp64_contents, f64::to_le_bytes),
        // The protocol has no typed form for these.
        DataType::Fp16 | DataType::Bf16 => Vec::new(),
        DataType::Bytes => {
            let mut data = Vec::new();
            for text in &contents.bytes_contents {
                // No message holds an element that long.
                let _ = byte_strings::push(&mut data, text);
            }
            data
        }
    }
}

/// Returns the outputs in the first message of an inference response, from pieces of its body: for fuzzing.
///
/// # Errors
/// If the message is not complete, or has tensors that cannot be read.
#[doc(hidden)]
pub fn decode_infer_message<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<OutputTensor>> {
    let mut reader = MessageReader::default();
    let mut message = None;
    for piece in pieces {
        reader.push(Bytes::copy_from_slice(piece));
        message = message.or_else(|| reader.next());
    }
    decode(message.ok_or(ResponseError::NoMessage)?.bytes)
}
