//! Writes a response straight to the bytes of its message, without building the message first.

use std::{borrow::Cow, mem};

use bytes::Bytes;
use galatea_proto::inference::{ModelInferResponse, ModelStreamInferResponse};
use galatea_types::{InferResponse, Parameters, Result, Tensor};
use prost::{Message as _, encoding::encoded_len_varint};

use super::parameters::parameter_message;
use crate::{answer_form::AnswerPlan, encode_error::EncodeError};

/// Field numbers of a response ...
mod number {
    pub const MODEL_NAME: u8 = 1;
    pub const MODEL_VERSION: u8 = 2;
    pub const ID: u8 = 3;
    pub const OUTPUTS: u8 = 5;
    pub const RAW_OUTPUT_CONTENTS: u8 = 6;
}

/// ... and of the description of an output.
mod output {
    pub const NAME: u8 = 1;
    pub const DATA_TYPE: u8 = 2;
    pub const SHAPE: u8 = 3;
}

/// Shorter tensors are copied into the message, because a piece of their own would cost more.
const SHARED_FROM: usize = 16 << 10;

/// The most bytes of the key and length of a bytes field.
const FIELD_HEAD_MAX: usize = 11;

/// The message that contains a response.
#[derive(Clone, Copy, Debug)]
pub enum Envelope {
    /// The message of ModelInfer, which is the response itself.
    Unary,
    /// A message of ModelStreamInfer. It marks its response as final or not, so that a client need not know which
    /// models are decoupled.
    Stream {
        /// Is `true` if no other response of the request follows.
        is_final: bool,
    },
}

/// The name of the parameter that marks the final response of a stream.
pub const FINAL_RESPONSE: &str = "triton_final_response";
/// The entry of that parameter in a response without its last byte, which is 1 for a final response, else 0.
const FINAL_RESPONSE_ENTRY: [u8; 28] = *b"\x22\x1b\x0a\x15triton_final_response\x12\x02\x08";
/// The field number of the response in a message of a stream.
const INFER_RESPONSE: u8 = 2;

impl Envelope {
    /// Returns the bytes of the mark in the response.
    fn mark_len(self) -> usize {
        match self {
            Self::Unary => 0,
            Self::Stream { .. } => FINAL_RESPONSE_ENTRY.len() + 1,
        }
    }

    /// Returns the bytes of the message that contains a response of `response` bytes.
    fn message_len(self, response: usize) -> usize {
        match self {
            Self::Unary => response,
            Self::Stream { .. } => delimited_len(response),
        }
    }

    /// Writes the beginning of the message that contains a response of `response` bytes.
    fn begin(self, response: usize, out: &mut Vec<u8>) {
        if let Self::Stream { .. } = self {
            begin_delimited(INFER_RESPONSE, response, out);
        }
    }

    fn put_mark(self, out: &mut Vec<u8>) {
        if let Self::Stream { is_final } = self {
            out.extend_from_slice(&FINAL_RESPONSE_ENTRY);
            out.push(is_final.into());
        }
    }
}

/// Writes a message of a stream without tensors as one piece, after its `prefix`.
pub fn encode_stream_message<const N: usize>(
    message: &ModelStreamInferResponse,
    prefix: impl FnOnce(usize) -> [u8; N],
) -> Bytes {
    [&prefix(message.encoded_len())[..], &message.encode_to_vec()].concat().into()
}

/// Writes a response, in the form that the client asked for, as pieces in order. `prefix` is called with the length of
/// the message and precedes it, in the memory of the first piece. Every output is sent raw; long ones are pieces of
/// their own and are not copied. `label` returns the text of a class of an output.
///
/// # Errors
/// An output that is not in host memory, cannot be classified, or does not fit its region. A message longer than
/// `limit` bytes, which a client could not receive.
pub fn encode_response<'a, const N: usize>(
    response: InferResponse,
    plan: &AnswerPlan,
    label: impl Fn(&str, usize) -> Option<&'a str>,
    limit: usize,
    envelope: Envelope,
    prefix: impl FnOnce(usize) -> [u8; N],
) -> Result<Vec<Bytes>> {
    plan.check_regions(&response)?;
    let InferResponse { model_name, model_version, id, mut parameters, outputs } = response;
    if let Envelope::Stream { .. } = envelope {
        parameters.retain(|(name, _)| name != FINAL_RESPONSE);
    }
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
    let length = size.saturating_add(envelope.mark_len());
    let message_len = envelope.message_len(length);
    // The prefix, the beginning of the envelope, and the mark.
    let around = N + (message_len.saturating_sub(length)) + envelope.mark_len();
    let copied: usize = described.iter().map(Output::copied_len).sum();
    // The exact size if no tensor is shared, so that this becomes the piece without another allocation.
    let mut out = Vec::with_capacity(around + head_len + copied);
    out.extend_from_slice(&prefix(message_len));
    envelope.begin(length, &mut out);
    put_text(number::MODEL_NAME, &model_name, &mut out);
    put_text(number::MODEL_VERSION, version, &mut out);
    put_text(number::ID, &id, &mut out);
    if let Some(parameters) = parameters {
        parameters.encode_raw(&mut out);
    }
    envelope.put_mark(&mut out);
    described.iter().for_each(|output| output.put(&mut out));
    Ok(with_tensors(out, described))
}

