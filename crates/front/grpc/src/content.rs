//! The content of a response: where its pieces come from.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use galatea_frontend::catch_panic_in_poll;
use galatea_proto::health::HealthCheckResponse;
use http_body::Body as _;
use tonic::{Status, body::Body};

use crate::{
    health::HealthWatch,
    outgoing::{self, MessageBody, StreamBody},
    panicked::{CALL, INTERNAL_ERROR},
    piece::Piece,
};

#[derive(Default)]
pub(crate) enum Content {
    /// Nothing: the head has the status.
    #[default]
    Nothing,
    Message(MessageBody),
    Stream(StreamBody),
    Watch(Box<Watch>),
    /// Made by the library's service, and lasting as long as the client wants.
    Reflection(Body),
}

impl Content {
    /// Bytes of the one message that it is; of a stream they are not known.
    pub fn size(&self) -> u64 {
        match self {
            Self::Message(message) => message.size() as u64,
            Self::Nothing | Self::Stream(_) | Self::Watch(_) | Self::Reflection(_) => 0,
        }
    }

    /// Whether it ends when its client wants.
    pub fn is_lasting(&self) -> bool {
        matches!(self, Self::Watch(_) | Self::Stream(_) | Self::Reflection(_))
    }

    pub fn is_finished(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Reflection(body) => body.is_end_stream(),
            Self::Message(_) | Self::Stream(_) | Self::Watch(_) => false,
        }
    }

    /// The next piece. Not to be called behind the last.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Piece> {
        match self {
            Self::Nothing => Poll::Ready(Piece::Broken),
            Self::Message(message) => Poll::Ready(message.next_piece()),
            Self::Stream(_) | Self::Watch(_) | Self::Reflection(_) => self.poll_lasting(cx),
        }
    }

    /// A streaming call does its work while its body is polled, so the panic wall is here too.
    fn poll_lasting(&mut self, cx: &mut Context<'_>) -> Poll<Piece> {
        let polled = catch_panic_in_poll(CALL, || match self {
            Self::Stream(stream) => stream.poll_piece(cx),
            Self::Watch(watch) => watch.poll_next(cx).map(piece_of),
            Self::Reflection(body) => poll_body(body, cx),
            Self::Nothing | Self::Message(_) => Poll::Ready(Piece::Broken),
        });
        polled.unwrap_or_else(|| {
            *self = Self::Nothing;
            Poll::Ready(Piece::Status(outgoing::trailers(&Status::internal(INTERNAL_ERROR))))
        })
    }
}

/// The next change of a health, or the status that ends the watch.
fn piece_of(change: Result<HealthCheckResponse, Status>) -> Piece {
    let message = change.and_then(|change| MessageBody::of(&change, usize::MAX));
    message.map_or_else(|s| Piece::Status(outgoing::trailers(&s)), |mut m| m.next_piece())
}

fn poll_body(body: &mut Body, cx: &mut Context<'_>) -> Poll<Piece> {
    let piece = match ready!(Pin::new(body).poll_frame(cx)) {
        Some(Ok(frame)) => match frame.into_data() {
            Ok(data) => Piece::Data(data),
            Err(frame) => frame.into_trailers().map_or(Piece::Broken, Piece::Status),
        },
        Some(Err(_)) | None => Piece::Broken,
    };
    Poll::Ready(piece)
}
