//! An inference server for tests: it speaks just enough HTTP, and its responses can be held back.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
    time::Duration,
};

use galatea_client::{Compression, Endpoint, Protocol, Target};

/// A test that waits longer for something has failed.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct FakeServer {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Default)]
pub struct Seen {
    pub bodies: Vec<String>,
    pub connections: usize,
    /// Requests of each connection, in the order in which the connections were made.
    pub requests: Vec<usize>,
    pub in_flight: usize,
    pub peak: usize,
    /// Responses wait until so many requests are in flight at once.
    pub together: usize,
    /// Responses wait.
    pub held: bool,
    pub answer: Answer,
}

#[derive(Clone, Copy, Default)]
pub enum Answer {
    #[default]
    Good,
    Error(&'static str),
    /// The connection is closed instead.
    Nothing,
}

impl FakeServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::<State>::default();
        let server = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let state = server.clone();
                let connection = state.add_connection();
                thread::spawn(move || state.serve(connection, stream.unwrap()));
            }
        });
        Self { port, state }
    }

    pub fn target(&self) -> Target {
        Target {
            protocol: Protocol::Http,
            endpoint: Endpoint::Tcp { host: "127.0.0.1".into(), port: self.port },
            base_path: String::new(),
            headers: Vec::new(),
            tls: None,
            compression: Compression::None,
        }
    }

    /// Looks at what has come, or changes what will be answered.
    pub fn with<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        let result = look(&mut self.state.seen());
        self.state.changed.notify_all();
        result
    }

    #[track_caller]
    pub fn wait_for(&self, what: impl Fn(&Seen) -> bool) {
        let seen = self.state.seen();
        let waiting = |seen: &mut Seen| !what(seen);
        let seen = self.state.changed.wait_timeout_while(seen, PATIENCE, waiting).unwrap();
        assert!(!seen.1.timed_out(), "the server waited in vain");
    }
}

impl State {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    fn add_connection(&self) -> usize {
        let mut seen = self.seen();
        seen.connections += 1;
        seen.requests.push(0);
        seen.connections - 1
    }

    fn serve(&self, connection: usize, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut writer = stream;
        while let Some(body) = read_request(&mut reader) {
            match self.take(connection, body) {
                Answer::Good => respond(&mut writer, "200 OK", GOOD),
                Answer::Error(text) => {
                    respond(&mut writer, "400 Bad Request", &format!("{{\"error\":\"{text}\"}}"));
                }
                Answer::Nothing => return,
            }
        }
    }

    fn take(&self, connection: usize, body: String) -> Answer {
        let mut seen = self.seen();
        seen.requests[connection] += 1;
        seen.bodies.push(body);
        seen.in_flight += 1;
        seen.peak = seen.peak.max(seen.in_flight);
        self.changed.notify_all();
        let waiting = |seen: &mut Seen| seen.held || seen.peak < seen.together;
        let (mut seen, _) = self.changed.wait_timeout_while(seen, PATIENCE, waiting).unwrap();
        seen.in_flight -= 1;
        seen.answer
    }
}

const GOOD: &str = r#"{"model_name":"m","model_version":"1","outputs":[{"name":"OUT","datatype":"INT32","shape":[1],"data":[7]}]}"#;

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(String::from_utf8(body).unwrap())
}

fn respond(writer: &mut TcpStream, status: &str, body: &str) {
    let length = body.len();
    let response = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
    // A client that stops may have gone.
    let _ = writer.write_all(response.as_bytes());
}
