//! Sends the response of a call, and gives up on a client that does not read.

use std::{
    mem,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use galatea_frontend::ConnectionSettings;
use h2::{Reason, SendStream, server::SendResponse};
use http::Response;

use crate::{content::Content, piece::Piece, receive_timeout::ReceiveTimeout};

#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("its client cancelled it")]
    GivenUp,
    #[error("its client does not read its responses")]
    Unread,
    #[error("{0}")]
    Http2(#[from] h2::Error),
}

/// Gives a response to HTTP/2: its head at once, its content piece by piece as the client reads it.
pub(crate) struct ResponseWriter {
    stream: SendStream<Bytes>,
    content: Content,
    /// A piece that waits until the client reads some of it.
    waiting: Option<Bytes>,
    patience: ReceiveTimeout,
}

impl ResponseWriter {
    /// Sends the head. Returns `None` if the response has no content.
    pub fn begin(
        response: Response<Content>,
        respond: &mut SendResponse<Bytes>,
        settings: &ConnectionSettings,
    ) -> Result<Option<Self>, SendError> {
        let (head, content) = response.into_parts();
        let is_all = content.is_finished();
        let stream = respond.send_response(Response::from_parts(head, ()), is_all);
        let stream = stream.inspect_err(|_| respond.send_reset(Reason::INTERNAL_ERROR))?;
        // A piece that a slow client reads byte by byte only shows at its end, so any progress is accepted.
        let patience = ReceiveTimeout::with_any_progress(settings);
        Ok((!is_all).then_some(Self { stream, content, waiting: None, patience }))
    }

    /// Ready when HTTP/2 has everything, or nobody wants it any more. Dropping it earlier resets its stream; other
    /// streams on the connection continue.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        if let Poll::Ready(sent) = self.poll_pieces(cx) {
            return Poll::Ready(sent);
        }
        if self.stream.poll_reset(cx)?.is_ready() {
            return Poll::Ready(Err(SendError::GivenUp));
        }
        if self.waiting.is_none() {
            self.patience.rest();
            return Poll::Pending;
        }
        self.patience.poll_lost(cx).map(|_| Err(SendError::Unread))
    }

    fn poll_pieces(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        loop {
            if self.waiting.is_some() {
                ready!(self.poll_waiting(cx))?;
            }
            match ready!(self.content.poll_piece(cx)) {
                Piece::Data(data) if data.is_empty() => {}
                Piece::Data(data) => {
                    // Reserves only a byte: a waiting piece must not hold the window of others. HTTP/2 asks for the rest itself.
                    self.stream.reserve_capacity(1);
                    self.waiting = Some(data);
                }
                Piece::Status(trailers) => {
                    self.stream.reserve_capacity(0);
                    return Poll::Ready(Ok(self.stream.send_trailers(trailers)?));
                }
                Piece::Broken => {
                    self.stream.send_reset(Reason::INTERNAL_ERROR);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    /// Sends the waiting piece, once there is room for some of it.
    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        while self.stream.capacity() == 0 {
            let Some(room) = ready!(self.stream.poll_capacity(cx)) else {
                return Poll::Ready(Err(SendError::GivenUp));
            };
            room?;
        }
        let data = mem::take(&mut self.waiting).unwrap_or_default();
        self.patience.progress(data.len());
        self.stream.send_data(data, false)?;
        Poll::Ready(Ok(()))
    }
}
