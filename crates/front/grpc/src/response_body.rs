//! Responses in the HTTP/2 frames that carry them: messages, then the status.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, LazyLock},
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use galatea_engine::Engine;
use galatea_frontend::{Caller, CompressionFormat, HeavyWork};
use galatea_trace::SendTrace;
use http::{HeaderMap, HeaderValue, Response, header::CONTENT_TYPE};
use tonic::Status;

use crate::{
    compression::{self, compress},
    load_report::{self, Reporter},
    message::{PREFIX_LEN, prefix},
    piece::Piece,
    state::ServerState,
    stream::InferStream,
};

/// The only message of a response in frames, then the status.
pub(crate) struct MessageBody {
    pieces: VecDeque<Bytes>,
    /// The end of its trace, if the request is traced.
    pub sending: Option<SendTrace>,
    /// The trailers, unless they are those of every good response.
    trailers: Option<Box<HeaderMap>>,
}

impl MessageBody {
    pub fn new(pieces: Vec<Bytes>) -> Self {
        Self { pieces: pieces.into(), sending: None, trailers: None }
    }

    /// Returns the body of a message without prefix, compressed if that makes it shorter.
    pub async fn compressed(
        pieces: Vec<Bytes>,
        format: CompressionFormat,
        state: &ServerState,
    ) -> Self {
        Self::new(compress(pieces, format, &state.options.heavy_work).await)
    }

    /// Returns the body of a message that may have `most` bytes.
    pub fn of(message: &impl prost::Message, most: usize) -> Result<Self, Status> {
        let length = message.encoded_len();
        if length > most {
            return Err(Status::out_of_range(format!(
                "Error, encoded message length too large: found {length} bytes, the limit is: {most} bytes"
            )));
        }
        let mut bytes = BytesMut::with_capacity(PREFIX_LEN + length);
        bytes.extend_from_slice(&prefix(length));
        // A growing buffer has room for every message.
        let _ = message.encode(&mut bytes);
        Ok(Self::new(vec![bytes.freeze()]))
    }

    pub fn empty() -> Self {
        Self::new(vec![Bytes::from_static(&[0; PREFIX_LEN])])
    }

    /// Adds a load report to the trailers.
    pub fn add_report(&mut self, engine: &Engine, caller: &Caller) {
        let trailers = self.trailers.get_or_insert_with(|| Box::new(GOOD.clone()));
        load_report::add_to(trailers, engine, caller);
    }

    /// Returns the number of unsent bytes.
    pub fn size(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    pub fn next_piece(&mut self) -> Piece {
        let piece = next_data(&mut self.pieces);
        piece.map_or_else(
            || {
                self.sending.take().into_iter().for_each(SendTrace::finish);
                let own = self.trailers.take();
                Piece::Status(own.map_or_else(|| trailers(&Status::ok("")), |own| *own))
            },
            Piece::Data,
        )
    }
}

/// The messages of a stream in frames, then the status.
pub(crate) struct StreamBody {
    messages: Box<InferStream>,
    pieces: VecDeque<Bytes>,
    /// The compression format of messages, and the pool that compresses long ones.
    compression: Option<(CompressionFormat, Arc<HeavyWork>)>,
    compressing: Option<Compressing>,
    /// The writer of the report in the trailers, if they have one.
    reporter: Option<Reporter>,
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
            reporter: None,
        }
    }

    pub fn with_reporter(self, reporter: Option<Reporter>) -> Self {
        Self { reporter, ..self }
    }

    fn begin(&mut self, pieces: Vec<Bytes>) {
        match self.compression.clone() {
            None => self.pieces = pieces.into(),
            Some((format, heavy_work)) => {
                let compressing = async move { compress(pieces, format, &heavy_work).await };
                self.compressing = Some(Box::pin(compressing));
            }
        }
    }

    /// Returns the next piece. Must not be called after the status.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Piece> {
        loop {
            if let Some(piece) = next_data(&mut self.pieces) {
                return Poll::Ready(Piece::Data(piece));
            }
            if let Some(compressing) = &mut self.compressing {
                self.pieces = ready!(compressing.as_mut().poll(cx)).into();
                self.compressing = None;
                continue;
            }
            let status = match ready!(self.messages.poll_next(cx)) {
                Some(Ok(pieces)) => {
                    self.begin(pieces);
                    continue;
                }
                Some(Err(status)) => status,
                None => Status::ok(""),
            };
            let mut trailers = trailers(&status);
            if let Some(reporter) = &self.reporter {
                reporter.add_to(&mut trailers);
            }
            return Poll::Ready(Piece::Status(trailers));
        }
    }
}

/// The most bytes given to the connection at a time. It asks for more when the client has read them, which shows that a
/// client reads.
const MAX_PIECE: usize = 64 << 10;

fn next_data(pieces: &mut VecDeque<Bytes>) -> Option<Bytes> {
    match pieces.front_mut() {
        Some(piece) if piece.len() > MAX_PIECE => Some(piece.split_to(MAX_PIECE)),
        _ => pieces.pop_front(),
    }
}

/// Returns a status as the trailers of a response.
pub(crate) fn trailers(status: &Status) -> HeaderMap {
    if status.code() == tonic::Code::Ok {
        return GOOD.clone();
    }
    let mut trailers = HeaderMap::with_capacity(2);
    if status.add_header(&mut trailers).is_err() {
        // No header can carry this text, but one can carry the code, which is a number.
        trailers.insert(Status::GRPC_STATUS, HeaderValue::from(i32::from(status.code())));
    }
    trailers
}

/// The trailers of a good response. They are copied, because building them takes several times as long.
static GOOD: LazyLock<HeaderMap> =
    LazyLock::new(|| [(Status::GRPC_STATUS, HeaderValue::from_static("0"))].into_iter().collect());

/// The head of a response that is not compressed.
static HEAD: LazyLock<HeaderMap> = LazyLock::new(|| {
    let mut head = HeaderMap::with_capacity(2);
    head.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    compression::announce(None, &mut head);
    head
});

/// Returns a response with the messages of `body`, compressed in this format.
pub(crate) fn response<B>(body: B, format: Option<CompressionFormat>) -> Response<B> {
    let mut response = Response::new(body);
    *response.headers_mut() = HEAD.clone();
    if format.is_some() {
        compression::announce(format, response.headers_mut());
    }
    response
}
