//! The messages of a call as they come, with bounds on their length, their memory and the time they may take.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use galatea_frontend::{CompressionFormat, HeavyWork};
use galatea_protocol::grpc::Pieces;
use galatea_types::{MemoryBudget, MemoryReservation, OverBudget};
use http_body::Body as _;
use hyper::body::Incoming;
use tonic::Status;

use crate::{compression::decompress, patience::Patience, state::ServerState, unread::Reader};

/// A flag byte and the length of the message come before it.
pub(crate) const PREFIX_LEN: usize = 5;

/// Longest message of a call that carries names and flags only.
pub(crate) const MAX_SMALL_MESSAGE: usize = 64 << 10;

/// How long a message may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MaxLength {
    /// `--grpc-max-message-size`
    Option(usize),
    /// [`MAX_SMALL_MESSAGE`]
    Small,
}

impl MaxLength {
    fn limit(self) -> usize {
        match self {
            Self::Option(limit) => limit,
            Self::Small => MAX_SMALL_MESSAGE,
        }
    }

    /// The same, and not more than `bytes`.
    pub fn at_most(self, bytes: usize) -> Self {
        Self::Option(self.limit().min(bytes))
    }

    fn check(self, length: usize) -> Result<(), Status> {
        self.check_as(length, format_args!("{length}"))
    }

    /// Of a message of which so much is decompressed.
    pub fn check_decompressed(self, length: usize) -> Result<(), Status> {
        self.check_as(length, format_args!("{length} or more when decompressed"))
    }

    fn check_as(self, length: usize, shown: fmt::Arguments<'_>) -> Result<(), Status> {
        let limit = self.limit();
        if length <= limit {
            return Ok(());
        }
        let advice = match self {
            Self::Option(_) => ". Use --grpc-max-message-size to increase the limit.",
            Self::Small => "",
        };
        let text = format!("Received message larger than max ({shown} vs. {limit}){advice}");
        Err(Status::resource_exhausted(text))
    }
}

/// One message, and what it holds of the server's budget.
#[derive(Debug)]
pub(crate) struct Message {
    pub bytes: Pieces,
    pub memory: MemoryReservation,
}

/// A message as it came.
enum Received {
    Plain(Message),
    Compressed(Message, CompressionFormat),
}

type Decompressing = Pin<Box<dyn Future<Output = Result<Message, Status>> + Send>>;

/// Reads the messages of one call.
pub(crate) struct Messages {
    body: Incoming,
    reader: Reader,
    /// What has come and is no message yet.
    received: Pieces,
    /// The message that is coming.
    announced: Option<Announced>,
    /// How messages that are flagged for it are compressed.
    format: Option<CompressionFormat>,
    /// The message that came last, on another thread.
    decompressing: Option<Decompressing>,
    max_length: MaxLength,
    /// Of `received`.
    memory: MemoryReservation,
    budget: Arc<MemoryBudget>,
    heavy_work: Arc<HeavyWork>,
    patience: Patience,
}

/// What the prefix says of its message.
#[derive(Clone, Copy)]
struct Announced {
    length: usize,
    is_compressed: bool,
}

impl Messages {
    /// `format`: of the messages that are flagged as compressed.
    pub fn new(
        body: Incoming,
        format: Option<CompressionFormat>,
        reader: Reader,
        max_length: MaxLength,
        state: &ServerState,
    ) -> Self {
        Self {
            body,
            reader,
            received: Pieces::default(),
            announced: None,
            format,
            decompressing: None,
            max_length,
            memory: state.options.memory.reservation(),
            budget: state.options.memory.clone(),
            heavy_work: state.options.heavy_work.clone(),
            patience: Patience::new(state.options.limits.settings()),
        }
    }

