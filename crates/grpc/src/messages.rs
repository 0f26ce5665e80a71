//! The messages of a call as they come, with bounds on their length, their memory and the time they may take.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use galatea_frontend::{CompressionFormat, HeavyWork};
use galatea_protocol::grpc::Pieces;
use galatea_types::{MemoryBudget, MemoryReservation};
use http_body::Body as _;
use hyper::body::Incoming;
use tonic::Status;

use crate::{
    compression::decompress,
    message::{MaxLength, Message, PREFIX_LEN, over_budget},
    patience::Patience,
    state::ServerState,
    unread::Reader,
};

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
