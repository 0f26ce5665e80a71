//! Messages to pieces of memory, without joining them.

use bytes::{BufMut, Bytes, BytesMut};
use galatea_proto::inference::{ModelInferResponse, ModelStreamInferResponse};
use prost::{
    Message as _,
    encoding::{WireType, encode_key, encode_varint, encoded_len_varint},
};

/// Field number of `raw_output_contents`, the last field of the response.
const RAW_OUTPUT_CONTENTS: u32 = 6;

/// Tensors shorter than this are copied beside the rest: a piece of its own would cost more.
pub(super) const SHARED_FROM: usize = 16 << 10;

/// Writes a response of a stream, which may have an error beside it, as pieces in order. `prefix` comes before them, in the
/// memory of the first piece; it is called with the length of the message. Long tensors are pieces of their own and are not
/// copied.
pub fn encode_stream_message<const N: usize>(
    message: ModelStreamInferResponse,
    prefix: impl FnOnce(usize) -> [u8; N],
) -> Vec<Bytes> {
    let ModelStreamInferResponse { error_message, infer_response } = message;
    let Some(response) = infer_response else {
        let message = ModelStreamInferResponse { error_message, infer_response: None };
        return vec![
            [&prefix(message.encoded_len())[..], &message.encode_to_vec()].concat().into(),
        ];
    };
    let error = ModelStreamInferResponse { error_message, infer_response: None };
    encode_within(response, |length, out| {
        let head = 1 + encoded_len_varint(length as u64);
        out.reserve(N + error.encoded_len() + head);
        out.put_slice(&prefix(error.encoded_len().saturating_add(head).saturating_add(length)));
        error.encode_raw(out);
        encode_key(INFER_RESPONSE, WireType::LengthDelimited, out);
        encode_varint(length as u64, out);
    })
}

/// Field number of `infer_response` in the message of a stream.
const INFER_RESPONSE: u32 = 2;
/// What comes before a response takes no more, where there is no long error text.
const BEFORE: usize = 32;

/// `before` writes what comes before the message, given its length.
fn encode_within(
    mut message: ModelInferResponse,
    before: impl FnOnce(usize, &mut BytesMut),
) -> Vec<Bytes> {
    let tensors = std::mem::take(&mut message.raw_output_contents);
    let head_len = message.encoded_len();
    let tensor_len: usize = tensors.iter().map(field_len).sum();
    let copied_len: usize = tensors.iter().filter(|t| t.len() < SHARED_FROM).map(field_len).sum();
    let mut out =
        BytesMut::with_capacity(BEFORE + head_len + copied_len + tensors.len() * FIELD_HEAD_MAX);
    before(head_len.saturating_add(tensor_len), &mut out);
    message.encode_raw(&mut out);
    let mut pieces = Vec::with_capacity(1 + 2 * tensors.len());
    for tensor in tensors {
        encode_key(RAW_OUTPUT_CONTENTS, WireType::LengthDelimited, &mut out);
        encode_varint(tensor.len() as u64, &mut out);
        if tensor.len() < SHARED_FROM {
            out.put_slice(&tensor);
        } else {
            pieces.push(out.split().freeze());
            pieces.push(tensor);
        }
    }
    if !out.is_empty() {
        pieces.push(out.freeze());
    }
    pieces
}

/// Key and length of a bytes field at most.
pub(super) const FIELD_HEAD_MAX: usize = 11;

pub(super) fn field_len(tensor: &Bytes) -> usize {
    1 + encoded_len_varint(tensor.len() as u64) + tensor.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_what_prost_writes_and_long_tensors_are_not_copied() {
        for sizes in [&[][..], &[0], &[3], &[SHARED_FROM], &[3, SHARED_FROM, 0, 40_000, 5]] {
            let tensors: Vec<Bytes> = sizes.iter().map(|&n| vec![n as u8; n].into()).collect();
            let message = ModelInferResponse {
                model_name: "m".into(),
                raw_output_contents: tensors.clone(),
                ..Default::default()
            };
            for error_message in ["", "an error"] {
                let message = ModelStreamInferResponse {
                    error_message: error_message.into(),
                    infer_response: Some(message.clone()),
                };
                let expected = message.encode_to_vec();
                let pieces = encode_stream_message(message, |n| (n as u32).to_be_bytes());
                let joined = pieces.concat();
                assert_eq!(joined[..4], (expected.len() as u32).to_be_bytes());
                assert_eq!(joined[4..], expected[..]);
                for long in tensors.iter().filter(|t| t.len() >= SHARED_FROM) {
                    assert!(pieces.iter().any(|p| p.as_ptr() == long.as_ptr()));
                }
            }
        }
    }
}
