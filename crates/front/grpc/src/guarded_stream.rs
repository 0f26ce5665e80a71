//! A guard between a connection's socket and HTTP/2: it bounds the cost of frames and counts unread bytes.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use galatea_frontend::{Activity, Peer};
use galatea_types::MemoryBudget;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

use crate::{
    frames::{Frame, FrameReader, Kind},
    graceful_close::GracefulClose,
    pings::Pings,
    socket_authority::SocketAuthority,
    timer::{self, Timer},
    unread_bytes::{STEP, UnreadBytes},
};

/// The cost of frames outside calls that a client may cause at once ...
const BURST: i64 = 20_000;
/// ... and a second. Beyond it the connection is not read.
const PER_SECOND: i64 = 20_000;
/// The cost of a frame that needs an answer or ends a call.
const COST_OF_ANSWERED: i64 = 10;
/// The payload bytes that cost as much as a frame.
const BYTES_PER_COST: usize = 1 << 10;
/// The sent bytes that earn one unit of cost: clients that receive much also send many window updates.
const SENT_PER_COST: usize = 4 << 10;

/// The pause before a connection with unread bytes is tried again while the server is full.
const FULL_PAUSE: Duration = Duration::from_millis(20);

/// A connection's stream that reads no more than the server can handle.
pub(crate) struct GuardedStream<S> {
    stream: S,
    frames: FrameReader,
    allowance: Allowance,
    pings: Pings,
    activity: Arc<Activity>,
    unread: Arc<UnreadBytes>,
    budget: Arc<MemoryBudget>,
    pause: Option<Timer>,
    farewell: Option<GracefulClose>,
    /// Only on a Unix socket.
    authority: Option<SocketAuthority>,
}

impl<S> GuardedStream<S> {
    pub fn new(
        stream: S,
        pings: Pings,
        activity: Arc<Activity>,
        unread: Arc<UnreadBytes>,
        budget: &Arc<MemoryBudget>,
    ) -> Self {
        Self {
            stream,
            pings,
            activity,
            frames: FrameReader::default(),
            allowance: Allowance { left: BURST, since: Instant::now(), sent: 0 },
            unread,
            budget: budget.clone(),
            pause: None,
            farewell: None,
            authority: None,
        }
    }

    /// Prepares the stream for this client.
    pub fn for_peer(mut self, peer: Peer) -> Self {
        self.authority = (peer == Peer::Unix).then(SocketAuthority::default);
        self
    }

    /// Returns `true` if too many bytes are unread while the server is full. No call can read an incomplete frame, so
    /// such a frame may exceed the budget by a quarter.
    fn is_to_wait(&self) -> bool {
        let unread = self.unread.bytes();
        if unread < STEP || !self.budget.is_exceeded() {
            return false;
        }
        let limit = self.budget.limit();
        self.frames.incomplete() + STEP < unread
            || self.budget.used() > limit.saturating_add(limit / 4)
    }

    fn see(&mut self, bytes: &[u8]) {
        let Self { frames, allowance, unread, pings, activity, .. } = self;
        let mut has_too_many_pings = false;
        let data = frames.read(bytes, |frame| {
            allowance.left -= cost_of(frame);
            if frame.kind == Kind::Ping {
                has_too_many_pings |= pings.received(activity.has_calls(), Instant::now());
            }
        });
        if has_too_many_pings {
            let last = frames.last_stream();
            self.farewell.get_or_insert_with(|| GracefulClose::too_many_pings(last));
        }
        if data > 0 {
            unread.received(data);
        }
        if let Some(pause) = self.allowance.overdrawn() {
            self.pause = Some(timer::after(pause));
        }
    }

    fn record_written(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(written)) = written {
            self.allowance.earn(*written);
            self.pings.sent(*written);
        }
    }
}

fn cost_of(frame: Frame) -> i64 {
    let own = match frame.kind {
        Kind::Data | Kind::Headers => 0,
        Kind::Reset | Kind::Settings | Kind::Ping | Kind::Pong => COST_OF_ANSWERED,
        Kind::Other => 1,
    };
    let bytes = if frame.kind == Kind::Data { 0 } else { frame.length };
    own + i64::try_from(bytes / BYTES_PER_COST).unwrap_or(i64::MAX)
}

