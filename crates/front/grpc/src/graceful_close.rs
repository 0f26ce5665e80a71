//! Ends the connection of a client that breaks the rules, with a reason that clients understand.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The HTTP/2 code for a client that asks too much.
const ENHANCE_YOUR_CALM: u32 = 11;
const GOAWAY: u8 = 7;
/// The bytes that are read and dropped at the end, so that a client that still sends receives the reason before the close.
const DROPPED: usize = 64 << 10;

/// The last frame of a connection, sent at the next frame boundary; then the connection ends.
#[derive(Debug)]
pub(crate) struct GracefulClose {
    frame: Vec<u8>,
    sent: usize,
    is_complete: bool,
}

impl GracefulClose {
    /// Returns the frame for too many pings. `last_stream` is the last call that may have been processed.
    pub fn too_many_pings(last_stream: u32) -> Self {
        let reason = b"too_many_pings";
        let mut frame = vec![0, 0, 8 + reason.len() as u8, GOAWAY, 0, 0, 0, 0, 0];
        frame.extend(last_stream.to_be_bytes());
        frame.extend(ENHANCE_YOUR_CALM.to_be_bytes());
        frame.extend_from_slice(reason);
        Self { frame, sent: 0, is_complete: false }
    }

    /// Sends the frame. Must only be called between other frames.
    pub fn poll_send<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(left @ [_, ..]) = self.frame.get(self.sent..) {
            let written = ready!(Pin::new(&mut *stream).poll_write(cx, left))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += written;
        }
        ready!(Pin::new(stream).poll_flush(cx))?;
        if !self.is_complete {
            self.is_complete = true;
            // The task that waits to read learns that this is the end.
            cx.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the reading side once the frame is sent.
    pub fn poll_end<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_complete {
            return Poll::Pending;
        }
        let mut dropped = vec![0; DROPPED];
        let _ = Pin::new(stream).poll_read(cx, &mut ReadBuf::new(&mut dropped));
        Poll::Ready(Ok(()))
    }
}
