//! The stream of a connection, with what is kept between its reads and writes.

pub(crate) mod body_error;
pub(crate) mod collector;
mod output;
mod read_buffer;

use std::{
    io,
    task::{Context, Poll, ready},
};

use galatea_frontend::Stream;
use galatea_http1::{BodyDecoder, Framing, HeadError, RequestHead};

use self::{
    body_error::{BodyError, MAX_CHUNKS, ReadError, TooManyChunks},
    collector::BodyCollector,
    output::Output,
    read_buffer::{ReadBuffer, poll_read},
};

/// After so many bytes of one body the other connections of the thread have their turn, also those that only now become
/// ready. Reading them takes a fraction of a millisecond; tokio looks for other connections that have become ready only
/// after many such turns.
pub(crate) const TURN: usize = 256 << 10;

/// Most bytes read of a body that is refused, so that a client that sends all before it reads gets its answer.
const DISCARDED: usize = 256 << 20;
/// The work for a piece of such a body is that for so many bytes: a body of one-byte chunks ends after a million.
const LEAST_DISCARDED: usize = 256;

/// From this on the rest of a body is read where it stays, with a system call more and a copy less.
const READ_IN_PLACE: u64 = 8 << 10;
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Why a connection ends before its client wanted it to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    /// It was answered where its client understands an answer.
    #[error(transparent)]
    Head(#[from] HeadError),
    #[error("connection closed before message completed")]
    Incomplete,
    #[error("connection error")]
    Io(#[from] io::Error),
}

/// The stream of a connection, and where its client is.
pub(crate) struct ConnectionIo {
    stream: Box<dyn Stream>,
    input: ReadBuffer,
    pub(super) output: Output,
    /// So many bytes of a head that is not complete were looked at.
    seen: usize,
    /// Of the request in hand.
    body: BodyDecoder,
    to_continue: ContinueState,
    /// What follows in the stream cannot be told apart any more.
    pub(super) is_broken: bool,
}

/// What a client that sends its body only when it is told to is still to be told.
#[derive(Clone, Copy, Debug)]
enum ContinueState {
    Nothing,
    Owed,
    /// It may not have left the stream yet.
    Written,
}

impl ConnectionIo {
    pub fn new(stream: Box<dyn Stream>) -> Self {
        Self {
            stream,
            input: ReadBuffer::default(),
            output: Output::default(),
            seen: 0,
            body: BodyDecoder::new(Framing::Length(0)),
            to_continue: ContinueState::Nothing,
            is_broken: false,
        }
    }

    /// The next head; `false` at the end of the stream.
    pub(super) fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        head: &mut RequestHead,
    ) -> Poll<Result<bool, ConnectionError>> {
        loop {
            if self.input.len() > self.seen {
                if let Some(length) = head.read(self.input.unread(), self.seen)? {
                    self.begin(head, length);
                    return Poll::Ready(Ok(true));
                }
                self.seen = self.input.len();
            }
            match self.poll_fill(context) {
                Poll::Ready(Ok(0)) => return Poll::Ready(self.end_of_heads(None)),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(self.end_of_heads(Some(error))),
                Poll::Pending => {
                    self.input.give_back();
                    return Poll::Pending;
                }
            }
        }
    }

    /// Reads into the buffer once. Returns how many bytes came; none at the end of the stream.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let read = self.input.poll_fill(context, &mut *self.stream);
        self.or_flush(context, read)
    }

    /// Where there was nothing to read: what TLS has to answer to what it read itself, a new key or a wish for another
    /// handshake, leaves the stream now. Nothing else may be written for long.
    fn or_flush(
        &mut self,
        context: &mut Context<'_>,
        read: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if read.is_pending()
            && let Poll::Ready(Err(error)) =
                std::pin::Pin::new(&mut *self.stream).poll_flush(context)
        {
            return Poll::Ready(Err(error));
        }
        read
    }

    fn begin(&mut self, head: &RequestHead, length: usize) {
        self.input.consume(length);
        self.seen = 0;
        self.body = BodyDecoder::new(head.framing());
        self.to_continue = match head.expects_continue() && !self.body.is_finished() {
            true => ContinueState::Owed,
            false => ContinueState::Nothing,
        };
    }

    /// A client may leave between requests, and send line ends behind the last one.
    fn end_of_heads(&self, error: Option<io::Error>) -> Result<bool, ConnectionError> {
        let is_between = self.input.unread().iter().all(|byte| matches!(byte, b'\r' | b'\n'));
        match error {
            _ if is_between => Ok(false),
            Some(error) => Err(error.into()),
            None => Err(ConnectionError::Incomplete),
        }
    }

    pub(super) fn has_begun(&self) -> bool {
        !self.input.is_empty()
    }

    /// Reads some of the body into `collector`; `true` where that was the end of it.
    pub fn poll_body(
        &mut self,
        context: &mut Context<'_>,
        collector: &mut BodyCollector<'_>,
    ) -> Poll<Result<bool, BodyError>> {
        if let Err(error) = self.send_continue(context) {
            self.is_broken = true;
            return Poll::Ready(Err(ReadError::Io(error).into()));
        }
        let read = ready!(self.poll_body_once(context, collector));
        self.is_broken |= matches!(read, Err(BodyError::Read(_)));
        Poll::Ready(read.map(|()| self.body.is_finished()))
    }

    /// Tells the client to send the body. The rest of that is written when the body is looked for again, or with the answer.
    fn send_continue(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.to_continue {
            ContinueState::Nothing => return Ok(()),
            ContinueState::Owed => self.output.text().extend_from_slice(CONTINUE),
            ContinueState::Written => {}
        }
        self.to_continue = ContinueState::Written;
        if let Poll::Ready(written) = self.poll_flush(context) {
            self.to_continue = ContinueState::Nothing;
            written?;
        }
        Ok(())
    }

    fn poll_body_once(
        &mut self,
        context: &mut Context<'_>,
        collector: &mut BodyCollector<'_>,
    ) -> Poll<Result<(), BodyError>> {
        if self.body.is_finished() {
            return Poll::Ready(Ok(()));
        }
        if self.input.is_empty() {
            if let Some(left) = self.body.left().filter(|left| *left >= READ_IN_PLACE) {
                return self.poll_body_in_place(context, collector, left);
            }
            let count = ready!(self.poll_fill(context));
            if count.map_err(ReadError::Io)? == 0 {
                return Poll::Ready(Err(ReadError::Incomplete.into()));
            }
        }
        Poll::Ready(self.take_of_input(collector))
    }

    fn take_of_input(&mut self, collector: &mut BodyCollector<'_>) -> Result<(), BodyError> {
        while !self.input.is_empty() && !self.body.is_finished() {
            let step = self.body.step(self.input.unread()).map_err(ReadError::Fault)?;
            if self.body.chunks() > MAX_CHUNKS {
                return Err(TooManyChunks.into());
            }
            let end = step.skipped + step.data;
            let data = self.input.unread().get(step.skipped..end).unwrap_or_default();
            let taken = if data.is_empty() { Ok(()) } else { collector.extend(data) };
            self.input.consume(end);
            taken?;
        }
        Ok(())
    }

    fn poll_body_in_place(
        &mut self,
        context: &mut Context<'_>,
        collector: &mut BodyCollector<'_>,
        left: u64,
    ) -> Poll<Result<(), BodyError>> {
        let most = usize::try_from(left).map_or(TURN, |left| left.min(TURN));
        let read = {
            let mut room = collector.room(most)?;
            poll_read(context, &mut *self.stream, &mut room)
        };
        let count = ready!(self.or_flush(context, read));
        let count = count.map_err(ReadError::Io)?;
        if count == 0 {
            return Poll::Ready(Err(ReadError::Incomplete.into()));
        }
        self.body.skip(count);
        Poll::Ready(collector.has_read(count))
    }

    /// Reads and drops what is left of a body that nobody reads, of which `left` bytes are taken; `false`: nothing behind
    /// it can be read.
    pub(super) fn poll_discard(
        &mut self,
        context: &mut Context<'_>,
        left: &mut usize,
    ) -> Poll<bool> {
        let mut left_of_turn = TURN;
        while !self.body.is_finished() {
            if self.input.is_empty() {
                match ready!(self.poll_fill(context)) {
                    Ok(0) | Err(_) => return Poll::Ready(false),
                    Ok(_) => {}
                }
            }
            let Ok(step) = self.body.step(self.input.unread()) else { return Poll::Ready(false) };
            self.input.consume(step.skipped + step.data);
            let work = step.data.max(LEAST_DISCARDED);
            let Some(rest) = left.checked_sub(work) else { return Poll::Ready(false) };
            *left = rest;
            let Some(rest) = left_of_turn.checked_sub(work) else {
                context.waker().wake_by_ref();
                return Poll::Pending;
            };
            left_of_turn = rest;
        }
        Poll::Ready(true)
    }

    /// As much of a body as is expected of a client that was not told to send it: what has come with its head. Whether that
    /// is all.
    pub(super) fn take_what_is_there(&mut self, context: &mut Context<'_>) -> bool {
        if self.input.is_empty() && !matches!(self.poll_fill(context), Poll::Ready(Ok(1..))) {
            return false;
        }
        match self.body.step(self.input.unread()) {
            Ok(step) => {
                self.input.consume(step.skipped + step.data);
                self.body.is_finished()
            }
            Err(_) => false,
        }
    }

    /// Ready when the client has gone. Looked for once all of its request has come: what comes behind that is the next one,
    /// of which one read is taken, and the rest stays in the socket.
    pub(super) fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<ConnectionError> {
        let behind = self.body.left().and_then(|left| (self.input.len() as u64).checked_sub(left));
        match behind {
            _ if self.is_broken => return Poll::Pending,
            None => return Poll::Pending,
            Some(0) => match ready!(self.poll_fill(context)) {
                Ok(0) => return Poll::Ready(ConnectionError::Incomplete),
                Ok(_) => {}
                Err(error) => return Poll::Ready(error.into()),
            },
            Some(_) => {}
        }
        self.stream.poll_closed(context).map(|()| ConnectionError::Incomplete)
    }

    /// Writes what waits, and sees it leave the stream.
    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.output.poll_write(context, &mut *self.stream))?;
        std::pin::Pin::new(&mut *self.stream).poll_flush(context)
    }

    pub(super) fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(context))?;
        std::pin::Pin::new(&mut *self.stream).poll_shutdown(context)
    }
}

/// What is left to be done with the body of a request that was answered.
pub(super) enum BodyRemainder {
    Nothing,
    /// Its client sends it anyway: so many bytes more are read.
    Discarded(usize),
    /// Its client was to be told to send it, and was not.
    Unasked,
}

impl BodyRemainder {
    pub fn of(io: &ConnectionIo, head: &RequestHead) -> Self {
        if io.is_broken || io.body.is_finished() {
            Self::Nothing
        } else if head.get("expect").is_some() {
            Self::Unasked
        } else {
            Self::Discarded(DISCARDED)
        }
    }

    /// Does what can be done now; ready when nothing is left. `is_sent`: whether the answer is.
    pub fn poll(
        &mut self,
        context: &mut Context<'_>,
        io: &mut ConnectionIo,
        is_sent: bool,
    ) -> Poll<()> {
        let is_whole = match self {
            Self::Nothing => true,
            Self::Discarded(left) => ready!(io.poll_discard(context, left)),
            Self::Unasked if is_sent => io.take_what_is_there(context),
            Self::Unasked => return Poll::Pending,
        };
        *self = Self::Nothing;
        io.is_broken |= !is_whole;
        Poll::Ready(())
    }
}
