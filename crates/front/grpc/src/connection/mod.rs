//! The HTTP/2 settings, and the task of one connection.

#[cfg(test)]
mod tests;

use std::{
    io, mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake as _, Waker, ready},
};

use bytes::Bytes;
use h2::{
    Reason, RecvStream,
    server::{self, Handshake, SendResponse},
};
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    keep_alive::{KeepAlive, KeepAliveRules},
    open_calls::OpenCalls,
    shared_stream::SharedStream,
    unread_bytes::UnreadBytes,
    wakeups::{Part, Wakeups},
};

/// The most unread bytes of one stream. A whole request of usual size fits, so that the client never waits for a window
/// update in the middle of one.
const STREAM_WINDOW: u32 = 8 << 20;
/// The most unread bytes of all streams of a connection.
const CONNECTION_WINDOW: u32 = 16 << 20;
/// The longest frame: a 400 KB tensor in one frame arrives as one piece of memory.
const MAX_FRAME_SIZE: u32 = 1 << 20;
/// The most unread bytes in memory for one connection.
pub(crate) const MOST_UNREAD: usize = (CONNECTION_WINDOW + MAX_FRAME_SIZE) as usize;
/// The most bytes of a response that may wait for the socket.
const SEND_BUFFER: usize = 1 << 20;
/// The most calls that were cancelled before the server accepted them. A client that gives up on many at once is no attack.
const MAX_PENDING_RESETS: usize = 1024;
/// The most calls that were refused or reset because the client broke the rules. A connection with more is closed.
const MAX_LOCAL_RESETS: usize = 1024;
/// The most open calls on one connection. Load tools open hundreds; clients wait with further ones.
const MAX_CALLS_PER_CONNECTION: u32 = 1000;
/// The most bytes of a call's metadata: names, values and 32 bytes for each.
const MAX_METADATA: u32 = 16 << 10;

/// The number of calls that are polled before the task yields to the other connections of its thread ...
const TURN: usize = 64;
/// ... and the part of that number that each poll of HTTP/2 costs.
const LOOK_AT_HTTP2: usize = 4;

/// Places of the parts that are not calls.
const HTTP2: usize = usize::MAX;
const KEEP_ALIVE: usize = usize::MAX - 1;

/// Returns the HTTP/2 settings of every connection.
pub(crate) fn http2() -> server::Builder {
    let mut builder = server::Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(MAX_FRAME_SIZE)
        .max_send_buffer_size(SEND_BUFFER)
        .max_concurrent_streams(MAX_CALLS_PER_CONNECTION)
        .max_header_list_size(MAX_METADATA)
        .max_local_error_reset_streams(Some(MAX_LOCAL_RESETS))
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS);
    builder
}

/// Serves the calls of one connection. It drives HTTP/2 and polls the calls itself, so that everything they send leaves
/// together.
pub(crate) struct Connection<S, A, F> {
    /// The stream that HTTP/2 reads and writes.
    stream: SharedStream<S>,
    http2: Http2<S>,
    http2_part: Arc<Part>,
    keep_alive: Option<KeepAlive>,
    keep_alive_part: Arc<Part>,
    is_lost: bool,
    calls: OpenCalls<F>,
    /// Returns the future that answers a call.
    answer: A,
    wake_ups: Arc<Wakeups>,
    /// The places of the parts that are polled next, the last one first.
    woken: Vec<usize>,
    unread: Arc<UnreadBytes>,
    /// Bytes of calls received at the last check.
    received: usize,
    has_new_call: bool,
    keep_alive_rules: KeepAliveRules,
}

enum Http2<S> {
    Opening { handshake: Handshake<SharedStream<S>, Bytes>, is_to_end: bool },
    Open(server::Connection<SharedStream<S>, Bytes>),
}

