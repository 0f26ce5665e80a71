//! ModelInfer from the HTTP/2 frames to the HTTP/2 frames.
//!
//! The generated service would copy every message into one block on the way in and again on the way out.
//! Here the frames of a request are read in place, and the output tensors go out as frames of their own.

use std::{collections::VecDeque, future::poll_fn, pin::Pin, time::Instant};

use bytes::{Buf, BufMut, Bytes};
use galatea_proto::inference::{ModelInferRequest, ModelInferResponse};
use galatea_protocol::grpc::{Pieces, decode_message, encode_message};
use http::{HeaderMap, HeaderValue, Request, Response, header::CONTENT_TYPE};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use tonic::Status;

use crate::{deadline::deadline_of, status::status_of};

/// A flag byte and the length of the message come before it.
const PREFIX_LEN: usize = 5;

/// The one message of a call and when its client stops waiting.
pub(crate) async fn read_request(
    request: Request<Incoming>,
    max_message_size: usize,
) -> Result<(ModelInferRequest, Option<Instant>), Status> {
    let deadline = deadline_of(request.headers());
    let message = read_message(request.into_body(), max_message_size).await?;
    let message = decode_message(message).map_err(|e| status_of(&e))?;
    Ok((message, deadline))
}

async fn read_message(mut body: Incoming, max_message_size: usize) -> Result<Pieces, Status> {
    let mut pieces = Pieces::default();
    let mut length = None;
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame =
            frame.map_err(|e| Status::cancelled(format!("the request was cut off: {e}")))?;
        // Trailers of a request mean nothing to gRPC.
        let Ok(data) = frame.into_data() else { continue };
        pieces.push(data);
        if length.is_none() && pieces.remaining() >= PREFIX_LEN {
            length = Some(read_prefix(&mut pieces, max_message_size)?);
        }
        if length.is_some_and(|length| pieces.remaining() > length) {
            return Err(Status::internal("the request holds more than one message"));
        }
    }
    match length {
        Some(length) if length == pieces.remaining() => Ok(pieces),
        _ => Err(Status::internal("the request ends before its message does")),
    }
}

fn read_prefix(pieces: &mut Pieces, max_message_size: usize) -> Result<usize, Status> {
    let is_compressed = pieces.get_u8() != 0;
    let length = usize::try_from(pieces.get_u32()).unwrap_or(usize::MAX);
    if is_compressed {
        return Err(Status::unimplemented("compressed requests are not supported by this server"));
    }
    if length > max_message_size {
        return Err(Status::resource_exhausted(format!(
            "Received message larger than max ({length} vs. {max_message_size}). Use --grpc-max-message-size to \
             increase the limit."
        )));
    }
    Ok(length)
}

/// A response in frames: the message, then the status.
pub(crate) struct MessageBody {
    pieces: VecDeque<Bytes>,
    has_sent_status: bool,
}

impl MessageBody {
    pub fn next_frame(&mut self) -> Option<Frame<Bytes>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Some(Frame::data(piece));
        }
        (!std::mem::replace(&mut self.has_sent_status, true)).then(|| Frame::trailers(ok_status()))
    }

    pub fn is_finished(&self) -> bool {
        self.has_sent_status
    }
}

fn ok_status() -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(Status::GRPC_STATUS, HeaderValue::from_static("0"));
    trailers
}

pub(crate) fn write_response<B>(
    message: ModelInferResponse,
    body: impl FnOnce(MessageBody) -> B,
) -> Response<B> {
    let pieces = encode_message(message, prefix).into();
    let mut response = Response::new(body(MessageBody { pieces, has_sent_status: false }));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

/// The message's length has been checked against the limit, which fits the field.
fn prefix(length: usize) -> [u8; PREFIX_LEN] {
    let mut prefix = [0; PREFIX_LEN];
    (&mut prefix[1..]).put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    prefix
}
