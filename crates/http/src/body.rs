//! The bodies of responses.

use std::{
    borrow::Cow,
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    vec,
};

use bytes::Bytes;
use galatea_types::MemoryBudget;
use http_body::{Frame, SizeHint};

use crate::{counted::counted, event_body::EventBody, streamed::StreamedBody};

/// The body of a response.
pub(crate) enum Body {
    Whole(Pieces),
    Streamed(Box<StreamedBody>),
    Events(Box<EventBody>),
}

/// Pieces that are complete, written with one system call where the socket takes them.
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

    /// The first piece of one that is complete, as text: the whole of an error.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Whole(Pieces { first: Some(first), .. }) => String::from_utf8_lossy(first),
            _ => Cow::Borrowed(""),
        }
    }

    /// Bytes of one that is complete.
    pub fn length(&self) -> u64 {
        match self {
            Self::Whole(pieces) => pieces.length,
            Self::Streamed(_) | Self::Events(_) => 0,
        }
    }

    /// Counts what is to be written to the budget.
    pub fn count_to(&mut self, budget: &Arc<MemoryBudget>) {
        if let Self::Whole(pieces) = self {
            pieces.first = pieces.first.take().map(|piece| counted(piece, budget));
            let rest = std::mem::take(&mut pieces.rest);
            pieces.rest = rest.map(|piece| counted(piece, budget)).collect::<Vec<_>>().into_iter();
        }
    }

    /// One chunk, without a length in the head.
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

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(pieces) => Poll::Ready(pieces.next().map(|piece| Ok(Frame::data(piece)))),
            Self::Streamed(streamed) => streamed.poll_frame(context),
            Self::Events(events) => events.poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(pieces) => pieces.length == 0,
            Self::Streamed(streamed) => streamed.is_end_stream(),
            Self::Events(events) => events.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(pieces) if !pieces.is_chunked => SizeHint::with_exact(pieces.length),
            _ => SizeHint::default(),
        }
    }
}
