//! Clients that keep a front end waiting, and more of them than there may be, over real sockets.

// The lint knows #[test] functions only; this is what they are made of.
#![allow(clippy::expect_used)]

use std::{
    future::poll_fn,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use galatea_frontend::{
    Activity, Client, Closing, ConnectionLimits, ConnectionSettings, Framing, FrontEnd,
    FrontEndOptions, InFlight, Listener, PortTransport, Protocol, Stream,
};
use galatea_test_support::eventually;
use galatea_types::MemoryBudget;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LONG: Duration = Duration::from_secs(20);

/// A request is a byte that says how long the answer is; the request `0` is followed by a body of one byte.
#[derive(Default)]
struct Bytes {
    in_flight: Arc<InFlight>,
}

impl Bytes {
    async fn answer(&self, mut stream: impl Stream, activity: &Arc<Activity>) -> io::Result<()> {
        loop {
            let mut request = stream.read_u8().await?;
            if request == b'h' {
                // A head of two bytes.
                request = stream.read_u8().await?;
            }
            let call = activity.begin_call();
            if request == 0 {
                let _receiving = call.activity().receive();
                request = stream.read_u8().await?;
            }
            write_and_flush(&mut stream, &vec![request; usize::from(request) << 20]).await?;
            write_and_flush(&mut stream, b".").await?;
        }
    }
}

/// Writes all, and flushes whenever the stream takes no more, as HTTP does while it looks whether its client is there.
async fn write_and_flush(stream: &mut impl Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = poll_fn(|context| {
            let written = Pin::new(&mut *stream).poll_write(context, bytes);
            if written.is_pending()
                && let Poll::Ready(Err(error)) = Pin::new(&mut *stream).poll_flush(context)
            {
                return Poll::Ready(Err(error));
            }
            written
        });
        bytes = bytes.get(written.await?..).unwrap_or_default();
    }
    stream.flush().await
}

impl Protocol for Bytes {
    type Error = io::Error;

    fn in_flight(&self) -> &Arc<InFlight> {
        &self.in_flight
    }

    fn framing(&self) -> Framing {
        Framing::Sequential
    }

    async fn serve(
        &self,
        stream: impl Stream,
        _: Client,
        activity: Arc<Activity>,
        mut closing: Closing,
    ) -> io::Result<()> {
        tokio::select! {
            ended = self.answer(stream, &activity) => ended,
            () = closing.wait() => Ok(()),
        }
    }
}

fn start(settings: ConnectionSettings) -> (FrontEnd, Arc<ConnectionLimits>) {
    let limits = ConnectionLimits::new(settings, MemoryBudget::unlimited());
    (start_within(&limits, false), limits)
}

fn start_within(limits: &Arc<ConnectionLimits>, uses_reserve: bool) -> FrontEnd {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    start_on(listener, limits, uses_reserve)
}

fn start_on(
    listener: impl Into<Listener>,
    limits: &Arc<ConnectionLimits>,
    uses_reserve: bool,
) -> FrontEnd {
    let options = FrontEndOptions {
        name: "bytes",
        thread_count: 2,
        accepts_while_draining: false,
        limits: limits.clone(),
        uses_reserve,
    };
    FrontEnd::start(listener.into(), PortTransport::default(), Bytes::default(), options)
        .expect("starts")
}

fn connect(front_end: &FrontEnd) -> TcpStream {
    let stream = TcpStream::connect(front_end.local_addr().expect("TCP")).expect("connects");
    stream.set_read_timeout(Some(LONG)).expect("set");
    stream
}

