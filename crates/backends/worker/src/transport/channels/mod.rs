//! The server's ends of the two sockets of a worker, and the queue of packets that wait for room.

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use galatea_types::{Error, LockExt as _, Result};
use rustix::event::{PollFd, PollFlags};

use crate::{
    memory::SharedMemory,
    transport::{
        packet::{EncodedPacket, undo},
        socket::{Socket, SocketRead},
    },
    waker::EventThreadWaker,
    wire::{HEADER_LENGTH, Header, OutgoingMessage, PACKET_LIMIT, Reader, kind},
};

/// The two sockets. `commands` carries one request and one reply at a time, `events` messages at any time in both
/// directions.
pub struct Channels {
    commands: Socket,
    /// A second descriptor of the worker's end of `commands`, to take back unread messages. `None` in a worker.
    unread: Option<Socket>,
    events: Socket,
    memory: Arc<SharedMemory>,
    waker: Arc<EventThreadWaker>,
    /// The kind of message that only gives blocks back.
    release: u8,
    queue: Mutex<EventQueue>,
}

pub(crate) struct WorkerEnds {
    commands: OwnedFd,
    events: OwnedFd,
}

impl WorkerEnds {
    /// Returns the descriptors that the worker inherits, in the order of its command line.
    pub fn descriptors<'a>(
        &'a self,
        inbox: BorrowedFd<'a>,
        outbox: BorrowedFd<'a>,
    ) -> [BorrowedFd<'a>; 4] {
        [self.commands.as_fd(), self.events.as_fd(), inbox, outbox]
    }
}

/// Packets that found no room in `events`, in their order.
#[derive(Default)]
struct EventQueue {
    packets: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// Most bytes of packets that wait for a side that does not read.
const MAX_QUEUED_BYTES: usize = 64 << 20;

impl EventQueue {
    /// Queues a packet. Returns false if too much waits already.
    fn push(&mut self, packet: Vec<u8>) -> bool {
        if self.bytes + packet.len() > MAX_QUEUED_BYTES {
            return false;
        }
        self.bytes += packet.len();
        self.packets.push_back(packet);
        true
    }

    fn pop(&mut self) {
        let packet = self.packets.pop_front();
        self.bytes -= packet.map_or(0, |packet| packet.len());
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Sent,
    /// The socket is full.
    NoRoom,
    Disconnected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiveError {
    TimedOut,
    Disconnected,
}

fn id_of(packet: &[u8]) -> Option<u64> {
    Header::read(&mut Reader::new(packet)).ok().map(|header| header.id)
}

impl Channels {
    pub(crate) fn new(
        memory: Arc<SharedMemory>,
        waker: Arc<EventThreadWaker>,
    ) -> io::Result<(Self, WorkerEnds)> {
        let (commands, commands_end) = Socket::pair()?;
        let unread = Some(Socket::from(commands_end.try_clone()?));
        let (events, events_end) = Socket::pair()?;
        let release = kind::RELEASE_TO_WORKER;
        let queue = Mutex::default();
        let channels = Self { commands, unread, events, memory, waker, release, queue };
        Ok((channels, WorkerEnds { commands: commands_end, events: events_end }))
    }

    /// Opens the worker's ends, in the worker.
    pub(crate) fn of_worker(
        commands: OwnedFd,
        events: OwnedFd,
        memory: Arc<SharedMemory>,
        waker: Arc<EventThreadWaker>,
    ) -> Self {
        let (commands, events) = (Socket::from(commands), Socket::from(events));
        let release = kind::RELEASE_TO_SERVER;
        let queue = Mutex::default();
        Self { commands, unread: None, events, memory, waker, release, queue }
    }

    /// Sends a worker's reply; waits for room. Returns false if the server is gone.
    pub(crate) fn send_reply(&self, message: &OutgoingMessage) -> Result<bool> {
        let packet = EncodedPacket::new(message, &self.memory)?;
        Ok(self.commands.send(&packet.parts(message)).is_ok())
    }

    /// Sends to the worker's main thread. Never blocks.
    pub(crate) fn send_command(&self, message: &OutgoingMessage) -> Result<Delivery> {
        let packet = EncodedPacket::new(message, &self.memory)?;
        Ok(match self.commands.try_send(&packet.parts(message)) {
            Ok(true) => Delivery::Sent,
            Ok(false) => {
                undo(&packet.to_bytes(message), &self.memory);
                Delivery::NoRoom
            }
            Err(_) => Delivery::Disconnected,
        })
    }

    /// Returns the id of the first command that the worker has not read, or `None` if it has read all.
    pub(crate) fn first_unread(&self) -> Option<u64> {
        let mut header = [0; HEADER_LENGTH];
        match self.unread.as_ref()?.peek(&mut header) {
            Ok(SocketRead::Packet(_)) => id_of(&header),
            _ => None,
        }
    }

    /// Takes back the first command that the worker has not read, and returns its id. It is the one
    /// [`Channels::first_unread`] named, or a later one if the worker has read that: the kernel gives each to one reader, in
    /// order.
    pub(crate) fn take_unread(&self, buffer: &mut Vec<u8>) -> Option<u64> {
        buffer.resize(PACKET_LIMIT, 0);
        let Ok(SocketRead::Packet(length)) = self.unread.as_ref()?.try_receive(buffer) else {
            return None;
        };
        let packet = buffer.get(..length)?;
        undo(packet, &self.memory);
        id_of(packet)
    }

    /// Sends a message to the worker at any time. Never blocks: a packet that finds no room is queued. A packet for a worker
    /// that is gone is dropped.
    pub fn send_event(&self, message: &OutgoingMessage) -> Result<()> {
        let packet = EncodedPacket::new(message, &self.memory)?;
        let mut queue = self.queue.lock_unpoisoned();
        if queue.packets.is_empty() {
            match self.events.try_send(&packet.parts(message)) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // The event thread notices the disconnection.
                Err(_) => return Ok(()),
            }
        }
        if !queue.push(packet.to_bytes(message)) {
            let limit = MAX_QUEUED_BYTES >> 20;
            let text = format!("more than {limit} MiB wait for a worker that does not read them");
            return Err(Error::unavailable(text));
        }
        drop(queue);
        self.waker.wake();
        Ok(())
    }

    /// Sends queued packets while there is room for them.
    pub(crate) fn flush(&self) {
        let mut queue = self.queue.lock_unpoisoned();
        while let Some(packet) = queue.packets.front() {
            match self.events.try_send(&[IoSlice::new(packet)]) {
                Ok(false) => return,
                Ok(true) | Err(_) => {
                    queue.pop();
                }
            }
        }
    }

    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.lock_unpoisoned().packets.is_empty()
    }

