//! A response written straight to the bytes of its message, without building the message first.

use std::{borrow::Cow, mem};

use bytes::Bytes;
use galatea_proto::inference::ModelInferResponse;
use galatea_types::{InferResponse, Parameters, Result, Tensor};
use prost::{Message as _, encoding::encoded_len_varint};

use super::{
    parameters::parameter_message,
    wire::{FIELD_HEAD_MAX, SHARED_FROM, field_len},
};
use crate::{answer_form::AnswerPlan, encode_error::EncodeError};

/// Field numbers of a response ...
mod number {
    pub const MODEL_NAME: u8 = 1;
    pub const MODEL_VERSION: u8 = 2;
    pub const ID: u8 = 3;
    pub const OUTPUTS: u8 = 5;
    pub const RAW_OUTPUT_CONTENTS: u8 = 6;
}

/// ... and of what describes an output.
mod output {
    pub const NAME: u8 = 1;
    pub const DATA_TYPE: u8 = 2;
    pub const SHAPE: u8 = 3;
}

/// Writes a response, as the client asked for it, as pieces in order. `prefix` comes before them, in the memory of the
/// first piece; it is called with the length of the message. Every output goes out raw; long ones are pieces of their own
/// and are not copied. `label` gives the text of a class of an output.
///
/// # Errors
/// An output that is not in host memory, cannot be classified, or does not fit its region; a message that is longer than
/// `limit` bytes, which a client could not receive.
pub fn encode_response<'a, const N: usize>(
    response: InferResponse,
    plan: &AnswerPlan,
    label: impl Fn(&str, usize) -> Option<&'a str>,
    limit: usize,
    prefix: impl FnOnce(usize) -> [u8; N],
) -> Result<Vec<Bytes>> {
    let InferResponse { model_name, model_version, id, parameters, outputs } = response;
    let mut version = itoa::Buffer::new();
    let version = version.format(model_version);
    let mut described = Vec::with_capacity(outputs.len());
    for tensor in &outputs {
        described.push(Output::of(plan.form_of(&tensor.name).apply(
            tensor,
            plan.is_batched,
            &label,
        )?)?);
    }
    let parameters = parameters_message(parameters);

    let texts = text_len(&model_name) + text_len(version) + text_len(&id);
    let parameters_len = parameters.as_ref().map_or(0, ModelInferResponse::encoded_len);
    let outputs_len: usize = described.iter().map(Output::len).sum();
    let head_len = texts + parameters_len + outputs_len;
    let tensor_len: usize = described.iter().map(|output| field_len(&output.data)).sum();
    let size = head_len.saturating_add(tensor_len);
    if size > limit {
        return Err(EncodeError::MessageTooLong { size, limit }.into());
    }
    let copied: usize = described.iter().map(Output::copied_len).sum();
    // Exactly what it takes, where nothing is shared: it becomes the piece without another allocation.
    let mut out = Vec::with_capacity(N + head_len + copied);
    out.extend_from_slice(&prefix(size));
    put_text(number::MODEL_NAME, &model_name, &mut out);
    put_text(number::MODEL_VERSION, version, &mut out);
    put_text(number::ID, &id, &mut out);
    if let Some(parameters) = parameters {
        parameters.encode_raw(&mut out);
    }
    described.iter().for_each(|output| output.put(&mut out));
    Ok(with_tensors(out, described))
}

/// What is said of an output, and its data.
struct Output<'t> {
    tensor: Cow<'t, Tensor>,
    data: Bytes,
    /// Bytes of the dimensions, and of the whole.
    shape_len: usize,
    length: usize,
}

impl<'t> Output<'t> {
    fn of(tensor: Cow<'t, Tensor>) -> Result<Self> {
        // One of each output, for clients count them: empty where the data is in shared memory.
        let data = tensor.host_bytes()?.clone();
        let shape_len =
            tensor.shape.iter().map(|&dim| encoded_len_varint(dim.cast_unsigned())).sum();
        let shape_field = if shape_len == 0 { 0 } else { delimited_len(shape_len) };
        let texts = text_len(&tensor.name) + text_len(tensor.data_type.protocol_name());
        Ok(Self { tensor, data, shape_len, length: texts + shape_field })
    }

    /// As a field of the response.
    fn len(&self) -> usize {
        delimited_len(self.length)
    }

    /// Bytes of the data's field that are written beside the rest.
    fn copied_len(&self) -> usize {
        if self.data.len() < SHARED_FROM { field_len(&self.data) } else { FIELD_HEAD_MAX }
    }