/// The cost that frames may still cause.
struct Allowance {
    left: i64,
    since: Instant,
    /// Sent bytes that have not yet earned a unit.
    sent: usize,
}

impl Allowance {
    fn earn(&mut self, sent: usize) {
        self.sent += sent;
        if self.sent >= SENT_PER_COST {
            let earned = i64::try_from(self.sent / SENT_PER_COST).unwrap_or(BURST);
            self.left = self.left.saturating_add(earned).min(BURST);
            self.sent %= SENT_PER_COST;
        }
    }

    /// Returns the time until the allowance is positive again. The clock is only read when the allowance is used up.
    fn overdrawn(&mut self) -> Option<Duration> {
        if self.left >= 0 {
            return None;
        }
        let now = Instant::now();
        let elapsed = now.duration_since(self.since).as_secs_f64();
        let gained = (elapsed * PER_SECOND as f64).min(BURST as f64) as i64;
        self.since = now;
        self.left = self.left.saturating_add(gained).min(BURST);
        (self.left < 0).then(|| Duration::from_secs_f64(-self.left as f64 / PER_SECOND as f64))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, farewell, .. } = &mut *self;
        if let Some(farewell) = farewell {
            return farewell.poll_end(stream, cx);
        }
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            if !self.is_to_wait() {
                break;
            }
            self.pause = Some(timer::after(FULL_PAUSE));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if let Some(authority) = &mut self.authority {
            authority.repair(buffer.filled_mut().get_mut(before..).unwrap_or_default());
        }
        self.see(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.record_written(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.record_written(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, farewell, .. } = &mut *self;
        ready!(Pin::new(&mut *stream).poll_flush(cx))?;
        // Flushed output ends with a whole frame.
        farewell.as_mut().map_or(Poll::Ready(Ok(())), |farewell| farewell.poll_send(stream, cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use galatea_frontend::Framing;
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::{connection::MOST_UNREAD, pings::PingRules};

    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const PRIORITY: u8 = 2;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const SECOND: Duration = Duration::from_secs(1);

    fn frame(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).expect("short");
        [&[0, 0, length, kind, 0, 0, 0, 0, stream], payload].concat()
    }

    /// How long it takes to read all of `frames`, any number of pings being borne.
    async fn time_to_read(frames: Vec<u8>) -> Duration {
        let all = [PREFACE, &frames].concat();
        let budget = MemoryBudget::unlimited();
        let pings = Pings::new(PingRules { max_strikes: 0, ..PingRules::default() });
        let activity = Arc::new(Activity::new(Arc::default(), Framing::Sequential));
        let unread = UnreadBytes::new(MOST_UNREAD, &budget);
        let mut guarded = GuardedStream::new(&all[..], pings, activity, unread, &budget);
        let start = Instant::now();
        let mut read = Vec::new();
        guarded.read_to_end(&mut read).await.expect("in memory");
        assert_eq!(read.len(), all.len());
        start.elapsed()
    }

    /// The guard reads 20,000 at once and then 20,000 a second.
    #[tokio::test(start_paused = true)]
    async fn priority_frames_are_read_at_a_limited_rate() {
        let flood = |count| frame(PRIORITY, 1, &[0, 0, 0, 0, 16]).repeat(count);
        assert_eq!(time_to_read(flood(20_000)).await, Duration::ZERO);
        let took = time_to_read(flood(60_000)).await;
        assert!((2 * SECOND..3 * SECOND).contains(&took), "{took:?}");
    }

    /// The guard answers 2,000 at once and then 2,000 a second.
    #[tokio::test(start_paused = true)]
    async fn ping_and_settings_frames_are_read_at_a_limited_rate() {
        for one in [frame(PING, 0, b"a flood!"), frame(SETTINGS, 0, &[])] {
            assert_eq!(time_to_read(one.repeat(2000)).await, Duration::ZERO);
            let took = time_to_read(one.repeat(6000)).await;
            assert!((2 * SECOND..3 * SECOND).contains(&took), "{took:?}");
        }
    }
}