    pub(crate) fn clear_queue(&self) {
        *self.queue.lock_unpoisoned() = EventQueue::default();
    }

    /// Gives blocks back to the worker without waiting for a message they can go with.
    pub(crate) fn send_releases(&self) {
        while !self.memory.releases.is_empty() {
            if self.send_event(&OutgoingMessage::new(self.release, 0)).is_err() {
                return;
            }
        }
    }

    /// Waits for the worker's next reply: first spins for `spin`, then sleeps. [`Channels::close`] ends the wait.
    pub(crate) fn receive_reply(
        &self,
        buffer: &mut [u8],
        spin: Duration,
    ) -> Result<usize, ReceiveError> {
        if !spin.is_zero() {
            let until = Instant::now() + spin;
            while Instant::now() < until {
                if let Ok(SocketRead::Packet(length)) = self.commands.try_receive(buffer) {
                    return Ok(length);
                }
                thread::yield_now();
            }
        }
        // One system call instead of three. No poll for the process: the event thread shuts the socket down when it has
        // ended.
        match self.commands.receive(buffer) {
            Ok(SocketRead::Packet(length)) => Ok(length),
            _ => Err(ReceiveError::Disconnected),
        }
    }

    /// Waits for the worker's next reply until `deadline` or until `process`, a pidfd, has ended.
    pub(crate) fn receive_reply_until(
        &self,
        buffer: &mut [u8],
        deadline: Instant,
        process: BorrowedFd<'_>,
    ) -> Result<usize, ReceiveError> {
        loop {
            match self.commands.try_receive(buffer) {
                Ok(SocketRead::Packet(length)) => return Ok(length),
                Ok(SocketRead::Nothing) => {}
                Ok(SocketRead::End) | Err(_) => return Err(ReceiveError::Disconnected),
            }
            if self.poll_commands(deadline, process)? {
                // Messages that the worker sent before its end are still there.
                return match self.commands.try_receive(buffer) {
                    Ok(SocketRead::Packet(length)) => Ok(length),
                    _ => Err(ReceiveError::Disconnected),
                };
            }
        }
    }

    pub(crate) fn has_reply(&self) -> bool {
        let mut watched = [PollFd::new(&self.commands, PollFlags::IN)];
        let now = Duration::ZERO.try_into().ok();
        rustix::event::poll(&mut watched, now.as_ref()).is_ok_and(|count| count > 0)
    }

    /// Sleeps until `commands` is readable or the process has ended. Returns true in the latter case.
    fn poll_commands(
        &self,
        deadline: Instant,
        process: BorrowedFd<'_>,
    ) -> Result<bool, ReceiveError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ReceiveError::TimedOut);
        }
        let mut watched = [
            PollFd::new(&self.commands, PollFlags::IN),
            PollFd::from_borrowed_fd(process, PollFlags::IN),
        ];
        match rustix::event::poll(&mut watched, left.try_into().ok().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err(ReceiveError::Disconnected),
        }
        let [commands, process] = watched.map(|w| !w.revents().is_empty());
        Ok(process && !commands)
    }

    /// Ends [`Channels::receive_reply`], and all use of `events` once received messages have been taken. A process that
    /// inherited the worker's ends may keep them open, and send more.
    pub(crate) fn close(&self) {
        self.commands.shut_down();
        self.events.shut_down();
    }

    /// Takes a message from `events` if there is one.
    pub(crate) fn try_receive_event(&self, buffer: &mut [u8]) -> io::Result<SocketRead> {
        self.events.try_receive(buffer)
    }

    /// Returns the descriptor to poll: readable when the worker sent an event, writable when queued packets find room.
    pub(crate) fn poll_events(&self) -> PollFd<'_> {
        let flags = match self.has_queued() {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        PollFd::new(&self.events, flags)
    }
}
