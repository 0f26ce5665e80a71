//! A front end with a protocol of its own: every line is answered by itself, over TCP and through a Unix socket,
//! as it is and behind a transport that changes the bytes.

// The lint knows #[test] functions only; this is what they are made of.
#![allow(clippy::expect_used)]

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use galatea_frontend::{
    Activity, Client, Closing, ConnectionLimits, ConnectionSettings, Framing, FrontEnd,
    FrontEndOptions, InFlight, Listener, Opened, PortTransport, Protocol, Socket, Stream,
    Transport, catch_panic,
};
use galatea_test_support::eventually;
use galatea_types::MemoryBudget;
use tempfile::TempDir;
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader as AsyncBufReader, DuplexStream,
};

const LONG: Duration = Duration::from_secs(20);

/// Answers a line with itself; `panic` with what the panic wall lets through, `wait` never, and everything with
/// `refused` once requests are refused.
#[derive(Default)]
struct Echo {
    in_flight: Arc<InFlight>,
}

impl Echo {
    async fn answer(&self, line: &str) -> String {
        let Some(_guard) = self.in_flight.try_begin() else { return "refused\n".to_owned() };
        let handler = async {
            match line {
                "panic\n" => panic!("asked for"),
                "wait\n" => std::future::pending().await,
                _ => line.to_owned(),
            }
        };
        catch_panic("a line", handler).await.unwrap_or_else(|| "caught\n".to_owned())
    }

    async fn lines(&self, stream: impl Stream, activity: &Arc<Activity>) -> io::Result<()> {
        let mut stream = AsyncBufReader::new(stream);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let _call = activity.begin_call();
            stream.write_all(self.answer(&line).await.as_bytes()).await?;
        }
    }
}

impl Protocol for Echo {
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
            ended = self.lines(stream, &activity) => ended,
            () = closing.wait() => Ok(()),
        }
    }
}

/// Stands for an encrypted transport: a handshake of one byte, then a stream that is no socket.
struct Shouting;

impl Transport for Shouting {
    type Stream = DuplexStream;

    async fn accept(&self, mut socket: Socket) -> io::Result<Opened<DuplexStream>> {
        if socket.read_u8().await? != b'!' {
            return Err(io::Error::other("no handshake"));
        }
        let (near, far) = tokio::io::duplex(1 << 10);
        tokio::spawn(async move {
            let (mut from, mut to) = tokio::io::split(far);
            let (mut socket_from, mut socket_to) = tokio::io::split(socket);
            let inward = tokio::io::copy(&mut socket_from, &mut to);
            let outward = async {
                let mut bytes = [0; 64];
                loop {
                    let count = from.read(&mut bytes).await?;
                    if count == 0 {
                        return io::Result::Ok(());
                    }
                    bytes.make_ascii_uppercase();
                    socket_to.write_all(&bytes[..count]).await?;
                }
            };
            tokio::select! { _ = inward => {}, _ = outward => {} }
        });
        Ok(Opened { stream: near, certificate: None, unexpected_tls: None })
    }
}

fn options(accepts_while_draining: bool) -> FrontEndOptions {
    limited(accepts_while_draining, ConnectionSettings::default())
}

fn limited(accepts_while_draining: bool, settings: ConnectionSettings) -> FrontEndOptions {
    let limits = ConnectionLimits::new(settings, MemoryBudget::unlimited());
    FrontEndOptions {
        name: "echo",
        thread_count: 2,
        accepts_while_draining,
        limits,
        uses_reserve: false,
    }
}

fn start(listener: impl Into<Listener>) -> FrontEnd {
    FrontEnd::start(listener.into(), PortTransport::default(), Echo::default(), options(false))
        .expect("starts")
}

fn any_port() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a free port")
}

fn unix_socket() -> (UnixListener, PathBuf, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    (UnixListener::bind(&path).expect("binds"), path, folder)
}

