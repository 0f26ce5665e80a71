//! A connection's socket, whatever it is connected through.

use std::{
    io::{self, IoSlice},
    net, os,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};

/// An accepted connection, before or without encryption.
#[derive(Debug)]
pub enum Socket {
    /// Over TCP.
    Tcp(TcpStream),
    /// Through a Unix socket.
    Unix(UnixStream),
}

/// A socket between the runtime that accepted it and the one that serves it.
#[derive(Debug)]
pub(crate) enum DetachedSocket {
    Tcp(net::TcpStream),
    Unix(os::unix::net::UnixStream),
}

impl Socket {
    /// Takes the socket out of the runtime it is registered with.
    pub(crate) fn detach(self) -> io::Result<DetachedSocket> {
        Ok(match self {
            Self::Tcp(stream) => DetachedSocket::Tcp(stream.into_std()?),
            Self::Unix(stream) => DetachedSocket::Unix(stream.into_std()?),
        })
    }

    /// The first byte of what the client sends, which stays to be read; `None` where it sends nothing more, or the socket
    /// cannot tell.
    pub(crate) async fn first_byte(&self) -> io::Result<Option<u8>> {
        let Self::Tcp(stream) = self else { return Ok(None) };
        let mut first = [0];
        Ok(match stream.peek(&mut first).await? {
            0 => None,
            _ => Some(first[0]),
        })
    }
}

impl DetachedSocket {
    /// Registers the socket with the runtime this is called on.
    pub fn attach(self) -> io::Result<Socket> {
        Ok(match self {
            Self::Tcp(stream) => Socket::Tcp(TcpStream::from_std(stream)?),
            Self::Unix(stream) => Socket::Unix(UnixStream::from_std(stream)?),
        })
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
