//! The worker's side of the connection, for workers written in Rust.

use std::{
    io,
    os::fd::{AsFd, FromRawFd, OwnedFd, RawFd},
    sync::Arc,
    thread,
};

use galatea_types::Result;
use rustix::{
    event::{PollFd, PollFlags},
    io::FdFlags,
};

use crate::{
    log_levels::LogLevels,
    memory::{ArenaLimits, SharedMemory},
    transport::{Channels, Message, SocketRead},
    waker::EventThreadWaker,
    wire::{OutgoingMessage, PACKET_LIMIT, ProtocolError, kind},
};

/// A worker's connection to its server. The owning thread handles commands and replies, another one events.
pub struct ServerConnection {
    /// Sockets, for messages that the server does not wait for.
    pub channels: Arc<Channels>,
    /// Shared memory for large tensors of replies.
    pub memory: Arc<SharedMemory>,
    buffer: Vec<u8>,
}

/// Limits of the arena that a worker writes: it grows as the server's does.
const LIMITS: ArenaLimits = ArenaLimits { initial: 0, growth: 1 << 20, max: None };

impl ServerConnection {
    /// Opens the four descriptors whose numbers `words` end with: see `PROTOCOL.md`. Call it at most once in a process.
    /// `log_changed` is called when the server's log levels change.
    ///
    /// # Errors
    /// When they differ from what a server passes.
    pub fn inherit(words: &[String], log_changed: fn(LogLevels)) -> io::Result<Self> {
        let [commands, events, inbox, outbox] = inherited(words)?;
        let waker = Arc::new(EventThreadWaker::new()?);
        let memory = SharedMemory::of_worker(inbox, outbox, LIMITS, waker.clone())?;
        let memory = Arc::new(memory);
        let channels = Channels::of_worker(commands, events, memory.clone(), waker.clone());
        let channels = Arc::new(channels);
        let events =
            Events { channels: channels.clone(), memory: memory.clone(), waker, log_changed };
        thread::Builder::new().name("server-events".to_owned()).spawn(move || events.run())?;
        Ok(Self { channels, memory, buffer: vec![0; PACKET_LIMIT] })
    }

    /// Waits for the server's next command. Returns `None` if the server is gone.
    ///
    /// # Errors
    /// The errors of `read`, and a packet that is no message.
    pub fn receive<T>(
        &mut self,
        read: impl FnOnce(&Message<'_>) -> Result<T, ProtocolError>,
    ) -> Option<Result<T, ProtocolError>> {
        let length =
            self.channels.receive_reply(&mut self.buffer, std::time::Duration::ZERO).ok()?;
        let packet = self.buffer.get(..length).unwrap_or_default();
        Some(Message::open(packet, &self.memory, read))
    }

    /// Sends the reply to the last command; waits for room. Returns false if the server is gone.
    ///
    /// # Errors
    /// When the reply finds no room in shared memory.
    pub fn reply(&self, message: &OutgoingMessage) -> Result<bool> {
        self.channels.send_reply(message)
    }
}

/// Takes the descriptors over and keeps them from processes that this one may start.
fn inherited(words: &[String]) -> io::Result<[OwnedFd; 4]> {
    let numbers = words.last_chunk::<4>().ok_or_else(|| io::Error::other("no descriptors"))?;
    let numbers = numbers.each_ref().map(|word| word.parse::<RawFd>().unwrap_or(-1));
    let [mut distinct, standard] = [numbers.to_vec(), vec![0, 1, 2]];
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() != numbers.len() || distinct.iter().any(|n| *n < 0 || standard.contains(n)) {
        return Err(io::Error::other("four descriptors are expected"));
    }
    for number in numbers {
        // SAFETY: only asks; a number that is no descriptor is an error.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: open, by the check above, and distinct. The server made them for this process. Nothing else in it knows them,
    // for this is called at most once.
    let descriptors = numbers.map(|number| unsafe { OwnedFd::from_raw_fd(number) });
    for descriptor in &descriptors {
        rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
    }
    Ok(descriptors)
}

/// The thread beside the main one. It takes blocks and memory back while a model computes.
struct Events {
    channels: Arc<Channels>,
    memory: Arc<SharedMemory>,
    waker: Arc<EventThreadWaker>,
    log_changed: fn(LogLevels),
}

impl Events {
    /// Handles events until the server is gone.
    fn run(self) {
        let mut buffer = vec![0; PACKET_LIMIT];
        while self.wait().is_ok() {
            self.waker.clear();
            self.channels.flush();
            if self.memory.releases.are_many() {
                self.channels.send_releases();
            }
            match self.channels.try_receive_event(&mut buffer) {
                Ok(SocketRead::Packet(length)) => {
                    self.handle(buffer.get(..length).unwrap_or_default())
                }
                Ok(SocketRead::Nothing) => {}
                Ok(SocketRead::End) | Err(_) => return,
            }
        }
    }

    fn wait(&self) -> rustix::io::Result<()> {
        let waker = PollFd::from_borrowed_fd(self.waker.as_fd(), PollFlags::IN);
        let mut watched = [self.channels.poll_events(), waker];
        match rustix::event::poll(&mut watched, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Handles a message. Opening it frees the blocks that come back with it.
    fn handle(&self, packet: &[u8]) {
        let kind = Message::open(packet, &self.memory, |message| {
            let kind = message.packet.header.kind;
            let levels = (kind == kind::LOG_LEVEL).then(|| message.json()).transpose()?;
            Ok((kind, levels.and_then(|levels| serde_json::from_value(levels).ok())))
        });
        match kind {
            Ok((kind::TRIM, _)) => {
                self.channels.send_releases();
                self.memory.trim();
                // The server does not wait for this message.
                let _ = self.channels.send_event(&OutgoingMessage::new(kind::TRIMMED, 0));
            }
            Ok((_, Some(levels))) => (self.log_changed)(levels),
            _ => {}
        }
    }
}
