//! What lines are written to, and how without waiting.

use std::{
    io::IsTerminal,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, Stat, fstat},
    io::Errno,
};

/// A pipe that is ready takes this many bytes at once, whatever it holds.
const PIPE_BUF: usize = 4096;

/// An open file, pipe or terminal.
pub(super) struct Target {
    descriptor: Descriptor,
    kind: Kind,
    /// Asked once: it takes a system call, and every line wants to know.
    is_terminal: bool,
}

/// One that is closed with the target, or one that the program always has.
pub(super) enum Descriptor {
    Owned(OwnedFd),
    Standard(BorrowedFd<'static>),
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Owned(descriptor) => descriptor.as_fd(),
            Self::Standard(descriptor) => *descriptor,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Takes everything.
    File,
    /// Says whether it has room.
    Pipe,
    /// May make a writer wait although it has room: a person may have stopped it.
    Other,
}

impl Target {
    pub fn new(descriptor: Descriptor) -> Self {
        let kind = match fstat(&descriptor).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::RegularFile) => Kind::File,
            Ok(FileType::Fifo | FileType::Socket) => Kind::Pipe,
            _ => Kind::Other,
        };
        let is_terminal = kind == Kind::Other && descriptor.as_fd().is_terminal();
        Self { descriptor, kind, is_terminal }
    }

    pub fn is_same_place(&self, other: &Self) -> bool {
        let place = |stat: Stat| (stat.st_dev, stat.st_ino);
        let of = |target: &Self| fstat(&target.descriptor).ok().map(place);
        of(self).is_some_and(|place| of(other) == Some(place))
    }

    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes as much as needs no waiting; the rest.
    pub fn write_now<'a>(&self, mut bytes: &'a [u8]) -> &'a [u8] {
        match self.kind {
            Kind::File => {
                self.write_all(bytes);
                &[]
            }
            Kind::Pipe => {
                while !bytes.is_empty() && self.has_room(Some(&Timespec::default())) {
                    bytes = self.write_some(bytes, PIPE_BUF);
                }
                bytes
            }
            Kind::Other => bytes,
        }
    }

    /// Writes everything, however long it takes. What cannot be written is lost: there is nowhere to report that.
    pub fn write_all(&self, mut bytes: &[u8]) {
        match self.kind {
            Kind::File | Kind::Other => {
                while !bytes.is_empty() {
                    bytes = self.write_some(bytes, bytes.len());
                }
            }
            Kind::Pipe => {
                while !bytes.is_empty() {
                    self.has_room(None);
                    bytes = self.write_some(bytes, PIPE_BUF);
                }
            }
        }
    }

    /// Whether a reader that is gone, or one that has emptied enough, lets a write return at once.
    fn has_room(&self, limit: Option<&Timespec>) -> bool {
        poll(&mut [PollFd::new(&self.descriptor, PollFlags::OUT)], limit)
            .is_ok_and(|ready| ready > 0)
    }

    /// Writes `most` bytes at most. The rest, which is nothing where there is nobody to read it.
    fn write_some<'a>(&self, bytes: &'a [u8], most: usize) -> &'a [u8] {
        let piece = bytes.get(..most).unwrap_or(bytes);
        match rustix::io::write(&self.descriptor, piece) {
            Ok(written) => bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => bytes,
            // Another program has made it non-blocking for all.
            Err(Errno::AGAIN) => {
                self.has_room(None);
                bytes
            }
            Err(_) => &[],
        }
    }
}