/// Whether the server closes the connection, for which the client waits.
fn is_closed(client: &mut TcpStream) -> bool {
    let mut byte = [0];
    loop {
        match client.read(&mut byte) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

/// The answer to a request of an empty one.
fn ask(client: &mut TcpStream) -> io::Result<u8> {
    client.write_all(&[0, 0])?;
    let mut answer = [0];
    client.read_exact(&mut answer)?;
    Ok(answer[0])
}

const SHORT: Duration = Duration::from_millis(100);

/// Nothing but what a test shortens runs out.
fn patient() -> ConnectionSettings {
    ConnectionSettings {
        head_timeout: Duration::MAX,
        progress_timeout: Duration::MAX,
        idle_timeout: Duration::MAX,
        ..ConnectionSettings::default()
    }
}

#[test]
fn a_connection_without_a_complete_head_is_closed() {
    // Long enough to connect and to ask, also where this thread gets no processor for a while.
    let head_timeout = Duration::from_secs(1);
    let (front_end, _) = start(ConnectionSettings { head_timeout, ..patient() });
    let (mut silent, mut half, mut idle) =
        (connect(&front_end), connect(&front_end), connect(&front_end));
    half.write_all(b"h").expect("sends");
    assert_eq!(ask(&mut idle).expect("answered"), b'.');
    assert!(is_closed(&mut silent));
    assert!(is_closed(&mut half));
    assert_eq!(ask(&mut idle).expect("still open"), b'.');
    idle.write_all(b"h").expect("sends");
    assert!(is_closed(&mut idle), "a later head too");
}

#[test]
fn a_connection_without_a_complete_body_is_closed() {
    let (front_end, _) = start(ConnectionSettings { progress_timeout: SHORT, ..patient() });
    let (mut half, mut idle) = (connect(&front_end), connect(&front_end));
    assert_eq!(ask(&mut idle).expect("answered"), b'.');
    half.write_all(&[0]).expect("sends");
    assert!(is_closed(&mut half));
    assert_eq!(ask(&mut idle).expect("still open"), b'.');
}

/// Only bytes that the socket accepts count, however the protocol polls the stream.
#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let limits = || {
        let settings = ConnectionSettings { progress_timeout: SHORT, ..patient() };
        ConnectionLimits::new(settings, MemoryBudget::unlimited())
    };
    let is_cut_off = |limits: &ConnectionLimits, over: &str| {
        eventually(&format!("the connection over {over} is cut off"), || {
            limits.counts().closed.contains(&("slow_response", 1)) && limits.open() == 0
        });
    };
    let over_tcp = limits();
    let front_end = start_within(&over_tcp, false);
    let mut deaf = connect(&front_end);
    deaf.write_all(&[200]).expect("sends");
    is_cut_off(&over_tcp, "TCP");
    assert!(is_closed(&mut deaf));
    let over_unix = limits();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let _front_end = start_on(UnixListener::bind(&path).expect("binds"), &over_unix, false);
    let mut deaf = UnixStream::connect(&path).expect("connects");
    deaf.write_all(&[200]).expect("sends");
    is_cut_off(&over_unix, "a Unix socket");
}

#[test]
fn an_idle_connection_is_closed_after_its_timeout() {
    let (front_end, _) = start(ConnectionSettings { idle_timeout: SHORT, ..patient() });
    let mut idle = connect(&front_end);
    assert_eq!(ask(&mut idle).expect("answered"), b'.');
    assert!(is_closed(&mut idle));
}

#[test]
fn idle_connections_are_closed_for_new_ones_but_busy_ones_are_kept() {
    let (front_end, limits) =
        start(ConnectionSettings { max_connections: 40, reserved_connections: 10, ..patient() });
    let mut busy = connect(&front_end);
    busy.write_all(&[0]).expect("sends");
    let mut kept: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut client = connect(&front_end);
            assert_eq!(ask(&mut client).expect("served at the limit"), b'.');
            client
        })
        .collect();
    assert!(is_closed(kept.first_mut().expect("many")), "the oldest went");
    let last = kept.last_mut().expect("many");
    assert_eq!(ask(last).expect("the newest stays"), b'.');
    busy.write_all(&[0]).expect("sends");
    let mut answer = [0];
    busy.read_exact(&mut answer).expect("never closed");
    let metrics = start_within(&limits, true);
    assert_eq!(ask(&mut connect(&metrics)).expect("has its reserve"), b'.');
}

#[test]
fn a_burst_of_silent_connections_does_not_lock_out_clients() {
    for _ in 0..20 {
        let (front_end, _) =
            start(ConnectionSettings { max_connections: 50, reserved_connections: 2, ..patient() });
        let silent: Vec<TcpStream> = (0..120).map(|_| connect(&front_end)).collect();
        assert_eq!(ask(&mut connect(&front_end)).expect("served"), b'.');
        drop(silent);
    }
}
