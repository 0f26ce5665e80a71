//! Outages with several connections and requests from several threads.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicUsize},
};

use galatea_telemetry::metrics::Figures;
use galatea_types::LockExt;

use super::*;

/// A server of many connections. It knows no key, and hangs as long as the test wants: it reads commands and answers nothing.
struct HangingServer {
    port: u16,
    state: Arc<HangingState>,
}

#[derive(Default)]
struct HangingState {
    hangs: AtomicBool,
    refuses_greetings: AtomicBool,
    look_ups: AtomicUsize,
    greetings: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
}

impl HangingServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let state = Arc::<HangingState>::default();
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.expect("a connection"), shared.clone());
                state.open.lock_unpoisoned().push(stream.try_clone().expect("a copy"));
                thread::spawn(move || state.serve(stream));
            }
        });
        Self { port, state }
    }

    fn hang(&self, hangs: bool) {
        self.state.hangs.store(hangs, Ordering::SeqCst);
        self.state.refuses_greetings.store(hangs, Ordering::SeqCst);
    }

    fn look_ups(&self) -> usize {
        self.state.look_ups.load(Ordering::SeqCst)
    }

    fn cache(&self, more: &[(&str, &str)]) -> RedisCache {
        let port = self.port.to_string();
        let given = [&[("host", "127.0.0.1"), ("port", &port)], more].concat();
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let given: Vec<_> = given.iter().map(owned).collect();
        RedisCache::open(RedisSettings::parse(&given, |_| None).expect("good")).expect("connected")
    }
}

impl HangingState {
    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
        while let Some(command) = read_command(&mut reader) {
            let is_look_up = command[0] == b"GET";
            let (count, hangs, reply) = match is_look_up {
                true => (&self.look_ups, &self.hangs, &b"$-1\r\n"[..]),
                false => (&self.greetings, &self.refuses_greetings, PONG),
            };
            let hangs = hangs.load(Ordering::SeqCst);
            count.fetch_add(1, Ordering::SeqCst);
            match (hangs, is_look_up) {
                (false, _) => stream.write_all(reply).unwrap_or_default(),
                (true, true) => {}
                (true, false) => return,
            }
        }
    }
}

fn figure(cache: &RedisCache, name: &str) -> u64 {
    let mut figures = Figures::default();
    cache.add_figures(&mut figures);
    let memory = galatea_telemetry::metrics::MemoryMetrics::default();
    let text = galatea_telemetry::metrics::render_server(<_>::default(), memory, &figures);
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.expect("a line").parse().expect("a number")
}

/// Keys of requests to several models, which go to all connections.
fn keys() -> impl Iterator<Item = CacheKey> {
    (0..64).map(|number| CacheKey::from_bytes([number; 32]))
}

fn all_are_connected(cache: &RedisCache) -> bool {
    keys().all(|key| matches!(cache.look_up(&key), LookUp::Elsewhere))
}

/// Looks up all keys from eight threads, as schedulers do. Returns how many look-ups waited for the server.
fn look_up_from_threads(cache: &RedisCache) -> usize {
    let waited = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for key in keys() {
                    if let LookUp::Elsewhere = cache.look_up(&key) {
                        waited.fetch_add(1, Ordering::SeqCst);
                        assert!(fetched(cache, key).is_none());
                    }
                }
            });
        }
    });
    waited.into_inner()
}

#[test]
fn one_request_waits_for_a_server_that_hangs_and_then_none_on_any_connection() {
    let server = HangingServer::start();
    let cache = server.cache(&[("pool_size", "4"), ("socket_timeout", "1000")]);
    assert!(all_are_connected(&cache));
    for round in 1..=2 {
        server.hang(true);
        assert!(fetched(&cache, key(1)).is_none());
        assert_eq!((look_up_from_threads(&cache), server.look_ups()), (0, round));
        assert_eq!(figure(&cache, "galatea_response_cache_lost"), 1);
        assert_eq!(figure(&cache, "galatea_response_cache_losses_total"), round as u64);
        // It answers greetings again, but not look-ups: one more request waits, not one for each connection.
        server.state.refuses_greetings.store(false, Ordering::SeqCst);
        eventually("all connections are open again", || all_are_connected(&cache));
        assert_eq!(figure(&cache, "galatea_response_cache_lost"), 0);
    }
    server.hang(false);
    assert!(fetched(&cache, key(1)).is_none());
    eventually("look-ups are answered", || all_are_connected(&cache));
}

#[test]
fn requests_at_other_connections_wait_no_longer_than_the_first() {
    let server = HangingServer::start();
    // One connection is ended by the server; the others have a minute.
    let cache = server.cache(&[("pool_size", "4"), ("socket_timeout", "60000")]);
    server.hang(true);
    let (found, wait) = mpsc::channel();
    for key in keys() {
        let found = found.clone();
        cache.fetch(key, Box::new(move |entry| found.send(entry.is_none()).expect("waits")));
    }
    eventually("each connection has a look-up", || server.look_ups() == 4);
    server.state.open.lock_unpoisoned()[2].shutdown(std::net::Shutdown::Both).expect("open");
    for _ in keys() {
        assert!(wait.recv_timeout(LONG).expect("in time"));
    }
    assert_eq!(server.look_ups(), 4, "those that waited in the queues were not sent");
    assert_eq!(errors(&cache).0, 64);
    assert_eq!(figure(&cache, "galatea_response_cache_losses_total"), 1);
}