/// The description of an output, and its data.
struct Output<'t> {
    tensor: Cow<'t, Tensor>,
    data: Bytes,
    /// Bytes of the dimensions, and of the whole description.
    shape_len: usize,
    length: usize,
}

impl<'t> Output<'t> {
    fn of(tensor: Cow<'t, Tensor>) -> Result<Self> {
        // There is one for each output, because clients count them. It is empty if the data is in shared memory.
        let data = tensor.host_bytes()?.clone();
        let shape_len =
            tensor.shape.iter().map(|&dim| encoded_len_varint(dim.cast_unsigned())).sum();
        let shape_field = if shape_len == 0 { 0 } else { delimited_len(shape_len) };
        let texts = text_len(&tensor.name) + text_len(tensor.data_type.protocol_name());
        Ok(Self { tensor, data, shape_len, length: texts + shape_field })
    }

    /// Returns its length as a field of the response.
    fn len(&self) -> usize {
        delimited_len(self.length)
    }

    /// Returns the bytes of the data's field that are copied into the message.
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

/// Appends the tensors to the message.
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

/// Returns the length of the field with the data of a tensor.
fn field_len(data: &Bytes) -> usize {
    delimited_len(data.len())
}

/// Returns the length of a field with a length; all field numbers here take one byte.
fn delimited_len(length: usize) -> usize {
    1 + encoded_len_varint(length as u64) + length
}

fn begin_delimited(number: u8, length: usize, out: &mut Vec<u8>) {
    out.push((number << 3) | DELIMITED);
    put_varint(length as u64, out);
}

/// The wire type of fields with a length.
const DELIMITED: u8 = 2;

/// Writes seven bits a byte, the lowest first. The highest bit says that more bytes follow.
fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push((number as u8) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Returns the parameters as a message with nothing else, if there are any.
fn parameters_message(parameters: Parameters) -> Option<ModelInferResponse> {
    if parameters.is_empty() {
        return None;
    }
    let entries = parameters.into_iter().map(|(name, value)| (name, parameter_message(value)));
    Some(ModelInferResponse { parameters: entries.collect(), ..Default::default() })
}

/// An empty text is omitted.
fn text_len(text: &str) -> usize {
    if text.is_empty() { 0 } else { delimited_len(text.len()) }
}

fn put_text(number: u8, text: &str, out: &mut Vec<u8>) {
    if !text.is_empty() {
        begin_delimited(number, text.len(), out);
        out.extend_from_slice(text.as_bytes());
    }
}

/// The message of a response, read again from what is written.
#[cfg(test)]
pub(crate) fn encode<'a>(
    response: InferResponse,
    plan: &AnswerPlan,
    label: impl Fn(&str, usize) -> Option<&'a str>,
) -> Result<ModelInferResponse> {
    let pieces = encode_response(response, plan, label, usize::MAX, Envelope::Unary, |_| [])?;
    Ok(ModelInferResponse::decode(&*pieces.concat()).expect("a message"))
}

#[cfg(test)]
mod tests {
    use galatea_proto::inference::model_infer_response::InferOutputTensor;
    use galatea_types::{DataType, ParameterValue, Shape};

    use super::*;
    use crate::answer_form::AnswerForm;

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

