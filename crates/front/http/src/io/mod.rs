//! The stream of a connection, with its state between reads and writes.

pub(crate) mod body_error;
pub(crate) mod collector;
mod descriptors;
mod output;
mod read_buffer;

use std::{
    io,
    task::{Context, Poll, ready},
};

use galatea_frontend::{PassedDescriptors, Stream};
use galatea_http1::{BodyDecoder, Framing, HeadError, RequestHead};

use self::{
    body_error::{BodyError, MAX_CHUNKS, ReadError, TooManyChunks},
    collector::BodyCollector,
    descriptors::WaitingDescriptors,
    output::Output,
    read_buffer::{ReadBuffer, poll_read},
};

/// The bytes of one body after which other connections of the thread get their turn, including those that only now
/// become ready. Reading them takes a fraction of a millisecond. tokio checks for newly ready connections only after
/// many such turns.
pub(crate) const TURN: usize = 256 << 10;

/// The most bytes of a refused body that are read, so that a client that sends everything first gets its answer.
const DISCARDED: usize = 256 << 20;
/// The least bytes that a piece of such a body counts as: a body of one-byte chunks ends after a million.
const LEAST_DISCARDED: usize = 256;

/// From this size the rest of a body is read directly to its final place: one system call more, and one copy less.
const READ_IN_PLACE: u64 = 8 << 10;
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The reason why a connection ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    /// The error was answered if its client understands an answer.
    #[error(transparent)]
    Head(#[from] HeadError),
    #[error("connection closed before message completed")]
    Incomplete,
    #[error("connection error")]
    Io(#[from] io::Error),
}

/// The stream of a connection, and the state of its requests and responses.
pub(crate) struct ConnectionIo {
    stream: Box<dyn Stream>,
    input: ReadBuffer,
    pub(super) output: Output,
    /// The bytes of an incomplete head that were already checked.
    seen: usize,
    /// The decoder of the current request body.
    body: BodyDecoder,
    to_continue: ContinueState,
    /// Only on a Unix socket whose clients may pass descriptors.
    descriptors: Option<Box<WaitingDescriptors>>,
    /// The following bytes of the stream can no longer be separated into requests.
    pub(super) is_broken: bool,
}

/// The state of `100 Continue`, for a client that waits for it before it sends its body.
#[derive(Clone, Copy, Debug)]
enum ContinueState {
    Nothing,
    Owed,
    /// Written, but perhaps still in the stream's buffers.
    Written,
}

impl ConnectionIo {
    /// Returns the state of a new connection. Descriptors that clients pass are kept if the stream accepts them.
    pub fn new(stream: Box<dyn Stream>, accepts_descriptors: bool) -> Self {
        Self {
            stream,
            descriptors: accepts_descriptors.then(Box::default),
            input: ReadBuffer::default(),
            output: Output::default(),
            seen: 0,
            body: BodyDecoder::new(Framing::Length(0)),
            to_continue: ContinueState::Nothing,
            is_broken: false,
        }
    }

    /// Reads the next head. Returns `false` at the end of the stream.
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

    /// Reads into the buffer once. Returns the number of bytes; 0 at the end of the stream.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let read = self.input.poll_fill(context, &mut *self.stream);
        if let Poll::Ready(Ok(count)) = read {
            self.note_read(count);
        }
        self.or_flush(context, read)
    }

    fn note_read(&mut self, count: usize) {
        if let Some(descriptors) = &mut self.descriptors {
            descriptors.add(count, self.stream.take_descriptors());
            self.close_unwanted_descriptors();
        }
    }

    /// Says if the request whose head was read may have a descriptor.
    pub(super) fn want_descriptor(&mut self, is_wanted: impl FnOnce() -> bool) {
        if let Some(descriptors) = &mut self.descriptors {
            descriptors.is_wanted = is_wanted();
            self.close_unwanted_descriptors();
        }
    }

    /// Returns the descriptors of the current request, whose body was read.
    pub fn take_descriptors(&mut self) -> PassedDescriptors {
        let unread = self.input.len();
        let take = |descriptors: &mut Box<WaitingDescriptors>| descriptors.take(unread, 0);
        self.descriptors.as_mut().map(take).unwrap_or_default()
    }

    /// Closes descriptors that came with a request that may have none, once that is known.
    fn close_unwanted_descriptors(&mut self) {
        if let Some(descriptors) = &mut self.descriptors
            && !descriptors.is_wanted
            && let Some(left) = self.body.left()
        {
            drop(descriptors.take(self.input.len(), left));
        }
    }

    /// Flushes if there was nothing to read. TLS may have to answer what it has read, such as a new key or a
    /// renegotiation, and nothing else may be written for long.
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

    /// A client may disconnect between requests, and send line ends after the last one.
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

    /// Reads a part of the body into `collector`. Returns `true` at the end of the body.
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
        self.close_unwanted_descriptors();
        self.is_broken |= matches!(read, Err(BodyError::Read(_)));
        Poll::Ready(read.map(|()| self.body.is_finished()))
    }

    /// Asks the client to send the body. An unwritten rest of that is written at the next poll of the body, or with the answer.
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
        self.note_read(count);
        Poll::Ready(collector.record_read(count))
    }

    /// Reads and drops the rest of an unread body, at most `left` bytes. Returns `false` if nothing after it can be
    /// read.
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

    /// Drops the part of a body that came with its head. A client that was not asked to send it is not expected to send
    /// more. Returns `true` if that was the whole body.
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

    /// Returns ready when the client has disconnected. It checks once the whole request has arrived. Any further bytes
    /// belong to the next request; one read of them is taken, and the rest stays in the socket.
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

    /// Writes waiting output and flushes the stream.
    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.output.poll_write(context, &mut *self.stream))?;
        std::pin::Pin::new(&mut *self.stream).poll_flush(context)
    }

    pub(super) fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(context))?;
        std::pin::Pin::new(&mut *self.stream).poll_shutdown(context)
    }
}

/// The treatment of an unread request body after the answer.
pub(super) enum BodyRemainder {
    Nothing,
    /// The client sends the body anyway: this many more bytes are read.
    Discarded(usize),
    /// The client waits for `100 Continue`, which was not sent.
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

    /// Does the work that is possible now; ready when none is left. `is_sent`: the answer is sent.
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
