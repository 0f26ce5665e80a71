//! The bodies of responses.

use std::{
    borrow::Cow,
    sync::Arc,
    task::{Context, Poll},
    vec,
};

use bytes::Bytes;
use galatea_types::MemoryBudget;

use crate::response::{counted_bytes::counted, events::EventBody, streamed_body::StreamedBody};

pub(crate) enum Body {
    Whole(Pieces),
    Streamed(Box<StreamedBody>),
    Events(Box<EventBody>),
}

/// Complete pieces, written with one system call if the socket accepts them.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    first: Option<Bytes>,
    rest: vec::IntoIter<Bytes>,
    length: u64,
    is_chunked: bool,
}

impl Body {
    pub fn pieces(first: Bytes, rest: Vec<Bytes>) -> Self {
        let length = rest.iter().fold(first.len() as u64, |sum, piece| sum + piece.len() as u64);
        Self::Whole(Pieces {
            first: Some(first).filter(|f| !f.is_empty()),
            rest: rest.into_iter(),
            length,
            is_chunked: false,
        })
    }

    /// Returns the first piece of a complete body as text, which is the whole of an error.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Whole(Pieces { first: Some(first), .. }) => String::from_utf8_lossy(first),
            _ => Cow::Borrowed(""),
        }
    }

    /// Returns the bytes of a complete body; 0 for others.
    pub fn length(&self) -> u64 {
        match self {
            Self::Whole(pieces) => pieces.length,
            Self::Streamed(_) | Self::Events(_) => 0,
        }
    }

    /// Returns the bytes left, if the head announces the length.
    pub fn known_length(&self) -> Option<u64> {
        match self {
            Self::Whole(pieces) if !pieces.is_chunked || pieces.length == 0 => Some(pieces.length),
            _ => None,
        }
    }

    /// Returns the next piece; `None` at the end.
    pub fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self {
            Self::Whole(pieces) => Poll::Ready(pieces.next()),
            Self::Streamed(streamed) => streamed.poll_piece(context),
            Self::Events(events) => events.poll_piece(context),
        }
    }

    /// Returns `true` if no further piece can come.
    pub fn is_ended(&self) -> bool {
        match self {
            Self::Whole(pieces) => pieces.length == 0,
            Self::Streamed(streamed) => streamed.is_ended(),
            Self::Events(events) => events.is_ended(),
        }
    }

    pub fn count_to(&mut self, budget: &Arc<MemoryBudget>) {
        if let Self::Whole(pieces) = self {
            pieces.first = pieces.first.take().map(|piece| counted(piece, budget));
            if !pieces.rest.as_slice().is_empty() {
                let rest = std::mem::take(&mut pieces.rest);
                pieces.rest =
                    rest.map(|piece| counted(piece, budget)).collect::<Vec<_>>().into_iter();
            }
        }
    }

    /// Returns a body of one chunk, without a length in the head.
    pub fn one_chunk(content: Vec<u8>) -> Self {
        let length = content.len() as u64;
        let rest = vec::IntoIter::default();
        Self::Whole(Pieces { first: Some(content.into()), rest, length, is_chunked: true })
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::Whole(Pieces::default())
    }
}

impl From<Vec<u8>> for Body {
    fn from(content: Vec<u8>) -> Self {
        Self::pieces(Bytes::from(content), Vec::new())
    }
}

impl Pieces {
    fn next(&mut self) -> Option<Bytes> {
        let piece = self.first.take().or_else(|| self.rest.next())?;
        self.length = self.length.saturating_sub(piece.len() as u64);
        Some(piece)
    }
}
