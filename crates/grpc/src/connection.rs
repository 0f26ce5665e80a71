//! How HTTP/2 is spoken: windows, frames, keepalive.

use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::GrpcOptions;

/// A stream may have this much on the way to us unread; a whole request of usual size, so that the
/// client never waits for a window update in the middle of one.
const STREAM_WINDOW: u32 = 8 << 20;
/// All streams of a connection together.
const CONNECTION_WINDOW: u32 = 32 << 20;
/// A 400 KB tensor in one frame arrives as one piece of memory.
const MAX_FRAME_SIZE: u32 = 1 << 20;
/// What a response may have waiting for the socket.
const SEND_BUFFER: usize = 1 << 20;
/// Calls that were cancelled before they were looked at. A client that gives up on many at once is no attack.
const MAX_PENDING_RESETS: usize = 1024;

pub(crate) fn builder(options: &GrpcOptions) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(MAX_FRAME_SIZE)
        .max_send_buf_size(SEND_BUFFER)
        // Load tools put hundreds of calls on one connection.
        .max_concurrent_streams(None)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .keep_alive_interval(options.keepalive_time)
        .keep_alive_timeout(options.keepalive_timeout)
        .auto_date_header(false);
    builder
}