/// The reason why a connection ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error("{0}")]
    Http2(#[from] h2::Error),
    #[error("{0}")]
    Stream(#[from] io::Error),
    #[error("its client did not answer a probe")]
    Lost,
}

impl<S, A, F> Connection<S, A, F>
where
    S: AsyncRead + AsyncWrite + Unpin,
    A: FnMut(Request<RecvStream>, SendResponse<Bytes>) -> F,
    F: Future<Output = ()>,
{
    /// Returns a new connection. `unread` counts the bytes that `stream` reads.
    pub fn new(
        stream: S,
        http2: &server::Builder,
        keep_alive_rules: KeepAliveRules,
        unread: Arc<UnreadBytes>,
        answer: A,
    ) -> Self {
        let wake_ups = Arc::default();
        let http2_part = Part::new(&wake_ups, HTTP2);
        http2_part.wake_by_ref();
        let stream = SharedStream::new(stream);
        let handshake = http2.handshake(stream.clone());
        Self {
            stream,
            http2: Http2::Opening { handshake, is_to_end: false },
            http2_part,
            keep_alive: None,
            keep_alive_part: Part::new(&wake_ups, KEEP_ALIVE),
            is_lost: false,
            calls: OpenCalls::new(&wake_ups),
            answer,
            wake_ups,
            woken: Vec::new(),
            unread,
            received: 0,
            has_new_call: false,
            keep_alive_rules,
        }
    }

    /// Tells the client to open no more calls. The connection ends when the open ones have ended.
    pub fn shut_down(&mut self) {
        match &mut self.http2 {
            Http2::Opening { is_to_end, .. } => *is_to_end = true,
            Http2::Open(connection) => connection.graceful_shutdown(),
        }
        self.http2_part.wake_by_ref();
    }

    /// Polls woken calls. Returns the rest of the turn.
    fn poll_calls(&mut self, mut turn: usize) -> usize {
        while turn > 0
            && let Some(place) = self.woken.pop()
        {
            if place < KEEP_ALIVE {
                self.calls.poll(place);
                turn -= 1;
            }
        }
        turn
    }

    fn poll_keep_alive(&mut self) {
        self.keep_alive_part.begin_poll();
        let waker = Waker::from(self.keep_alive_part.clone());
        let Some(keep_alive) = &mut self.keep_alive else { return };
        if keep_alive.poll_lost(&mut Context::from_waker(&waker)).is_pending() {
            return;
        }
        log::debug!("grpc: keep-alive timed out, closing a connection");
        (self.is_lost, self.keep_alive) = (true, None);
        if let Http2::Open(connection) = &mut self.http2 {
            connection.abrupt_shutdown(Reason::NO_ERROR);
        }
        self.http2_part.wake_by_ref();
    }

    /// Reads, writes and begins new calls. Ready at the end of the connection.
    fn poll_http2(&mut self, turn: &mut usize) -> Poll<Result<(), ConnectionError>> {
        self.http2_part.begin_poll();
        let waker = Waker::from(self.http2_part.clone());
        let mut cx = Context::from_waker(&waker);
        let polled = self.poll_accept(&mut cx, turn);
        if polled.is_pending()
            && let Poll::Ready(Err(error)) = self.stream.poll_write_out(&mut cx)
        {
            return Poll::Ready(Err(error.into()));
        }
        polled
    }

    fn poll_accept(
        &mut self,
        cx: &mut Context<'_>,
        turn: &mut usize,
    ) -> Poll<Result<(), ConnectionError>> {
        while *turn > 0 {
            *turn = turn.saturating_sub(LOOK_AT_HTTP2);
            let connection = match &mut self.http2 {
                Http2::Open(connection) => connection,
                Http2::Opening { handshake, is_to_end } => {
                    let mut connection = ready!(Pin::new(handshake).poll(cx))?;
                    if *is_to_end {
                        connection.graceful_shutdown();
                    }
                    self.begin(connection);
                    continue;
                }
            };
            match ready!(connection.poll_accept(cx)) {
                Some(accepted) => {
                    let (request, respond) = accepted?;
                    self.has_new_call = true;
                    self.calls.begin((self.answer)(request, respond));
                }
                None if self.is_lost => return Poll::Ready(Err(ConnectionError::Lost)),
                None => return Poll::Ready(Ok(())),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn begin(&mut self, mut connection: server::Connection<SharedStream<S>, Bytes>) {
        let pings = connection.ping_pong();
        self.keep_alive = pings.map(|pings| KeepAlive::new(pings, self.keep_alive_rules));
        self.keep_alive_part.wake_by_ref();
        self.http2 = Http2::Open(connection);
    }
}

impl<S, A, F> Connection<S, A, F> {
    /// Only bytes of calls count as a sign of life; other frames do not.
    fn note_what_was_read(&mut self) {
        let received = self.unread.received_in_all();
        let is_new = mem::take(&mut self.has_new_call) || received != self.received;
        self.received = received;
        if is_new && let Some(keep_alive) = &mut self.keep_alive {
            keep_alive.record_read();
        }
    }
}

impl<S, A, F> Future for Connection<S, A, F>
where
    S: AsyncRead + AsyncWrite + Unpin,
    A: FnMut(Request<RecvStream>, SendResponse<Bytes>) -> F + Unpin,
    F: Future<Output = ()>,
{
    type Output = Result<(), ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut turn = TURN;
        while turn > 0 {
            if this.woken.is_empty() {
                if !this.wake_ups.take_or_sleep(&mut this.woken, cx) {
                    return Poll::Pending;
                }
                this.woken.reverse();
            }
            turn = this.poll_calls(turn);
            if this.keep_alive_part.is_woken() {
                this.poll_keep_alive();
            }
            // HTTP/2 comes after the calls, so that their output is written at once. It gets its share however many
            // calls there are.
            if this.http2_part.is_woken() {
                turn = turn.max(LOOK_AT_HTTP2);
                let polled = this.poll_http2(&mut turn);
                this.note_what_was_read();
                if polled.is_ready() {
                    return polled;
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
