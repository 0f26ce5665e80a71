//! The protocol over gRPC, directly on HTTP/2.

mod admin;
mod compression;
mod fields;
mod message;
mod metadata;
mod outputs;
mod pool;
mod request;
mod status;
mod stream;
mod unary;

use bytes::Bytes;
use galatea_types::Result;

use crate::{OutputTensor, response_error::ResponseError};

pub(crate) use admin::GrpcAdmin;
pub(crate) use pool::{GrpcCaller, GrpcPool};
pub(crate) use request::GrpcInfer;
pub(crate) use stream::{GrpcReceiver, GrpcSender};

/// The outputs in the first message of an inference response, from pieces of its body as they came: for fuzzing.
///
/// # Errors
/// If there is no whole message, or it holds tensors that cannot be read.
#[doc(hidden)]
pub fn decode_infer_message<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<OutputTensor>> {
    let mut reader = message::MessageReader::default();
    let mut message = None;
    for piece in pieces {
        reader.push(Bytes::copy_from_slice(piece));
        message = message.or_else(|| reader.next());
    }
    outputs::decode(message.ok_or(ResponseError::NoMessage)?.bytes)
}
