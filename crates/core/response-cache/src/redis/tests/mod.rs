//! The cache against servers that do what the test says.

mod outages;

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, Receiver, Sender},
    thread,
    time::{Duration, Instant},
};

use galatea_test_support::eventually;
use galatea_types::{DataType, Tensor};

use super::*;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// Accepts one connection after the other, and replies to each command with the next of the replies that it is given.
struct FakeServer {
    port: u16,
    replies: Sender<Vec<u8>>,
    commands: Receiver<Vec<Vec<u8>>>,
}

impl FakeServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (replies, to_send) = mpsc::channel::<Vec<u8>>();
        let (seen, commands) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.expect("a connection"), &to_send, &seen);
            }
        });
        Self { port, replies, commands }
    }

    fn reply(&self, reply: impl AsRef<[u8]>) {
        self.replies.send(reply.as_ref().to_vec()).expect("it runs");
    }

    fn command(&self) -> Vec<String> {
        let parts = self.commands.recv_timeout(LONG).expect("a command");
        parts.into_iter().map(|part| String::from_utf8_lossy(&part).into_owned()).collect()
    }

    fn settings(&self, more: &[(&str, &str)]) -> RedisSettings {
        let port = self.port.to_string();
        // A busy machine meets no time-out that a test does not mean.
        let patient = [("wait_timeout", "20000"), ("socket_timeout", "20000")];
        let given = [&[("host", "127.0.0.1"), ("port", &port)], &patient[..], more].concat();
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let given: Vec<_> = given.iter().map(owned).collect();
        RedisSettings::parse(&given, |_| None).expect("good")
    }

    /// A cache that is connected.
    fn cache(&self, more: &[(&str, &str)]) -> RedisCache {
        self.reply(PONG);
        let cache = RedisCache::open(self.settings(more)).expect("connected");
        assert_eq!(self.command(), ["PING"]);
        cache
    }
}

const PONG: &[u8] = b"+PONG\r\n";
/// In place of a reply: the connection is closed.
const CLOSE: &[u8] = b"close";
/// In place of a reply: nothing comes.
const SILENCE: &[u8] = b"silence";

fn serve(mut stream: TcpStream, replies: &Receiver<Vec<u8>>, seen: &Sender<Vec<Vec<u8>>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
    while let Some(command) = read_command(&mut reader) {
        let _ = seen.send(command);
        match replies.recv().as_deref() {
            Ok(CLOSE) | Err(_) => return,
            Ok(SILENCE) => {}
            Ok(reply) => stream.write_all(reply).unwrap_or_default(),
        }
    }
}

fn read_command(reader: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    let count = number(reader)?;
    let mut parts = Vec::new();
    for _ in 0..count {
        let length = number(reader)?;
        let mut part = vec![0; length + 2];
        reader.read_exact(&mut part).ok()?;
        part.truncate(length);
        parts.push(part);
    }
    Some(parts)
}

fn number(reader: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.trim().get(1..)?.parse().ok()
}

fn key(number: u8) -> CacheKey {
    CacheKey::from_bytes([number; 32])
}

fn entry() -> Entry {
    let output = Tensor::new("Y", DataType::Uint8, [2], vec![7; 2]);
    Entry::copy(&[output], Vec::new()).expect("in host memory")
}

