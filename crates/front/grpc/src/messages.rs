//! The messages of a call as they arrive, with bounds on their length, memory and time.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use galatea_frontend::CompressionFormat;
use galatea_protocol::grpc::Pieces;
use galatea_types::MemoryReservation;
use h2::{Reason, RecvStream};
use tonic::Status;

use crate::{
    compression::decompress,
    message::{MaxLength, Message, PREFIX_LEN, over_budget},
    receive_timeout::ReceiveTimeout,
    state::ServerState,
    unread_bytes::Reader,
};

pub(crate) enum ReceivedMessage {
    Plain(Message),
    Compressed(Message, CompressionFormat),
}

pub(crate) type Decompressing = Pin<Box<dyn Future<Output = Result<Message, Status>> + Send>>;

pub(crate) struct Messages {
    body: RecvStream,
    reader: Reader,
    /// Received bytes that are not yet a message.
    received: Pieces,
    /// The prefix of the message that is arriving.
    announced: Option<MessagePrefix>,
    /// The message of a unary call, until the request has ended.
    only: Option<ReceivedMessage>,
    /// The format of messages with the compressed flag.
    format: Option<CompressionFormat>,
    /// The last message, which another thread is decompressing.
    decompressing: Option<Decompressing>,
    max_length: MaxLength,
    /// The reservation for `received`.
    memory: MemoryReservation,
    patience: ReceiveTimeout,
    state: Arc<ServerState>,
}

#[derive(Clone, Copy)]
struct MessagePrefix {
    length: usize,
    is_compressed: bool,
}

impl Messages {
    /// Returns the messages of a call. `format` is that of messages with the compressed flag.
    pub fn new(
        body: RecvStream,
        format: Option<CompressionFormat>,
        reader: Reader,
        max_length: MaxLength,
        state: &Arc<ServerState>,
    ) -> Self {
        Self {
            body,
            reader,
            received: Pieces::default(),
            announced: None,
            only: None,
            format,
            decompressing: None,
            max_length,
            memory: state.options.memory.reservation(),
            patience: ReceiveTimeout::new(state.options.limits.settings()),
            state: state.clone(),
        }
    }

    /// Returns the next message; `None` at the end of the stream. The client may take any time between messages.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Message, Status>>> {
        loop {
            if let Some(decompressing) = &mut self.decompressing {
                let message = ready!(decompressing.as_mut().poll(cx));
                self.decompressing = None;
                return Poll::Ready(Some(message));
            }
            match self.take_message() {
                Err(status) => return Poll::Ready(Some(Err(status))),
                Ok(Some(ReceivedMessage::Plain(message))) => return Poll::Ready(Some(Ok(message))),
                Ok(Some(ReceivedMessage::Compressed(message, format))) => {
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

    /// Returns the only message of a unary call, as received.
    pub fn poll_only(&mut self, cx: &mut Context<'_>) -> Poll<Result<ReceivedMessage, Status>> {
        loop {
            if self.only.is_none() {
                self.only = self.take_message()?;
            }
            if self.only.is_some() && self.received.has_remaining() {
                let text = "the request holds more than one message";
                return Poll::Ready(Err(Status::internal(text)));
            }
            if !ready!(self.poll_more(cx, true))? {
                return Poll::Ready(self.only.take().ok_or_else(cut_short));
            }
        }
    }

    /// Returns the only message of a unary call, decompressed.
    pub async fn only(mut self) -> Result<Message, Status> {
        match poll_fn(|cx| self.poll_only(cx)).await? {
            ReceivedMessage::Plain(message) => Ok(message),
            ReceivedMessage::Compressed(message, format) => self.decompress(message, format).await,
        }
    }

    pub fn decompress(&self, message: Message, format: CompressionFormat) -> Decompressing {
        let (max_length, state) = (self.max_length, self.state.clone());
        Box::pin(
            async move { decompress(message, format, max_length, &state.options.heavy_work).await },
        )
    }

    fn take_message(&mut self) -> Result<Option<ReceivedMessage>, Status> {
        if self.announced.is_none() && self.received.remaining() >= PREFIX_LEN {
            self.announced = Some(self.read_prefix()?);
        }
        let is_there = |announced: &MessagePrefix| self.received.remaining() >= announced.length;
        let Some(MessagePrefix { length, is_compressed }) = self.announced.filter(is_there) else {
            return Ok(None);
        };
        self.announced = None;
        let bytes = self.received.split_to(length);
        let message = Message { bytes, memory: self.split_memory(length) };
        if !is_compressed {
            return Ok(Some(ReceivedMessage::Plain(message)));
        }
        let format = self.format.ok_or_else(|| {
            Status::internal(
                "a message is flagged as compressed, but grpc-encoding does not say how",
            )
        })?;
        Ok(Some(ReceivedMessage::Compressed(message, format)))
    }

    /// Splits the reservation: the taken message keeps its length, and the rest stays with the remaining bytes.
    fn split_memory(&mut self, length: usize) -> MemoryReservation {
        let mut rest = self.memory.sibling();
        rest.grow(self.received.remaining());
        let mut taken = std::mem::replace(&mut self.memory, rest);
        taken.shrink_to(length);
        taken
    }

    fn read_prefix(&mut self) -> Result<MessagePrefix, Status> {
        let flag = self.received.get_u8();
        let length = usize::try_from(self.received.get_u32()).unwrap_or(usize::MAX);
        if flag > 1 {
            let text = format!("the flag before a message is {flag}, and neither 0 nor 1");
            return Err(Status::internal(text));
        }
        self.max_length.check(length)?;
        Ok(MessagePrefix { length, is_compressed: flag == 1 })
    }

    /// Receives more bytes; `false` at the end.
    fn poll_more(&mut self, cx: &mut Context<'_>, is_awaited: bool) -> Poll<Result<bool, Status>> {
        let Poll::Ready(data) = self.body.poll_data(cx) else {
            return self.poll_patience(cx, is_awaited);
        };
        // gRPC gives no meaning to trailers of a request.
        let Some(data) = data else { return Poll::Ready(Ok(false)) };
        let data = match data {
            Ok(data) => data,
            // The client has sent everything that it wanted to.
            Err(error) if error.reason() == Some(Reason::NO_ERROR) => {
                return Poll::Ready(Ok(false));
            }
            Err(_) => return Poll::Ready(Err(Status::cancelled(CUT_OFF))),
        };
        // Fails only if the call has ended; nothing waits for it then.
        let _ = self.body.flow_control().release_capacity(data.len());
        self.reader.record_read(data.len());
        self.memory.try_grow(data.len()).map_err(over_budget)?;
        self.patience.progress(data.len());
        self.received.push(data);
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

/// Only the log shows this, because the client or the connection is gone.
const CUT_OFF: &str = "the request was cut off: error reading a body from connection";

fn cut_short() -> Status {
    Status::internal("the request ends before its message does")
}
