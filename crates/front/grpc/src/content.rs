//! The content of a response, piece by piece.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use galatea_frontend::catch_panic_in_poll;
use http_body::Body as _;
use tonic::{Status, body::Body};

use crate::{
    health::HealthWatch,
    load_report::LoadStream,
    panic_text::{CALL, INTERNAL_ERROR},
    piece::Piece,
    response_body::{self, MessageBody, StreamBody},
};

#[derive(Default)]
pub(crate) enum Content {
    /// No content: the head has the status.
    #[default]
    Nothing,
    Message(MessageBody),
    Stream(StreamBody),
    Watch(Box<HealthWatch>),
    LoadReports(Box<LoadStream>),
    /// Made by the library's service. It lasts as long as the client wants.
    Reflection(Body),
}

impl Content {
    /// Returns the bytes of a single message; 0 for a stream, whose size is not known.
    pub fn size(&self) -> u64 {
        match self {
            Self::Message(message) => message.size() as u64,
            _ => 0,
        }
    }

    /// Returns `true` if its client decides when it ends.
    pub fn is_lasting(&self) -> bool {
        !matches!(self, Self::Nothing | Self::Message(_))
    }

    pub fn is_finished(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Reflection(body) => body.is_end_stream(),
            _ => false,
        }
    }

    /// Returns the next piece. Must not be called after the last piece.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Piece> {
        match self {
            Self::Nothing => Poll::Ready(Piece::Broken),
            Self::Message(message) => Poll::Ready(message.next_piece()),
            _ => self.poll_lasting(cx),
        }
    }

    /// Catches panics: a streaming call does its work while its body is polled.
    fn poll_lasting(&mut self, cx: &mut Context<'_>) -> Poll<Piece> {
        let polled = catch_panic_in_poll(CALL, || match self {
            Self::Stream(stream) => stream.poll_piece(cx),
            Self::Watch(watch) => watch.poll_next(cx).map(piece_of),
            Self::LoadReports(reports) => reports.poll_next(cx).map(piece_of),
            Self::Reflection(body) => poll_body(body, cx),
            Self::Nothing | Self::Message(_) => Poll::Ready(Piece::Broken),
        });
        polled.unwrap_or_else(|| {
            *self = Self::Nothing;
            Poll::Ready(Piece::Status(response_body::trailers(&Status::internal(INTERNAL_ERROR))))
        })
    }
}

/// Returns the piece for the next message, or for the status that ends the call.
fn piece_of(message: Result<impl prost::Message, Status>) -> Piece {
    let message = message.and_then(|message| MessageBody::of(&message, usize::MAX));
    message.map_or_else(|s| Piece::Status(response_body::trailers(&s)), |mut m| m.next_piece())
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