    /// The message with all outputs raw, as prost knows it.
    fn message_of(response: &InferResponse) -> ModelInferResponse {
        let output = |tensor: &Tensor| InferOutputTensor {
            name: tensor.name.to_string(),
            datatype: tensor.data_type.protocol_name().to_owned(),
            shape: tensor.shape.to_vec(),
            ..Default::default()
        };
        let data = |tensor: &Tensor| tensor.host_bytes().expect("in host memory").clone();
        let parameters = response.parameters.iter().cloned();
        ModelInferResponse {
            model_name: response.model_name.to_string(),
            model_version: response.model_version.to_string(),
            id: response.id.clone(),
            parameters: parameters.map(|(key, value)| (key, parameter_message(value))).collect(),
            outputs: response.outputs.iter().map(output).collect(),
            raw_output_contents: response.outputs.iter().map(data).collect(),
        }
    }

    /// Responses of several sizes.
    fn responses() -> Vec<InferResponse> {
        let shapes: [&[i64]; 4] = [&[], &[3], &[1, 16], &[-1, i64::MAX, 0, 300]];
        let mut responses = Vec::new();
        for sizes in [&[][..], &[0], &[3], &[SHARED_FROM], &[3, SHARED_FROM, 0, 40_000, 5]] {
            for (shape, id) in shapes.into_iter().zip(["", "an id", "", &"long".repeat(100)]) {
                responses.push(response(sizes, shape, id));
            }
        }
        responses
    }

    fn encoded(response: &InferResponse, limit: usize, envelope: Envelope) -> Result<Vec<Bytes>> {
        let plan = AnswerPlan::new(AnswerForm::Binary, true);
        let prefix = |n| (n as u32).to_be_bytes();
        encode_response(response.clone(), &plan, |_, _| None, limit, envelope, prefix)
    }

    #[test]
    fn responses_equal_those_of_prost_and_long_tensors_are_not_copied() {
        for response in responses() {
            let expected = message_of(&response).encode_to_vec();
            let length = expected.len();
            let pieces = encoded(&response, length, Envelope::Unary).expect("as long as allowed");
            let joined = pieces.concat();
            assert_eq!(joined[..4], (length as u32).to_be_bytes());
            assert_eq!(joined[4..], expected[..]);
            for tensor in response.outputs.iter().filter(|t| t.data.len() >= SHARED_FROM) {
                let data = tensor.host_bytes().expect("in host memory");
                assert!(pieces.iter().any(|piece| piece.as_ptr() == data.as_ptr()));
            }
            let limit = length - 1;
            let error = encoded(&response, limit, Envelope::Unary).expect_err("too long");
            assert_eq!(
                error.to_string(),
                format!(
                    "Response has byte size {length} which exceeds gRPC's byte size limit {limit}."
                )
            );
        }
    }

    #[test]
    fn a_stream_response_is_the_same_with_its_marker() {
        for (number, mut response) in responses().into_iter().enumerate() {
            let limit = message_of(&response).encoded_len();
            let is_final = number % 2 == 0;
            let envelope = Envelope::Stream { is_final };
            let pieces = encoded(&response, limit, envelope).expect("as long as allowed");
            let error = encoded(&response, limit - 1, envelope).expect_err("too long").to_string();
            assert!(error.contains(&format!("byte size {limit} which")), "{error}");
            let joined = pieces.concat();
            assert_eq!(joined[..4], (joined.len() as u32 - 4).to_be_bytes());
            let sent = ModelStreamInferResponse::decode(&joined[4..]).expect("a message");
            let mark = (FINAL_RESPONSE.to_owned(), ParameterValue::Bool(is_final));
            response.parameters.push(mark);
            let expected = ModelStreamInferResponse {
                error_message: String::new(),
                infer_response: Some(message_of(&response)),
            };
            assert_eq!(sent, expected);
            assert_eq!(joined.len() - 4, expected.encoded_len());
            // A mark of the model's own does not stand beside it.
            response.parameters.insert(0, (FINAL_RESPONSE.to_owned(), ParameterValue::Int(7)));
            let own = encoded(&response, limit, envelope).expect("as long as allowed").concat();
            let own = ModelStreamInferResponse::decode(&own[4..]).expect("a message");
            assert_eq!(own, expected);
        }
    }

    #[test]
    fn a_stream_message_without_tensors_equals_that_of_prost() {
        let infer_response = Some(ModelInferResponse { id: "7".into(), ..Default::default() });
        let message = ModelStreamInferResponse { error_message: "an error".into(), infer_response };
        let piece = encode_stream_message(&message, |n| (n as u32).to_be_bytes());
        let expected = message.encode_to_vec();
        assert_eq!(piece[..4], (expected.len() as u32).to_be_bytes());
        assert_eq!(piece[4..], expected[..]);
    }
}
