//! The destination of lines, and writing to it without waiting.

use std::{
    io::IsTerminal,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, Stat, fstat},
    io::Errno,
};

/// A pipe that is ready takes this many bytes at once, whatever it holds.
const PIPE_BUF: usize = 4096;

/// An open file, pipe or terminal.
pub(super) struct LogTarget {
    descriptor: Descriptor,
    kind: Kind,
    /// Cached, because asking takes a system call and every line needs the answer.
    is_terminal: bool,
    /// The last line was written in part only.
    has_broken_line: AtomicBool,
}

/// The part of a write that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub(super) struct Unwritten {
    /// Lines with some or all bytes missing.
    pub lines: u64,
}

/// A descriptor that is closed with the target, or one that the program always has.
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
    /// A file takes everything.
    File,
    /// A pipe reports whether it has room.
    Pipe,
    /// Others may make a writer wait although they have room: a person may have stopped a terminal.
    Other,
}

impl LogTarget {
    pub fn new(descriptor: Descriptor) -> Self {
        let kind = match fstat(&descriptor).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::RegularFile) => Kind::File,
            Ok(FileType::Fifo | FileType::Socket) => Kind::Pipe,
            _ => Kind::Other,
        };
        let is_terminal = kind == Kind::Other && descriptor.as_fd().is_terminal();
        Self { descriptor, kind, is_terminal, has_broken_line: AtomicBool::new(false) }
    }

    pub fn is_same_place(&self, other: &Self) -> bool {
        let place = |stat: Stat| (stat.st_dev, stat.st_ino);
        let of = |target: &Self| fstat(&target.descriptor).ok().map(place);
        of(self).is_some_and(|place| of(other) == Some(place))
    }

    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes as much as needs no waiting. Returns the rest, and the part that failed.
    pub fn write_now<'a>(&self, mut bytes: &'a [u8]) -> (&'a [u8], Unwritten) {
        match self.kind {
            Kind::File => (&[], self.write_all(bytes)),
            Kind::Pipe => {
                while !bytes.is_empty() && self.has_room(Some(&Timespec::default())) {
                    match self.write_some(bytes, PIPE_BUF) {
                        Ok(rest) => bytes = rest,
                        Err(_) => return (&[], Unwritten { lines: lines(bytes) }),
                    }
                }
                (bytes, Unwritten::default())
            }
            Kind::Other => (bytes, Unwritten::default()),
        }
    }

    /// Writes everything, however long it takes. Returns the part that failed.
    pub fn write_all(&self, bytes: &[u8]) -> Unwritten {
        if bytes.is_empty() {
            return Unwritten::default();
        }
        if self.has_broken_line.load(Ordering::Relaxed) {
            if self.write_some(b"\n", 1).is_err() {
                return Unwritten { lines: lines(bytes) };
            }
            self.has_broken_line.store(false, Ordering::Relaxed);
        }
        let mut left = bytes;
        while !left.is_empty() {
            let most = match self.kind {
                Kind::File | Kind::Other => left.len(),
                Kind::Pipe => {
                    self.has_room(None);
                    PIPE_BUF
                }
            };
            match self.write_some(left, most) {
                Ok(rest) => left = rest,
                Err(_) => {
                    let written = bytes.len() - left.len();
                    let is_whole =
                        bytes.get(..written).is_none_or(|b| b.is_empty() || b.ends_with(b"\n"));
                    self.has_broken_line.store(!is_whole, Ordering::Relaxed);
                    return Unwritten { lines: lines(left) };
                }
            }
        }
        Unwritten::default()
    }

    /// Returns whether a write returns at once, because there is room or the reader is gone.
    fn has_room(&self, limit: Option<&Timespec>) -> bool {
        poll(&mut [PollFd::new(&self.descriptor, PollFlags::OUT)], limit)
            .is_ok_and(|ready| ready > 0)
    }

    /// Writes at most `most` bytes. Returns the rest.
    fn write_some<'a>(&self, bytes: &'a [u8], most: usize) -> Result<&'a [u8], Errno> {
        let piece = bytes.get(..most).unwrap_or(bytes);
        match rustix::io::write(&self.descriptor, piece) {
            Ok(written) => Ok(bytes.get(written..).unwrap_or_default()),
            Err(Errno::INTR) => Ok(bytes),
            // Another program has made the descriptor non-blocking for all its users.
            Err(Errno::AGAIN) => {
                self.has_room(None);
                Ok(bytes)
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns the number of lines in these bytes; the rest of a line counts as one.
fn lines(bytes: &[u8]) -> u64 {
    let ends = bytes.iter().filter(|&&byte| byte == b'\n').count();
    let has_open_end = bytes.last().is_some_and(|&byte| byte != b'\n');
    (ends + usize::from(has_open_end)) as u64
}