    fn put(&self, out: &mut Vec<u8>) {
        begin_delimited(number::OUTPUTS, self.length, out);
        put_text(output::NAME, &self.tensor.name, out);
        put_text(output::DATA_TYPE, self.tensor.data_type.protocol_name(), out);
        if self.shape_len > 0 {
            begin_delimited(output::SHAPE, self.shape_len, out);
            for dim in self.tensor.shape.iter() {
                put_varint(dim.cast_unsigned(), out);
            }
        }
    }
}

/// The tensors behind the rest.
fn with_tensors(mut out: Vec<u8>, outputs: Vec<Output<'_>>) -> Vec<Bytes> {
    let shared = outputs.iter().filter(|output| output.data.len() >= SHARED_FROM).count();
    let mut pieces = Vec::with_capacity(1 + 2 * shared);
    for Output { data, .. } in outputs {
        begin_delimited(number::RAW_OUTPUT_CONTENTS, data.len(), &mut out);
        if data.len() < SHARED_FROM {
            out.extend_from_slice(&data);
        } else {
            pieces.push(mem::take(&mut out).into());
            pieces.push(data);
        }
    }
    if !out.is_empty() {
        pieces.push(out.into());
    }
    pieces
}

/// Of a field with a length; all numbers of fields here take one byte.
fn delimited_len(length: usize) -> usize {
    1 + encoded_len_varint(length as u64) + length
}

fn begin_delimited(number: u8, length: usize, out: &mut Vec<u8>) {
    out.push((number << 3) | DELIMITED);
    put_varint(length as u64, out);
}

/// The type of fields with a length, beside their numbers.
const DELIMITED: u8 = 2;

/// Seven bits a byte, the lowest first; the highest bit says that others follow.
fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push((number as u8) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// As a message with nothing else, if there are any.
fn parameters_message(parameters: Parameters) -> Option<ModelInferResponse> {
    if parameters.is_empty() {
        return None;
    }
    let entries = parameters.into_iter().map(|(name, value)| (name, parameter_message(value)));
    Some(ModelInferResponse { parameters: entries.collect(), ..Default::default() })
}

/// An empty text is left out.
fn text_len(text: &str) -> usize {
    if text.is_empty() { 0 } else { delimited_len(text.len()) }
}

fn put_text(number: u8, text: &str, out: &mut Vec<u8>) {
    if !text.is_empty() {
        begin_delimited(number, text.len(), out);
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use galatea_types::{DataType, ParameterValue, Shape};

    use super::*;
    use crate::{answer_form::AnswerForm, grpc::encode};

    fn response(sizes: &[usize], shape: &[i64], id: &str) -> InferResponse {
        let tensor = |(at, &size): (usize, &usize)| {
            Tensor::new(
                format!("OUTPUT{at}"),
                DataType::Uint8,
                Shape::from(shape),
                vec![at as u8; size],
            )
        };
        InferResponse {
            model_name: "m".into(),
            model_version: 12,
            id: id.into(),
            parameters: vec![
                ("b".into(), ParameterValue::Int(-1)),
                ("a".into(), ParameterValue::String("text".into())),
            ],
            outputs: sizes.iter().enumerate().map(tensor).collect(),
        }
    }

    #[test]
    fn responses_are_what_prost_writes_and_long_tensors_are_not_copied() {
        let plan = AnswerPlan::new(AnswerForm::Binary, true);
        let shapes: [&[i64]; 4] = [&[], &[3], &[1, 16], &[-1, i64::MAX, 0, 300]];
        for sizes in [&[][..], &[0], &[3], &[SHARED_FROM], &[3, SHARED_FROM, 0, 40_000, 5]] {
            for (shape, id) in shapes.into_iter().zip(["", "an id", "", &"long".repeat(100)]) {
                let response = response(sizes, shape, id);
                let expected = encode(response.clone(), &plan, |_, _| None).expect("a message");
                let expected = expected.encode_to_vec();
                let length = expected.len();
                let encoded = |limit, response| {
                    encode_response(
                        response,
                        &plan,
                        |_, _| None,
                        limit,
                        |n| (n as u32).to_be_bytes(),
                    )
                };
                let pieces = encoded(length, response.clone()).expect("as long as it may be");
                let joined = pieces.concat();
                assert_eq!(joined[..4], (length as u32).to_be_bytes());
                assert_eq!(joined[4..], expected[..]);
                for tensor in response.outputs.iter().filter(|t| t.data.len() >= SHARED_FROM) {
                    let data = tensor.host_bytes().expect("in host memory");
                    assert!(pieces.iter().any(|piece| piece.as_ptr() == data.as_ptr()));
                }
                let error = encoded(length - 1, response).expect_err("too long").to_string();
                let limit = length - 1;
                assert_eq!(
                    error,
                    format!(
                        "Response has byte size {length} which exceeds gRPC's byte size limit {limit}."
                    )
                );
            }
        }
    }
}
