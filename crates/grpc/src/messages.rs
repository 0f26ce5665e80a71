//! The messages of a call as they come, with bounds on their length, their memory and the time they may take.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use galatea_protocol::grpc::Pieces;
use galatea_types::{MemoryBudget, MemoryReservation, OverBudget};
use http_body::Body as _;
use hyper::body::Incoming;
use tonic::Status;

use crate::{patience::Patience, state::ServerState, unread::Reader};

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
    fn check(self, length: usize) -> Result<(), Status> {
        let (limit, advice) = match self {
            Self::Option(limit) => (limit, ". Use --grpc-max-message-size to increase the limit."),
            Self::Small => (MAX_SMALL_MESSAGE, ""),
        };
        if length <= limit {
            return Ok(());
        }
        let text = format!("Received message larger than max ({length} vs. {limit}){advice}");
        Err(Status::resource_exhausted(text))
    }
}

/// One message, and what it holds of the server's budget.
#[derive(Debug)]
pub(crate) struct Message {
    pub bytes: Pieces,
    pub memory: MemoryReservation,
}

/// Reads the messages of one call.
pub(crate) struct Messages {
    body: Incoming,
    reader: Reader,
    /// What has come and is no message yet.
    received: Pieces,
    /// The length of the message that is coming.
    length: Option<usize>,
    max_length: MaxLength,
    /// Of `received`.
    memory: MemoryReservation,
    budget: Arc<MemoryBudget>,
    patience: Patience,
}

impl Messages {
    pub fn new(body: Incoming, reader: Reader, max_length: MaxLength, state: &ServerState) -> Self {
        Self {
            body,
            reader,
            received: Pieces::default(),
            length: None,
            max_length,
            memory: state.options.memory.reservation(),
            budget: state.options.memory.clone(),
            patience: Patience::new(state.options.limits.settings()),
        }
    }

    /// The next message; `None` at the end of the stream. The client may take its time between messages.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Message, Status>>> {
        loop {
            if let Some(message) = self.take_message().transpose() {
                return Poll::Ready(Some(message));
            }
            let is_within = self.length.is_some() || self.received.has_remaining();
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
                return message.ok_or_else(cut_short);
            }
        }
    }

    fn take_message(&mut self) -> Result<Option<Message>, Status> {
        if self.length.is_none() && self.received.remaining() >= PREFIX_LEN {
            self.length = Some(self.read_prefix()?);
        }
        let Some(length) = self.length.filter(|&length| self.received.remaining() >= length) else {
            return Ok(None);
        };
        self.length = None;
        let bytes = self.received.split_to(length);
        Ok(Some(Message { bytes, memory: self.split_memory(length) }))
    }

    /// What stays is counted for what stays.
    fn split_memory(&mut self, length: usize) -> MemoryReservation {
        let mut rest = self.budget.reservation();
        rest.grow(self.received.remaining());
        let mut taken = std::mem::replace(&mut self.memory, rest);
        taken.shrink_to(length);
        taken
    }

    fn read_prefix(&mut self) -> Result<usize, Status> {
        let is_compressed = self.received.get_u8() != 0;
        let length = usize::try_from(self.received.get_u32()).unwrap_or(usize::MAX);
        if is_compressed {
            return Err(Status::unimplemented(
                "compressed requests are not supported by this server",
            ));
        }
        self.max_length.check(length)?;
        Ok(length)
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
