//! Probes of a connection, on a clock that the test moves.

use std::{pin::pin, time::Duration};

use galatea_types::MemoryBudget;
use http::Response;
use tokio::{
    io::AsyncWriteExt as _,
    time::{Instant, timeout},
};

use super::*;

const INTERVAL: Duration = Duration::from_millis(400);
const TIMEOUT: Duration = Duration::from_millis(100);
/// Timers go by milliseconds.
const TICK: Duration = Duration::from_millis(2);

fn unread() -> Arc<UnreadBytes> {
    UnreadBytes::new(MOST_UNREAD, &MemoryBudget::unlimited())
}

fn rules() -> KeepAliveRules {
    KeepAliveRules { interval: INTERVAL, timeout: TIMEOUT }
}

async fn answer(_: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    respond.send_response(Response::new(()), true).expect("the call is open");
}

/// What a client says first: its settings are the usual ones.
fn opening() -> Vec<u8> {
    [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat()
}

/// A call in one frame: `POST`, `http`, `/`.
fn call(id: u8) -> [u8; 12] {
    const END_OF_STREAM_AND_HEADERS: u8 = 5;
    [0, 0, 3, 1, END_OF_STREAM_AND_HEADERS, 0, 0, 0, id, 0x83, 0x86, 0x84]
}

#[track_caller]
fn check_time(taken: Duration, expected: Duration) {
    assert!((expected..=expected + TICK).contains(&taken), "{taken:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_no_probe_is_disconnected() {
    let (near, mut client) = tokio::io::duplex(1 << 16);
    client.write_all(&opening()).await.expect("room");
    let start = Instant::now();
    let end = Connection::new(near, &http2(), rules(), unread(), answer).await;
    assert!(matches!(end, Err(ConnectionError::Lost)), "{end:?}");
    check_time(start.elapsed(), INTERVAL + TIMEOUT);
}

/// The client answers no probe, so a probe would end its connection.
#[tokio::test(start_paused = true)]
async fn a_client_is_probed_only_after_silence() {
    let (near, mut client) = tokio::io::duplex(1 << 16);
    client.write_all(&opening()).await.expect("room");
    let mut connection = pin!(Connection::new(near, &http2(), rules(), unread(), answer));
    let mut last = Instant::now();
    for id in (1..40).step_by(2) {
        last = Instant::now();
        client.write_all(&call(id)).await.expect("room");
        let ended = timeout(INTERVAL * 3 / 4, connection.as_mut()).await;
        assert!(ended.is_err(), "call {id}: {ended:?}");
    }
    let end = connection.await;
    assert!(matches!(end, Err(ConnectionError::Lost)), "{end:?}");
    check_time(last.elapsed(), INTERVAL + TIMEOUT);
}
