//! A connection to a Redis server on which every command has a deadline.

use std::{
    io::{self, BufReader, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use galatea_types::LockExt;
use rustls::{ClientConnection, StreamOwned};

use super::{
    protocol::{Reply, command, read_reply},
    settings::RedisSettings,
    tls::Tls,
};

/// Most addresses of one name that are tried.
const MOST_ADDRESSES: usize = 8;

/// The reason why a command, or the connection, failed.
#[derive(Debug, thiserror::Error)]
pub enum RedisError {
    /// No connection could be made.
    #[error("Failed to connect to Redis ({host}:{port}): {error}")]
    Connect {
        /// The host of the settings.
        host: String,
        /// The port of the settings.
        port: u16,
        /// The reason.
        error: io::Error,
    },
    /// The connection ended, was too slow, or received something unexpected.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The server's own text.
    #[error("{0}")]
    Refused(String),
}

/// A connection.
pub struct Connection {
    stream: BufReader<Box<dyn Stream>>,
    /// The deadline of the current command.
    deadline: Arc<Mutex<Instant>>,
    time_out: Duration,
    /// The same socket, for a thread that ends the connection.
    socket: Option<TcpStream>,
}

impl Connection {
    /// Connects, and does not return before the server answers commands.
    pub fn open(settings: &RedisSettings, tls: Option<&Tls>) -> Result<Self, RedisError> {
        let failed = |error| {
            let (host, port) = (settings.host.clone(), settings.port);
            RedisError::Connect { host, port, error }
        };
        let socket = connect(settings).map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;
        let deadline = Arc::new(Mutex::new(Instant::now()));
        let handle = Some(socket.try_clone().map_err(failed)?);
        let timed = DeadlineStream { socket, deadline: deadline.clone() };
        let stream: Box<dyn Stream> = match tls {
            None => Box::new(timed),
            Some(Tls { config, name }) => {
                let session = ClientConnection::new(config.clone(), name.clone())
                    .map_err(|error| failed(io::Error::other(error)))?;
                Box::new(StreamOwned::new(session, timed))
            }
        };
        let (stream, time_out) = (BufReader::new(stream), settings.socket_timeout);
        let mut connection = Self { stream, deadline, time_out, socket: handle };
        connection.begin(settings).map_err(|error| match error {
            RedisError::Io(error) => failed(error),
            other => other,
        })?;
        Ok(connection)
    }

    /// Returns the socket, for a thread that ends the connection while another one uses it. Only the first call returns it.
    pub fn take_socket(&mut self) -> Option<TcpStream> {
        self.socket.take()
    }

    fn begin(&mut self, settings: &RedisSettings) -> Result<(), RedisError> {
        let (user, password) = (settings.user.as_bytes(), settings.password.as_bytes());
        match (user.is_empty(), password.is_empty()) {
            (_, true) => {}
            // Servers before version 6 understand this form too.
            (true, false) => self.expect(&[b"AUTH", password])?,
            (false, false) => self.expect(&[b"AUTH", user, password])?,
        }
        if settings.db > 0 {
            self.expect(&[b"SELECT", settings.db.to_string().as_bytes()])?;
        }
        self.expect(&[b"PING"])
    }

    fn expect(&mut self, parts: &[&[u8]]) -> Result<(), RedisError> {
        self.ask(parts, 1 << 10).map(|_| ())
    }

    /// Sends a command and waits for its reply, for one time-out in all. After [`RedisError::Io`] the connection must not be used
    /// again: a late reply would be taken for the reply to the next command.
    pub fn ask(&mut self, parts: &[&[u8]], most: usize) -> Result<Reply, RedisError> {
        *self.deadline.lock_unpoisoned() = Instant::now() + self.time_out;
        self.stream.get_mut().write_all(&command(parts))?;
        self.stream.get_mut().flush()?;
        match read_reply(&mut self.stream, most)? {
            Reply::Error(text) => Err(RedisError::Refused(text)),
            reply => Ok(reply),
        }
    }
}

fn connect(settings: &RedisSettings) -> io::Result<TcpStream> {
    let deadline = Instant::now() + settings.connect_timeout;
    let addresses = (&*settings.host, settings.port).to_socket_addrs()?;
    let mut last = io::Error::other("the name has no address");
    for address in addresses.take(MOST_ADDRESSES) {
        match left(deadline).and_then(|left| TcpStream::connect_timeout(&address, left)) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    if settings.port == 0 {
        return Err(io::Error::new(last.kind(), format!("{last}; 'port' must be 1 to 65535")));
    }
    Err(last)
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.checked_duration_since(Instant::now());
    left.filter(|left| !left.is_zero()).ok_or_else(timed_out)
}

fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it took too long")
}

/// The bytes of a connection, in the clear or encrypted.
trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// A socket whose reads and writes end at a deadline, regardless of their number and size.
struct DeadlineStream {
    socket: TcpStream,
    deadline: Arc<Mutex<Instant>>,
}

impl Read for DeadlineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(left(*self.deadline.lock_unpoisoned())?))?;
        self.socket.read(buffer).map_err(without_block)
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(left(*self.deadline.lock_unpoisoned())?))?;
        self.socket.write(bytes).map_err(without_block)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// Translates the system's error for a time-out of a socket.
fn without_block(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { timed_out() } else { error }
}
