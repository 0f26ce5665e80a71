//! Calls with one request and one response.

use std::{slice, time::Instant};

use bytes::{Bytes, BytesMut};
use galatea_types::{Error, Result};
use h2::{Reason, RecvStream, SendStream, client::ResponseFuture};
use http::{HeaderMap, Request, Response};

use super::{
    GrpcCaller, GrpcInfer,
    compression::decompress,
    message::{Message, MessageReader},
    outputs, status,
};
use crate::{
    CallTimes, InferMark, KeepResponse, Reply, request_error::RequestError,
    response_error::ResponseError,
};

/// A response's message, empty if it is not kept.
struct Answer {
    message: Bytes,
    times: CallTimes,
}

/// The reason why a call failed, which decides about a second attempt.
enum Failure {
    /// The connection ended before any part of a response had come.
    NotBegun(h2::Error),
    Final(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Final(error)
    }
}

impl GrpcCaller {
    pub async fn infer(
        &mut self,
        request: &GrpcInfer,
        mark: InferMark,
        keep: KeepResponse,
    ) -> Result<Reply> {
        let start = Instant::now();
        let front = request.front(mark)?;
        let head = Request::clone(&self.infer);
        let answer = self.call(head, front, request.tail(), keep == KeepResponse::Outputs).await?;
        let outputs = match keep {
            KeepResponse::Nothing => Vec::new(),
            KeepResponse::Outputs => outputs::decode(answer.message)?,
        };
        Ok(Reply { times: CallTimes { start, ..answer.times }, outputs })
    }

    /// Makes another call: `message` has its prefix.
    pub async fn exchange(&mut self, head: Request<()>, message: Bytes) -> Result<Bytes> {
        Ok(self.call(head, message, [].iter(), true).await?.message)
    }

    /// Makes the call, once more if the server had closed an idle connection.
    async fn call(
        &mut self,
        head: Request<()>,
        front: Bytes,
        tail: slice::Iter<'_, Bytes>,
        keep: bool,
    ) -> Result<Answer> {
        self.ready().await?;
        let failure = match self.attempt(head.clone(), front.clone(), tail.clone(), keep).await {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        let failure = match failure {
            Failure::NotBegun(error) if self.channel.answered.get() && may_repeat(&error) => {
                self.reconnect().await?;
                self.ready().await?;
                match self.attempt(head, front, tail, keep).await {
                    Ok(answer) => return Ok(answer),
                    Err(failure) => failure,
                }
            }
            failure => failure,
        };
        Err(match failure {
            Failure::NotBegun(error) => self.channel.broken(error),
            Failure::Final(error) => error,
        })
    }

    async fn attempt(
        &mut self,
        head: Request<()>,
        front: Bytes,
        tail: slice::Iter<'_, Bytes>,
        keep: bool,
    ) -> Result<Answer, Failure> {
        let start = Instant::now();
        let sending = self.link.send.send_request(head, false);
        let (response, mut body) = sending.map_err(Failure::NotBegun)?;
        send(&mut body, front, tail).map_err(Failure::NotBegun)?;
        let sent = Instant::now();
        let response = self.head(response).await?;
        let first_byte = Instant::now();
        let message = self.body(response, keep).await?;
        let end = Instant::now();
        Ok(Answer { message, times: CallTimes { start, sent, first_byte, end } })
    }

    async fn head(&self, response: ResponseFuture) -> Result<Response<RecvStream>, Failure> {
        let response = response.await.map_err(Failure::NotBegun)?;
        self.channel.answered.set(true);
        if let Some(Err(error)) = status::find(response.headers()) {
            return Err(Failure::Final(error));
        }
        if response.status() != 200 {
            return Err(status::not_grpc(&self.channel.route.target, response.status()).into());
        }
        Ok(response)
    }

    async fn body(&self, response: Response<RecvStream>, keep: bool) -> Result<Bytes> {
        let (head, mut body) = response.into_parts();
        let mut reader = MessageReader::default();
        let mut message = None;
        let limit = self.channel.route.response_limit;
        while let Some(piece) = body.data().await {
            let piece = piece.map_err(|error| self.channel.broken(error))?;
            // Cannot fail: no more is released than was received.
            let _ = body.flow_control().release_capacity(piece.len());
            if keep {
                reader.push(piece);
                reader.check_length(limit)?;
                message = message.or_else(|| reader.next());
            }
        }
        let trailers = body.trailers().await.map_err(|error| self.channel.broken(error))?;
        match trailers.as_ref().and_then(status::find) {
            Some(ended) => ended?,
            // A good status came with the headers.
            None if status::find(&head.headers).is_some() => {}
            None => return Err(ResponseError::NoStatus.into()),
        }
        match message {
            Some(message) => plain(message, &head.headers, limit),
            None if keep => Err(ResponseError::NoMessage.into()),
            None => Ok(Bytes::new()),
        }
    }
}

/// Returns the message, decompressed.
pub(super) fn plain(message: Message, headers: &HeaderMap, limit: usize) -> Result<Bytes> {
    if !message.is_compressed {
        return Ok(message.bytes);
    }
    let encoding = headers.get("grpc-encoding").and_then(|value| value.to_str().ok());
    let plain = decompress(encoding.unwrap_or("identity"), &message.bytes, limit);
    let plain = plain.map_err(ResponseError::Decompression)?;
    Ok(plain.ok_or(ResponseError::TooLong { limit })?)
}

/// Queues the whole message on the connection, which holds references and sends as fast as the server reads.
fn send(
    body: &mut SendStream<Bytes>,
    front: Bytes,
    tail: slice::Iter<'_, Bytes>,
) -> Result<(), h2::Error> {
    let mut left = tail.len();
    body.send_data(front, left == 0)?;
    for part in tail {
        left -= 1;
        body.send_data(part.clone(), left == 0)?;
    }
    Ok(())
}

/// Returns true if the server cannot have started the call, or an idle connection was dead.
fn may_repeat(error: &h2::Error) -> bool {
    error.is_io()
        || error.reason() == Some(Reason::REFUSED_STREAM)
        || error.is_go_away() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR)
}

/// Returns a message in one buffer, with its prefix.
pub(super) fn framed(message: &impl prost::Message) -> Result<Bytes> {
    let length = message.encoded_len();
    let prefix = super::message::prefix(false, length)
        .ok_or_else(|| Error::invalid_arg("the request is too long for gRPC"))?;
    let mut bytes = BytesMut::with_capacity(prefix.len() + length);
    bytes.extend_from_slice(&prefix);
    message.encode(&mut bytes).map_err(RequestError::Encode)?;
    Ok(bytes.freeze())
}
