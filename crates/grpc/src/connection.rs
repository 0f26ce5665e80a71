//! How HTTP/2 is spoken: windows, frames, keepalive.

use hyper::server::conn::http2;
use hyper_util::rt::TokioTimer;

use crate::{GrpcOptions, call_task::CallExecutor};

/// A stream may have this much on the way to us unread; a whole request of usual size, so that the
/// client never waits for a window update in the middle of one.
const STREAM_WINDOW: u32 = 8 << 20;
/// All streams of a connection together.
const CONNECTION_WINDOW: u32 = 16 << 20;
/// A 400 KB tensor in one frame arrives as one piece of memory.
const MAX_FRAME_SIZE: u32 = 1 << 20;
/// What waits unread in memory for one connection at most.
pub(crate) const MOST_UNREAD: usize = (CONNECTION_WINDOW + MAX_FRAME_SIZE) as usize;
/// What a response may have waiting for the socket.
const SEND_BUFFER: usize = 1 << 20;
/// Calls that were cancelled before they were looked at. A client that gives up on many at once is no attack.
const MAX_PENDING_RESETS: usize = 1024;

/// Calls that were refused or broken off because the client broke the rules; a connection with more is closed.
const MAX_LOCAL_RESETS: usize = 1024;
/// Calls that may be open on one connection. Load tools put hundreds on one; clients wait with further ones.
const MAX_CALLS_PER_CONNECTION: u32 = 1000;
/// Names, values and 32 bytes for each, of the metadata of a call.
const MAX_METADATA: u32 = 16 << 10;

pub(crate) fn builder(options: &GrpcOptions) -> http2::Builder<CallExecutor> {
    let mut builder = http2::Builder::new(CallExecutor::new(options.limits.settings()));
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(MAX_FRAME_SIZE)
        .max_send_buf_size(SEND_BUFFER)
        .max_concurrent_streams(MAX_CALLS_PER_CONNECTION)
        .max_header_list_size(MAX_METADATA)
        .max_local_error_reset_streams(MAX_LOCAL_RESETS)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .keep_alive_interval(options.keepalive_time)
        .keep_alive_timeout(options.keepalive_timeout)
        .auto_date_header(false);
    builder
}
