//! The body of a response: where its frames come from, and what is held until it has gone out.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use galatea_frontend::{CallGuard, RequestGuard, catch_panic_in_poll};
use galatea_types::MemoryReservation;
use http_body::{Body, Frame};
use tonic::Status;

use crate::{
    call_task::Progress,
    outgoing::{self, MessageBody, StreamBody},
};

/// The name of a call in the log.
pub(crate) const CALL: &str = "a gRPC call";
pub(crate) const INTERNAL_ERROR: &str = "an internal error ended this call";

/// What a call holds until its response has gone out.
pub(crate) struct Held {
    /// Unless the exit need not wait for it.
    _guard: Option<RequestGuard>,
    _call: CallGuard,
    _memory: MemoryReservation,
}

impl Held {
    /// What a call with such a response holds.
    pub fn new(
        content: &Content,
        guard: RequestGuard,
        call: CallGuard,
        mut memory: MemoryReservation,
    ) -> Self {
        if let Content::Message(message) = content {
            memory.grow(message.size());
        }
        // A stream counts itself while it has requests.
        let is_unary = !matches!(content, Content::Watch(_) | Content::Stream(_));
        let guard = is_unary.then_some(guard);
        Self { _guard: guard, _call: call, _memory: memory }
    }
}

/// A response body that keeps its call counted until it has gone out.
#[derive(Default)]
pub(crate) struct CallBody {
    content: Content,
    progress: Arc<Progress>,
    _held: Option<Held>,
}

impl CallBody {
    pub fn new(content: Content, held: Held) -> Self {
        Self { content, progress: Progress::of_this_call(), _held: Some(held) }
    }
}

pub(crate) enum Content {
    /// Made by the generated service.
    Generated(tonic::body::Body),
    Message(MessageBody),
    Stream(StreamBody),
    /// Made by the generated service, and lasting as long as the client wants.
    Watch(tonic::body::Body),
}

impl Content {
    /// Bytes of the one message that it is; of a stream they are not known.
    pub fn size(&self) -> u64 {
        match self {
            Self::Generated(body) => body.size_hint().exact().unwrap_or_default(),
            Self::Message(message) => message.size() as u64,
            Self::Stream(_) | Self::Watch(_) => 0,
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::Generated(tonic::body::Body::empty())
    }
}

type Polled = Poll<Option<Result<Frame<Bytes>, Status>>>;

/// A streaming call does its work while its body is polled, so the panic wall is here too.
fn poll_stream(content: &mut Content, cx: &mut Context<'_>) -> Polled {
    let polled = catch_panic_in_poll(CALL, || match content {
        Content::Stream(stream) => stream.poll_frame(cx).map(|frame| frame.map(Ok)),
        Content::Watch(body) => Pin::new(body).poll_frame(cx),
        Content::Generated(_) | Content::Message(_) => Poll::Ready(None),
    });
    polled.unwrap_or_else(|| {
        *content = Content::default();
        let trailers = outgoing::trailers(&Status::internal(INTERNAL_ERROR));
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    })
}

impl Body for CallBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let polled = match &mut self.content {
            Content::Generated(body) => Pin::new(body).poll_frame(cx),
            Content::Message(message) => Poll::Ready(message.next_frame().map(Ok)),
            Content::Stream(_) | Content::Watch(_) => poll_stream(&mut self.content, cx),
        };
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.progress.has_taken(frame.data_ref().map_or(0, Bytes::len));
            }
            Poll::Ready(_) | Poll::Pending => self.progress.has_nothing(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Generated(body) | Content::Watch(body) => body.is_end_stream(),
            Content::Message(message) => message.is_finished(),
            Content::Stream(stream) => stream.is_finished(),
        }
    }
}