    /// The next message; `None` at the end of the stream. The client may take its time between messages.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Message, Status>>> {
        loop {
            if let Some(decompressing) = &mut self.decompressing {
                let message = ready!(decompressing.as_mut().poll(cx));
                self.decompressing = None;
                return Poll::Ready(Some(message));
            }
            match self.take_message() {
                Err(status) => return Poll::Ready(Some(Err(status))),
                Ok(Some(Received::Plain(message))) => return Poll::Ready(Some(Ok(message))),
                Ok(Some(Received::Compressed(message, format))) => {
                    self.decompressing = Some(self.decompress(message, format));
                    continue;
                }
                Ok(None) => {}
            }
            let is_within = self.announced.is_some() || self.received.has_remaining();
            match ready!(self.poll_more(cx, is_within)) {
                Ok(true) => {}
                Ok(false) if is_within => return Poll::Ready(Some(Err(cut_short()))),
                Ok(false) => return Poll::Ready(None),
                Err(status) => return Poll::Ready(Some(Err(status))),
            }
        }
    }

    /// The one message of a unary call.
    pub async fn only(mut self) -> Result<Message, Status> {
        let mut message = None;
        loop {
            if message.is_none() {
                message = self.take_message()?;
            }
            if message.is_some() && self.received.has_remaining() {
                return Err(Status::internal("the request holds more than one message"));
            }
            if !poll_fn(|cx| self.poll_more(cx, true)).await? {
                break;
            }
        }
        match message.ok_or_else(cut_short)? {
            Received::Plain(message) => Ok(message),
            Received::Compressed(message, format) => self.decompress(message, format).await,
        }
    }

    fn decompress(&self, message: Message, format: CompressionFormat) -> Decompressing {
        let (max_length, heavy_work) = (self.max_length, self.heavy_work.clone());
        Box::pin(async move { decompress(message, format, max_length, &heavy_work).await })
    }

    fn take_message(&mut self) -> Result<Option<Received>, Status> {
        if self.announced.is_none() && self.received.remaining() >= PREFIX_LEN {
            self.announced = Some(self.read_prefix()?);
        }
        let is_there = |announced: &Announced| self.received.remaining() >= announced.length;
        let Some(Announced { length, is_compressed }) = self.announced.filter(is_there) else {
            return Ok(None);
        };
        self.announced = None;
        let bytes = self.received.split_to(length);
        let message = Message { bytes, memory: self.split_memory(length) };
        if !is_compressed {
            return Ok(Some(Received::Plain(message)));
        }
        let format = self.format.ok_or_else(|| {
            Status::internal(
                "a message is flagged as compressed, but grpc-encoding does not say how",
            )
        })?;
        Ok(Some(Received::Compressed(message, format)))
    }

    /// What stays is counted for what stays.
    fn split_memory(&mut self, length: usize) -> MemoryReservation {
        let mut rest = self.budget.reservation();
        rest.grow(self.received.remaining());
        let mut taken = std::mem::replace(&mut self.memory, rest);
        taken.shrink_to(length);
        taken
    }

    fn read_prefix(&mut self) -> Result<Announced, Status> {
        let flag = self.received.get_u8();
        let length = usize::try_from(self.received.get_u32()).unwrap_or(usize::MAX);
        if flag > 1 {
            let text = format!("the flag before a message is {flag}, and neither 0 nor 1");
            return Err(Status::internal(text));
        }
        self.max_length.check(length)?;
        Ok(Announced { length, is_compressed: flag == 1 })
    }

    /// Takes what has come; `false` at the end.
    fn poll_more(&mut self, cx: &mut Context<'_>, is_awaited: bool) -> Poll<Result<bool, Status>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            return self.poll_patience(cx, is_awaited);
        };
        let Some(frame) = frame else { return Poll::Ready(Ok(false)) };
        let frame =
            frame.map_err(|e| Status::cancelled(format!("the request was cut off: {e}")))?;
        // Trailers of a request mean nothing to gRPC.
        if let Ok(data) = frame.into_data() {
            self.reader.has_read(data.len());
            self.memory.try_grow(data.len()).map_err(over_budget)?;
            self.patience.progress(data.len());
            self.received.push(data);
        }
        Poll::Ready(Ok(true))
    }

    fn poll_patience(
        &mut self,
        cx: &mut Context<'_>,
        is_awaited: bool,
    ) -> Poll<Result<bool, Status>> {
        if !is_awaited {
            self.patience.rest();
            return Poll::Pending;
        }
        self.patience.poll_lost(cx).map(|text| {
            Err(Status::deadline_exceeded(format!("the client sent {text} of its request")))
        })
    }
}

fn cut_short() -> Status {
    Status::internal("the request ends before its message does")
}

pub(crate) fn over_budget(error: OverBudget) -> Status {
    Status::resource_exhausted(error.to_string())
}