fn connect(front_end: &FrontEnd) -> BufReader<TcpStream> {
    let address = front_end.local_addr().expect("TCP");
    BufReader::new(TcpStream::connect(address).expect("connects"))
}

/// The answer to a line; empty when the connection is closed instead.
fn ask<S: Read + Write>(client: &mut BufReader<S>, line: &str) -> String {
    let mut answer = String::new();
    let sent = client.get_mut().write_all(format!("{line}\n").as_bytes());
    let _ = sent.and_then(|()| client.read_line(&mut answer));
    answer.trim_end().to_owned()
}

#[test]
fn tcp_connections_are_counted_and_spread_over_threads() {
    let front_end = start(any_port());
    let mut clients: Vec<_> = (0..5).map(|_| connect(&front_end)).collect();
    for client in &mut clients {
        assert_eq!(ask(client, "hello"), "hello");
    }
    assert_eq!((front_end.open_connections(), front_end.requests_in_flight()), (5, 0));
    drop(clients);
    eventually("closed connections are forgotten", || front_end.open_connections() == 0);
}

#[test]
fn a_unix_socket_is_served_like_tcp() {
    let (listener, path, _folder) = unix_socket();
    let front_end = start(listener);
    assert_eq!(front_end.local_addr(), None);
    let mut client = BufReader::new(UnixStream::connect(&path).expect("connects"));
    assert_eq!(ask(&mut client, "hello"), "hello");
    assert_eq!(front_end.shut_down(LONG), 0);
    assert_eq!(ask(&mut client, "hello"), "");
}

#[test]
fn a_panic_ends_only_its_request() {
    let front_end = start(any_port());
    let mut client = connect(&front_end);
    assert_eq!(ask(&mut client, "panic"), "caught");
    assert_eq!(ask(&mut client, "hello"), "hello");
}

#[test]
fn requests_in_progress_at_the_deadline_are_cut_off() {
    let front_end = start(any_port());
    let mut waiting = connect(&front_end);
    waiting.get_mut().write_all(b"wait\n").expect("sends");
    eventually("the request is in flight", || front_end.requests_in_flight() == 1);
    let mut late = connect(&front_end);
    assert_eq!(ask(&mut late, "hello"), "hello");
    front_end.refuse_new_requests();
    assert_eq!(ask(&mut late, "hello"), "refused");
    assert_eq!(front_end.shut_down(Duration::from_millis(1)), 1);
    assert_eq!(waiting.read(&mut [0]).unwrap_or(0), 0, "closed");
}

#[test]
fn new_clients_are_accepted_while_draining_only_if_configured() {
    for is_wanted in [true, false] {
        let front_end = FrontEnd::start(
            any_port().into(),
            PortTransport::default(),
            Echo::default(),
            options(is_wanted),
        )
        .expect("starts");
        let address = front_end.local_addr().expect("TCP");
        front_end.refuse_new_requests();
        if is_wanted {
            assert_eq!(ask(&mut connect(&front_end), "hello"), "refused");
        } else {
            eventually("nobody listens", || TcpStream::connect(address).is_err());
        }
    }
}

#[test]
fn a_transport_may_wrap_the_stream_and_refuse_a_client() {
    let (listener, path, _folder) = unix_socket();
    let front_end = FrontEnd::start(listener.into(), Shouting, Echo::default(), options(false))
        .expect("starts");
    let connect = || BufReader::new(UnixStream::connect(&path).expect("connects"));
    let mut good = connect();
    good.get_mut().write_all(b"!").expect("sends");
    assert_eq!(ask(&mut good, "hello"), "HELLO");
    assert_eq!(ask(&mut connect(), "hello"), "", "no handshake");
    let _silent = connect();
    eventually("the good one and the silent one are open", || front_end.open_connections() >= 2);
    assert_eq!(front_end.shut_down(LONG), 0, "a handshake that never comes holds up nothing");
}
