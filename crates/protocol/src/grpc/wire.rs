//! Messages from and to pieces of memory, without joining them.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use galatea_proto::inference::{ModelInferRequest, ModelInferResponse};
use galatea_types::{AlignedBlock, Error, Result};
use prost::{
    Message as _,
    encoding::{WireType, encode_key, encode_varint, encoded_len_varint},
};

/// A message as it came from the network: several pieces, read as one.
///
/// A field that lies within one piece shares its memory. One that spans pieces has to be gathered, and
/// lands in an aligned block, so that a backend need not copy it again.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    pieces: VecDeque<Bytes>,
    remaining: usize,
}

impl Pieces {
    /// Appends a piece.
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.remaining += piece.len();
            self.pieces.push_back(piece);
        }
    }

    fn gather(&mut self, length: usize) -> Bytes {
        let mut block = AlignedBlock::with_capacity(length);
        let mut left = length;
        while let Some(piece) = self.pieces.front().filter(|_| left > 0) {
            let part = piece.get(..left.min(piece.len())).unwrap_or_default();
            block.extend_from_slice(part);
            let taken = part.len();
            left -= taken;
            self.advance(taken);
        }
        block.into_bytes()
    }
}

impl Buf for Pieces {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map(|p| &p[..]).unwrap_or_default()
    }

    fn advance(&mut self, mut count: usize) {
        self.remaining = self.remaining.saturating_sub(count);
        while count > 0 {
            let Some(piece) = self.pieces.front_mut() else { return };
            if count < piece.len() {
                return piece.advance(count);
            }
            count -= piece.len();
            self.pieces.pop_front();
        }
    }

    fn copy_to_bytes(&mut self, length: usize) -> Bytes {
        match self.pieces.front_mut() {
            Some(piece) if length < piece.len() => {
                self.remaining -= length;
                piece.split_to(length)
            }
            Some(piece) if length == piece.len() => {
                self.remaining -= length;
                self.pieces.pop_front().unwrap_or_default()
            }
            _ => self.gather(length),
        }
    }
}

/// Reads a request. Tensor contents share the memory of `message` where they can.
pub fn decode_message(message: Pieces) -> Result<ModelInferRequest> {
    ModelInferRequest::decode(message)
        .map_err(|e| Error::internal("Unable to parse request").with_source(e))
}

/// Field number of `raw_output_contents`, the last field of the response.
const RAW_OUTPUT_CONTENTS: u32 = 6;

/// Tensors shorter than this are copied beside the rest: a piece of its own would cost more.
const SHARED_FROM: usize = 16 << 10;

/// Writes a response as pieces in order. `prefix` comes before them, in the memory of the first piece; it
/// is called with the length of the message. Long tensors are pieces of their own and are not copied.
pub fn encode_message<const N: usize>(
    mut message: ModelInferResponse,
    prefix: impl FnOnce(usize) -> [u8; N],
) -> Vec<Bytes> {
    let tensors = std::mem::take(&mut message.raw_output_contents);
    let head_len = message.encoded_len();
    let tensor_len: usize = tensors.iter().map(field_len).sum();
    let copied_len: usize = tensors.iter().filter(|t| t.len() < SHARED_FROM).map(field_len).sum();
    let mut out =
        BytesMut::with_capacity(N + head_len + copied_len + tensors.len() * FIELD_HEAD_MAX);
    out.put_slice(&prefix(head_len.saturating_add(tensor_len)));
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
const FIELD_HEAD_MAX: usize = 11;

fn field_len(tensor: &Bytes) -> usize {
    1 + encoded_len_varint(tensor.len() as u64) + tensor.len()
}

#[cfg(test)]
mod tests {
    use galatea_proto::inference::{InferParameter, model_infer_request::InferInputTensor};

    use super::*;

    fn request(tensors: &[usize]) -> ModelInferRequest {
        ModelInferRequest {
            model_name: "model".into(),
            id: "i".repeat(200),
            parameters: [("p".to_owned(), InferParameter::default())].into(),
            inputs: tensors
                .iter()
                .map(|&n| InferInputTensor { shape: vec![n as i64, 300], ..Default::default() })
                .collect(),
            raw_input_contents: tensors
                .iter()
                .map(|&n| (0..n).map(|i| i as u8).collect::<Vec<_>>().into())
                .collect(),
            ..Default::default()
        }
    }

    fn cut(whole: &Bytes, size: usize) -> Pieces {
        let mut pieces = Pieces::default();
        for start in (0..whole.len()).step_by(size) {
            pieces.push(whole.slice(start..whole.len().min(start + size)));
        }
        pieces
    }

    #[test]
    fn a_request_reads_the_same_however_it_is_cut() {
        let request = request(&[0, 1, 77, 5000]);
        let whole = Bytes::from(request.encode_to_vec());
        for size in [1, 2, 3, 7, 64, 1000, whole.len()] {
            assert_eq!(decode_message(cut(&whole, size)).expect("whole"), request, "{size}");
        }
    }

    #[test]
    fn a_tensor_within_one_piece_is_shared_and_one_across_pieces_is_aligned() {
        let whole = Bytes::from(request(&[5000]).encode_to_vec());
        let shared = decode_message(cut(&whole, whole.len())).expect("whole");
        assert!(whole.as_ptr_range().contains(&shared.raw_input_contents[0].as_ptr()));
        let gathered = decode_message(cut(&whole, 1000)).expect("whole");
        assert!(gathered.raw_input_contents[0].as_ptr().addr().is_multiple_of(64));
    }

    #[test]
    fn a_cut_off_request_is_an_error() {
        let whole = Bytes::from(request(&[50, 3]).encode_to_vec());
        // A length greater than what there is must fail before anything is allocated for it.
        let huge = Bytes::from_static(&[0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 2]);
        for bad in [whole.slice(..whole.len() - 1), huge, Bytes::from_static(&[0xff; 3])] {
            for size in [1, 5, bad.len()] {
                let error = decode_message(cut(&bad, size)).expect_err("cut off");
                assert_eq!(error.message(), "Unable to parse request");
            }
        }
    }

    #[test]
    fn responses_are_what_prost_writes_and_long_tensors_are_not_copied() {
        for sizes in [&[][..], &[0], &[3], &[SHARED_FROM], &[3, SHARED_FROM, 0, 40_000, 5]] {
            let tensors: Vec<Bytes> = sizes.iter().map(|&n| vec![n as u8; n].into()).collect();
            let message = ModelInferResponse {
                model_name: "m".into(),
                raw_output_contents: tensors.clone(),
                ..Default::default()
            };
            let expected = message.encode_to_vec();
            let pieces = encode_message(message, |length| (length as u32).to_be_bytes());
            let joined = pieces.concat();
            assert_eq!(joined[..4], (expected.len() as u32).to_be_bytes());
            assert_eq!(joined[4..], expected[..]);
            for long in tensors.iter().filter(|t| t.len() >= SHARED_FROM) {
                assert!(pieces.iter().any(|p| p.as_ptr() == long.as_ptr()));
            }
        }
    }
}
