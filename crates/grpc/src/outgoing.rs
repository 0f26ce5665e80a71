//! Responses in the HTTP/2 frames they are sent in: messages, then the status.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use galatea_frontend::{CompressionFormat, HeavyWork};
use galatea_proto::inference::{ModelInferResponse, ModelStreamInferResponse};
use galatea_protocol::grpc::{encode_message, encode_stream_message};
use http::{HeaderMap, HeaderValue, Response, header::CONTENT_TYPE};
use http_body::Frame;
use tonic::Status;

use crate::{
    compression::{self, compress},
    message::{PREFIX_LEN, prefix},
    state::ServerState,
    stream::InferStream,
};

/// The one message of a response in frames, then the status.
pub(crate) struct MessageBody {
    pieces: VecDeque<Bytes>,
    has_sent_status: bool,
}

impl MessageBody {
    pub fn new(message: ModelInferResponse) -> Self {
        Self { pieces: encode_message(message, prefix).into(), has_sent_status: false }
    }

    /// The same, compressed where that makes it shorter.
    pub async fn compressed(
        message: ModelInferResponse,
        format: CompressionFormat,
        state: &ServerState,
    ) -> Self {
        let pieces = encode_message(message, |_| []);
        let pieces = compress(pieces, format, &state.options.heavy_work).await;
        Self { pieces: pieces.into(), has_sent_status: false }
    }

    /// A message without fields.
    pub fn empty() -> Self {
        let pieces = [Bytes::from_static(&[0; PREFIX_LEN])].into();
        Self { pieces, has_sent_status: false }
    }

    /// Bytes that are not yet sent.
    pub fn size(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    pub fn next_frame(&mut self) -> Option<Frame<Bytes>> {
        if let Some(piece) = next_piece(&mut self.pieces) {
            return Some(Frame::data(piece));
        }
        (!std::mem::replace(&mut self.has_sent_status, true))
            .then(|| Frame::trailers(trailers(&Status::ok(""))))
    }

    pub fn is_finished(&self) -> bool {
        self.has_sent_status
    }
}

/// The messages of a stream in frames, then the status.
pub(crate) struct StreamBody {
    messages: Box<InferStream>,
    pieces: VecDeque<Bytes>,
    /// How messages are compressed, and where.
    compression: Option<(CompressionFormat, Arc<HeavyWork>)>,
    compressing: Option<Compressing>,
    has_sent_status: bool,
}

type Compressing = Pin<Box<dyn Future<Output = Vec<Bytes>> + Send>>;

impl StreamBody {
    pub fn new(
        messages: InferStream,
        format: Option<CompressionFormat>,
        state: &ServerState,
    ) -> Self {
        Self {
            messages: Box::new(messages),
            pieces: VecDeque::new(),
            compression: format.map(|format| (format, state.options.heavy_work.clone())),
            compressing: None,
            has_sent_status: false,
        }
    }

    /// Begins to send a message.
    fn begin(&mut self, message: ModelStreamInferResponse) {
        match self.compression.clone() {
            None => self.pieces = encode_stream_message(message, prefix).into(),
            Some((format, heavy_work)) => {
                let pieces = encode_stream_message(message, |_| []);
                let compressing = async move { compress(pieces, format, &heavy_work).await };
                self.compressing = Some(Box::pin(compressing));
            }
        }
    }

    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        if self.has_sent_status {
            return Poll::Ready(None);
        }
        while self.pieces.is_empty() {
            if let Some(compressing) = &mut self.compressing {
                self.pieces = ready!(compressing.as_mut().poll(cx)).into();
                self.compressing = None;
                continue;
            }
            let status = match ready!(self.messages.poll_next(cx)) {
                Some(Ok(message)) => {
                    self.begin(message);
                    continue;
                }
                Some(Err(status)) => status,
                None => Status::ok(""),
            };
            self.has_sent_status = true;
            return Poll::Ready(Some(Frame::trailers(trailers(&status))));
        }
        Poll::Ready(next_piece(&mut self.pieces).map(Frame::data))
    }

    pub fn is_finished(&self) -> bool {
        self.has_sent_status
    }
}

/// Most bytes handed to the connection at a time: it asks for more when the client has taken them, by which it is seen
/// that a client reads.
const MAX_PIECE: usize = 64 << 10;

fn next_piece(pieces: &mut VecDeque<Bytes>) -> Option<Bytes> {
    match pieces.front_mut() {
        Some(piece) if piece.len() > MAX_PIECE => Some(piece.split_to(MAX_PIECE)),
        _ => pieces.pop_front(),
    }
}

/// A status as what ends a response.
pub(crate) fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(2);
    if status.code() == tonic::Code::Ok {
        trailers.insert(Status::GRPC_STATUS, HeaderValue::from_static("0"));
    } else if status.add_header(&mut trailers).is_err() {
        // A text that no header can carry: the code alone, which is a number, can be.
        trailers.insert(Status::GRPC_STATUS, HeaderValue::from(i32::from(status.code())));
    }
    trailers
}

/// A response whose messages come in `body`, compressed in that format.
pub(crate) fn response<B>(body: B, format: Option<CompressionFormat>) -> Response<B> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    compression::announce(format, response.headers_mut());
    response
}
