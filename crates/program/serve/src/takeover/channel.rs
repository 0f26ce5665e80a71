//! The messages between two servers: a length of four bytes, and JSON of at most [`LONGEST`] bytes.

use std::{
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use galatea_system::{pass_descriptors, receive_descriptors, user_of_peer};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::sockets::{SocketEntry, SocketName};

/// The version of the messages. A later version keeps `Hello` and `Refused`.
pub const VERSION: u32 = 1;

const LONGEST: usize = 64 << 10;

/// The time in which the other server sends or takes a message.
pub const MESSAGE_TIME: Duration = Duration::from_secs(10);

/// A message of one of the two servers.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum Message {
    /// The new server begins.
    Hello { version: u32 },
    /// The old server will pass these sockets.
    Offer { sockets: Vec<SocketName> },
    /// The old server serves on, for this reason.
    Refused { reason: String },
    /// The new server has loaded its models.
    Take,
    /// The old server passes these sockets. One byte with the descriptors follows.
    Sockets { sockets: Vec<SocketEntry> },
    /// The new server accepts connections, on these of the sockets that were passed.
    Serving { taken: Vec<SocketName> },
    /// The old server accepts no more.
    Leaving,
}

/// The reason why a message did not come.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    #[error("the other server is gone")]
    Gone,
    #[error("the other server did not answer within {} s", MESSAGE_TIME.as_secs())]
    TimedOut,
    #[error("the other server sent a message that cannot be read: {0}")]
    Malformed(String),
    #[error(
        "the other server runs as user {peer}, and this one as user {own}: start both as the same user"
    )]
    OtherUser { peer: u32, own: u32 },
    #[error("the other server refused: {0}")]
    Refused(String),
    #[error("the connection to the other server failed: {0}")]
    System(io::Error),
}

impl From<io::Error> for ChannelError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => Self::Gone,
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::TimedOut,
            io::ErrorKind::InvalidData => Self::Malformed(error.to_string()),
            _ => Self::System(error),
        }
    }
}

type Result<T> = std::result::Result<T, ChannelError>;

/// A connection between two servers of the same user.
#[derive(Debug)]
pub struct Channel(UnixStream);

impl Channel {
    /// Checks that the other process has the same user.
    pub fn new(stream: UnixStream) -> Result<Self> {
        check_user(user_of_peer(&stream)?, geteuid().as_raw())?;
        stream.set_write_timeout(Some(MESSAGE_TIME))?;
        Ok(Self(stream))
    }

    /// Sends a message.
    pub fn send(&self, message: &Message) -> Result<()> {
        let text = serde_json::to_vec(message).map_err(|error| malformed(&error))?;
        let length = u32::try_from(text.len()).map_err(|error| malformed(&error))?;
        (&self.0).write_all(&[&length.to_be_bytes(), &*text].concat())?;
        Ok(())
    }

    /// Receives the next message.
    pub fn receive(&self) -> Result<Message> {
        let deadline = Instant::now() + MESSAGE_TIME;
        let mut length = [0; 4];
        self.fill(&mut length, deadline)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > LONGEST {
            return Err(malformed(&format!("{length} bytes; at most {LONGEST} are allowed")));
        }
        let mut text = vec![0; length];
        self.fill(&mut text, deadline)?;
        serde_json::from_slice(&text).map_err(|error| malformed(&error))
    }

    /// Receives the next message, unless that is a refusal.
    pub fn receive_unrefused(&self) -> Result<Message> {
        match self.receive()? {
            Message::Refused { reason } => Err(ChannelError::Refused(reason)),
            other => Ok(other),
        }
    }

    /// Passes descriptors.
    pub fn pass(&self, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        Ok(pass_descriptors(&self.0, descriptors)?)
    }

    /// Receives the descriptors of one [`Channel::pass`].
    pub fn receive_descriptors(&self) -> Result<Vec<OwnedFd>> {
        self.0.set_read_timeout(Some(MESSAGE_TIME))?;
        Ok(receive_descriptors(&self.0)?)
    }

    fn fill(&self, buffer: &mut [u8], deadline: Instant) -> Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ChannelError::TimedOut);
            }
            self.0.set_read_timeout(Some(left))?;
            match (&self.0).read(&mut buffer[filled..]) {
                Ok(0) => return Err(ChannelError::Gone),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns the error of a message that has no place where it came.
pub fn unexpected(message: &Message) -> ChannelError {
    malformed(&format!("{message:?} was not expected"))
}

fn malformed(error: &dyn ToString) -> ChannelError {
    ChannelError::Malformed(error.to_string())
}

fn check_user(peer: u32, own: u32) -> Result<()> {
    if peer == own { Ok(()) } else { Err(ChannelError::OtherUser { peer, own }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UnixStream, Channel) {
        let (one, other) = UnixStream::pair().expect("sockets");
        (one, Channel::new(other).expect("the same user"))
    }

    #[test]
    fn only_the_own_user_may_take_over() {
        assert!(check_user(1000, 1000).is_ok());
        for (peer, own) in [(1000, 1001), (0, 1000), (1000, 0)] {
            let error = check_user(peer, own).expect_err("another user").to_string();
            assert!(error.contains(&format!("user {peer}")), "{error}");
        }
    }

    #[test]
    fn a_message_arrives_as_it_was_sent() {
        let (one, other) = pair();
        let one = Channel::new(one).expect("the same user");
        for message in [Message::Hello { version: 1 }, Message::Take, Message::Leaving] {
            one.send(&message).expect("sent");
            assert_eq!(other.receive().expect("received"), message);
        }
    }

    #[test]
    fn bad_messages_are_refused() {
        let told = |bytes: &[u8]| {
            let (mut one, other) = pair();
            one.write_all(bytes).expect("sent");
            drop(one);
            other.receive().expect_err("bad")
        };
        assert!(matches!(told(&[]), ChannelError::Gone));
        assert!(matches!(told(&[0, 0, 0, 9, b'{']), ChannelError::Gone));
        let long = told(&[255; 4]).to_string();
        assert!(long.contains("at most 65536"), "{long}");
        for text in ["", "{}", "[]", r#"{"message":"dance"}"#, r#"{"message":"hello"}"#, "\u{1}"] {
            let length = u32::try_from(text.len()).expect("short").to_be_bytes();
            let error = told(&[&length, text.as_bytes()].concat());
            assert!(matches!(error, ChannelError::Malformed(_)), "{text}: {error}");
        }
    }

    #[test]
    fn fields_of_later_versions_are_ignored() {
        let (mut one, other) = pair();
        let text = br#"{"message":"hello","version":2,"more":[1]}"#;
        one.write_all(&[&[0, 0, 0, text.len() as u8], &text[..]].concat()).expect("sent");
        assert_eq!(other.receive().expect("received"), Message::Hello { version: 2 });
    }
}
