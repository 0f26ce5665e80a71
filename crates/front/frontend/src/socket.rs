//! The socket of a connection, TCP or Unix.

use std::{
    io::{self, IoSlice},
    mem, net, os,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use rustix::io::Errno;
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::{TcpStream, UnixStream},
};
use tokio_util::either::Either;

use crate::{
    connections::Activity,
    passed_descriptors::{self, PassedDescriptors},
    stream::Stream,
};

/// The most bytes of one read that may bring descriptors. Its buffer is initialized first.
const MOST_WITH_DESCRIPTORS: usize = 64 << 10;

/// An accepted connection, with or without encryption above it. This level records the bytes that the client accepts,
/// below all buffers: an answer makes progress when the socket accepts bytes of it.
#[derive(Debug)]
pub struct Socket {
    kind: Either<TcpStream, UnixStream>,
    activity: Arc<Activity>,
    /// Unread bytes may be left that the runtime has forgotten. It would not wake a reader for them.
    has_forgotten: bool,
    /// The descriptors that came with bytes that were read. `None`: the system closes those that the client passes.
    descriptors: Option<PassedDescriptors>,
}

/// Evaluates the same expression with the stream of either kind.
macro_rules! each {
    ($kind:expr, $stream:ident => $does:expr) => {
        match $kind {
            Either::Left($stream) => $does,
            Either::Right($stream) => $does,
        }
    };
}

/// A socket between the runtime that accepted it and the runtime that serves it.
#[derive(Debug)]
pub(crate) enum DetachedSocket {
    Tcp(net::TcpStream),
    Unix(os::unix::net::UnixStream),
}

impl DetachedSocket {
    /// Registers the socket with the current runtime. `activity` is that of its connection.
    pub fn attach(self, activity: Arc<Activity>) -> io::Result<Socket> {
        let kind = match self {
            Self::Tcp(stream) => Either::Left(TcpStream::from_std(stream)?),
            Self::Unix(stream) => Either::Right(UnixStream::from_std(stream)?),
        };
        Ok(Socket { kind, activity, has_forgotten: false, descriptors: None })
    }
}

impl Socket {
    /// Returns the first byte from the client without consuming it. Returns `None` if the client sends nothing more, or
    /// the socket cannot tell.
    pub(crate) async fn first_byte(&self) -> io::Result<Option<u8>> {
        let Either::Left(stream) = &self.kind else { return Ok(None) };
        let mut first = [0];
        Ok(match stream.peek(&mut first).await? {
            0 => None,
            _ => Some(first[0]),
        })
    }

    fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(&self.kind, stream => stream.poll_read_ready(context))
    }

    /// Returns `true` if the runtime knows that the client has closed its side.
    fn is_read_closed(&self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let ready =
            each!(&self.kind, stream => pin!(stream.ready(Interest::READABLE)).poll(&mut context));
        matches!(ready, Poll::Ready(Ok(ready)) if ready.is_read_closed())
    }

    /// Makes the runtime forget that the socket is readable, so that it reports when more happens.
    fn forget_readable(&mut self) {
        let nothing = || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into());
        let _ = each!(&self.kind, stream => stream.try_io(Interest::READABLE, nothing));
        self.has_forgotten = true;
    }

    /// Reads bytes that the runtime has forgotten, bypassing it. Returns `None` if none are left.
    fn read_forgotten(&mut self, buffer: &mut ReadBuf<'_>) -> Option<io::Result<()>> {
        let room = buffer.initialize_unfilled();
        let read = loop {
            let read = match (&self.kind, &mut self.descriptors) {
                (Either::Right(stream), Some(passed)) => {
                    passed_descriptors::receive(stream, room, passed)
                }
                (kind, _) => each!(kind, stream => rustix::io::read(stream, &mut *room)),
            };
            match read {
                Err(Errno::INTR) => {}
                read => break read,
            }
        };
        match read {
            Ok(count) => {
                // Once everything was read, the runtime reports what arrives from then on. A read that takes descriptors may
                // end before.
                self.has_forgotten = count == room.len() || self.descriptors.is_some();
                buffer.advance(count);
                Some(Ok(()))
            }
            Err(Errno::AGAIN) => {
                self.has_forgotten = false;
                None
            }
            Err(error) => Some(Err(error.into())),
        }
    }

    /// Reads bytes and the descriptors that come with them.
    fn poll_receive(
        stream: &UnixStream,
        passed: &mut PassedDescriptors,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let most = buffer.remaining().min(MOST_WITH_DESCRIPTORS);
        loop {
            ready!(stream.poll_read_ready(context))?;
            let room = buffer.initialize_unfilled_to(most);
            let receive =
                || passed_descriptors::receive(stream, room, passed).map_err(io::Error::from);
            match stream.try_io(Interest::READABLE, receive) {
                Ok(count) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Records the bytes that the socket accepted out of `offered`.
    fn written(&self, offered: usize, poll: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &poll {
            Poll::Ready(Ok(written)) => self.activity.record_written(offered, *written),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.activity.record_written(offered, 0),
        }
        poll
    }
}

impl Stream for Socket {
    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if ready!(self.poll_read_ready(context)).is_err() || self.is_read_closed() {
                return Poll::Ready(());
            }
            self.forget_readable();
        }
    }

    fn accept_descriptors(&mut self) {
        if matches!(self.kind, Either::Right(_)) {
            self.descriptors.get_or_insert_default();
        }
    }

    fn take_descriptors(&mut self) -> PassedDescriptors {
        self.descriptors.as_mut().map(mem::take).unwrap_or_default()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        if socket.has_forgotten
            && buffer.remaining() > 0
            && let Some(read) = socket.read_forgotten(buffer)
        {
            return Poll::Ready(read);
        }
        match (&mut socket.kind, &mut socket.descriptors) {
            (Either::Right(stream), Some(passed)) => {
                Self::poll_receive(stream, passed, context, buffer)
            }
            (kind, _) => Pin::new(kind).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.kind).poll_write(context, bytes);
        self.written(bytes.len(), poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.kind).poll_write_vectored(context, pieces);
        self.written(pieces.iter().map(|piece| piece.len()).sum(), poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.kind.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().kind).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().kind).poll_shutdown(context)
    }
}
