use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    vec,
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// The body of a response: pieces of known length, written with one system call where the socket takes them.
#[derive(Debug, Default)]
pub(crate) struct Body {
    first: Option<Bytes>,
    rest: vec::IntoIter<Bytes>,
    length: u64,
}

impl Body {
    pub fn pieces(first: Bytes, rest: Vec<Bytes>) -> Self {
        let length = rest.iter().fold(first.len() as u64, |sum, piece| sum + piece.len() as u64);
        Self { first: Some(first).filter(|f| !f.is_empty()), rest: rest.into_iter(), length }
    }
}

impl From<Vec<u8>> for Body {
    fn from(content: Vec<u8>) -> Self {
        Self::pieces(Bytes::from(content), Vec::new())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.first.take().or_else(|| self.rest.next());
        if let Some(piece) = &piece {
            self.length = self.length.saturating_sub(piece.len() as u64);
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.length == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