fn bulk(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// What a look-up finds, waited for.
fn fetched(cache: &RedisCache, key: CacheKey) -> Option<Entry> {
    let (found, wait) = mpsc::channel();
    cache.fetch(key, Box::new(move |entry| found.send(entry).expect("the test waits")));
    wait.recv_timeout(LONG).expect("called")
}

fn errors(cache: &RedisCache) -> (u64, u64) {
    let Server { look_up_errors, insertion_errors, .. } = &*cache.server;
    (look_up_errors.load(Ordering::Relaxed), insertion_errors.load(Ordering::Relaxed))
}

#[test]
fn responses_are_stored_and_found() {
    let server = FakeServer::start();
    let cache = server.cache(&[("ttl", "60")]);
    assert!(matches!(cache.look_up(&key(1)), LookUp::Elsewhere));
    server.reply(b"$-1\r\n");
    assert!(fetched(&cache, key(1)).is_none());
    let name = format!("galatea:response:{}", "01".repeat(32));
    assert_eq!(server.command(), ["GET", &name]);
    server.reply(b"+OK\r\n");
    assert!(matches!(cache.insert(key(1), &entry()), Insertion::Done));
    let stored = server.command();
    assert_eq!((&*stored[0], &*stored[1], &*stored[3], &*stored[4]), ("SET", &*name, "EX", "60"));
    server.reply(bulk(&crate::encode(&entry())));
    let found = fetched(&cache, key(1)).expect("there");
    assert_eq!(found.outputs(), entry().outputs());
    assert_eq!(errors(&cache), (0, 0));
}

#[test]
fn a_connection_begins_with_authentication() {
    let server = FakeServer::start();
    for _ in 0..3 {
        server.reply(b"+OK\r\n");
    }
    let _cache =
        RedisCache::open(server.settings(&[("user", "u"), ("password", "p"), ("db", "3")]));
    let commands = [(); 3].map(|()| server.command());
    assert_eq!(commands, [vec!["AUTH", "u", "p"], vec!["SELECT", "3"], vec!["PING"]]);
}

#[test]
fn errors_of_the_server_at_start_are_reported() {
    let server = FakeServer::start();
    for (reply, text) in [
        (
            &b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"[..],
            "WRONGPASS invalid",
        ),
        (b"-NOAUTH Authentication required.\r\n", "NOAUTH Authentication required."),
        (CLOSE, "Failed to connect to Redis (127.0.0.1:"),
        (b"HTTP/1.1 400 Bad Request\r\n", "Failed to connect to Redis (127.0.0.1:"),
    ] {
        server.reply(reply);
        let error = RedisCache::open(server.settings(&[])).expect_err("refused").to_string();
        let start = format!("Failed to initialize RedisCache: {text}");
        assert!(error.starts_with(&start), "{error}");
    }
    let unused = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    for (port, text) in [(unused.port(), "Connection refused"), (0, "'port' must be 1 to 65535")] {
        let settings = RedisSettings { port, ..server.settings(&[]) };
        let error = RedisCache::open(settings).expect_err("nobody listens").to_string();
        let head = "Failed to initialize RedisCache: Failed to connect to Redis";
        let start = format!("{head} (127.0.0.1:{port}): ");
        assert!(error.starts_with(&start) && error.contains(text), "{error}");
    }
}

#[test]
fn unreadable_entries_count_as_misses() {
    let server = FakeServer::start();
    let cache = server.cache(&[]);
    for reply in [bulk(b"galresp1"), bulk(b"other"), b"-WRONGTYPE Operation\r\n".to_vec()] {
        server.reply(reply);
        assert!(fetched(&cache, key(1)).is_none());
        server.command();
    }
    assert_eq!(errors(&cache), (3, 0));
    let looked_up = cache.look_up(&key(1));
    assert!(matches!(looked_up, LookUp::Elsewhere), "the connection is as good as before");
}

#[test]
fn a_failed_connection_is_reopened_without_blocking_requests() {
    let server = FakeServer::start();
    let cache = server.cache(&[("socket_timeout", "1000")]);
    for failure in [CLOSE, SILENCE, b"$99999999999\r\n", b"*1\r\n"] {
        server.reply(failure);
        assert!(fetched(&cache, key(1)).is_none());
        assert_eq!(server.command()[0], "GET");
        server.reply(PONG);
        assert_eq!(server.command(), ["PING"]);
        eventually("the cache is connected again", || {
            matches!(cache.look_up(&key(1)), LookUp::Elsewhere)
        });
    }
    server.reply(b"$-1\r\n");
    assert!(fetched(&cache, key(1)).is_none());
}

#[test]
fn lookups_during_an_outage_are_misses() {
    let server = FakeServer::start();
    let cache = server.cache(&[("socket_timeout", "1000")]);
    server.reply(CLOSE);
    assert!(fetched(&cache, key(1)).is_none());
    // The server does not let anybody in from now on.
    eventually("the outage is known", || matches!(cache.look_up(&key(1)), LookUp::Miss));
    assert!(fetched(&cache, key(1)).is_none(), "asked in spite of that");
    assert!(matches!(cache.insert(key(1), &entry()), Insertion::Lost));
    assert!(errors(&cache).0 >= 2);
}

#[test]
fn a_lookup_that_waits_too_long_for_a_connection_is_a_miss() {
    let server = FakeServer::start();
    let cache = server.cache(&[("wait_timeout", "1000")]);
    let long_ago = Instant::now().checked_sub(Duration::from_secs(2)).expect("the machine is up");
    let (found, wait) = mpsc::channel();
    let then: OnLookUp = Box::new(move |entry| found.send(entry).expect("the test waits"));
    cache.workers[0].fetch_since(long_ago, key(1), then);
    assert!(wait.recv_timeout(LONG).expect("called").is_none());
    assert_eq!(errors(&cache).0, 1);
    assert!(server.commands.try_recv().is_err(), "it was never asked for");
}
