//! Descriptors that the client of a Unix socket passes with its bytes (`SCM_RIGHTS`).

use std::{
    io::IoSliceMut,
    mem::{self, MaybeUninit},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::{self, Sender},
    },
    thread,
};

use rustix::{
    io,
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg},
};

/// The descriptors that came with some bytes of a client. They count as refused if there are several.
///
/// A descriptor that is dropped is closed by a thread of its own: closing may take as long as the client's file system likes,
/// and it frees memory of any size.
#[derive(Debug, Default)]
pub struct PassedDescriptors(State);

#[derive(Debug, Default)]
enum State {
    #[default]
    Nothing,
    One(OwnedFd),
    /// There were several, or the server could not take one. All are closed.
    Refused,
}

/// More than one descriptor came, or the process could not take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedDescriptors;

impl PassedDescriptors {
    /// Returns `true` if none came.
    pub fn is_empty(&self) -> bool {
        matches!(self.0, State::Nothing)
    }

    /// Returns the only one; `None` if none came.
    pub fn only(&self) -> Result<Option<BorrowedFd<'_>>, RefusedDescriptors> {
        match &self.0 {
            State::Nothing => Ok(None),
            State::One(descriptor) => Ok(Some(descriptor.as_fd())),
            State::Refused => Err(RefusedDescriptors),
        }
    }

    /// Adds those of the same request. If both have some, all are refused.
    pub fn add(&mut self, mut others: Self) {
        match (self.is_empty(), mem::take(&mut others.0)) {
            (_, State::Nothing) => {}
            (true, found) => self.0 = found,
            (false, State::One(descriptor)) => self.put(descriptor),
            (false, State::Refused) => self.refuse(),
        }
    }

    fn put(&mut self, descriptor: OwnedFd) {
        match self.is_empty() {
            true => self.0 = State::One(descriptor),
            false => {
                close_later(descriptor);
                self.refuse();
            }
        }
    }

    fn refuse(&mut self) {
        if let State::One(descriptor) = mem::replace(&mut self.0, State::Refused) {
            close_later(descriptor);
        }
    }
}

impl Drop for PassedDescriptors {
    fn drop(&mut self) {
        if let State::One(descriptor) = mem::take(&mut self.0) {
            close_later(descriptor);
        }
    }
}

/// Reads bytes of a Unix socket, and adds the descriptors that came with them to `passed`. One read ends with the bytes of the
/// `sendmsg` that passed a descriptor. Returns the number of bytes.
pub(crate) fn receive(
    socket: impl AsFd,
    buffer: &mut [u8],
    passed: &mut PassedDescriptors,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    // Without room the system closes what was passed, and says so as if there were several.
    let mut control = match WAITING.load(Relaxed) < MOST_WAITING {
        true => RecvAncillaryBuffer::new(&mut space),
        false => RecvAncillaryBuffer::default(),
    };
    let mut pieces = [IoSliceMut::new(buffer)];
    let received = recvmsg(socket, &mut pieces, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            descriptors.for_each(|descriptor| passed.put(descriptor));
        }
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        passed.refuse();
    }
    Ok(received.bytes)
}

/// The most descriptors that may wait to be closed while further ones are taken.
const MOST_WAITING: usize = 64;

/// The number of descriptors that wait to be closed.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// The thread that closes; `None` if the system gave none.
static CLOSER: LazyLock<Option<Sender<OwnedFd>>> = LazyLock::new(|| {
    let (sender, descriptors) = mpsc::channel::<OwnedFd>();
    let close = move || {
        for descriptor in descriptors {
            drop(descriptor);
            WAITING.fetch_sub(1, Relaxed);
        }
    };
    thread::Builder::new().name("descriptors".to_owned()).spawn(close).ok().map(|_| sender)
});

fn close_later(descriptor: OwnedFd) {
    if let Some(closer) = &*CLOSER {
        WAITING.fetch_add(1, Relaxed);
        // The thread never ends.
        let _ = closer.send(descriptor);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{IoSlice, PipeReader, Read, Write, pipe},
        os::unix::net::UnixStream,
    };

    use rustix::{
        io::{FdFlags, fcntl_getfd},
        net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
    };

    use super::*;

    fn pass(socket: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::empty());
        assert_eq!(sent.expect("sent"), bytes.len());
    }

    fn receive_from(socket: &UnixStream) -> (Vec<u8>, PassedDescriptors) {
        let (mut bytes, mut passed) = (vec![0; 64], PassedDescriptors::default());
        let count = receive(socket, &mut bytes, &mut passed).expect("received");
        bytes.truncate(count);
        (bytes, passed)
    }

    /// Waits until all descriptors of the other end of a pipe are closed.
    fn wait_until_closed(mut reader: PipeReader) {
        assert_eq!(reader.read(&mut [0]).expect("a pipe"), 0);
    }

    #[test]
    fn a_descriptor_comes_with_its_bytes_and_is_closed_for_children() {
        let (client, server) = UnixStream::pair().expect("sockets");
        let (mut reader, writer) = pipe().expect("a pipe");
        (&client).write_all(b"before").expect("sent");
        pass(&client, b"with", &[writer.as_fd()]);
        (&client).write_all(b"after").expect("sent");
        drop(writer);
        let (bytes, passed) = receive_from(&server);
        assert_eq!(bytes, b"beforewith", "the read ends with the bytes that passed it");
        let descriptor = passed.only().expect("one").expect("one");
        assert!(fcntl_getfd(descriptor).expect("open").contains(FdFlags::CLOEXEC));
        let (bytes, none) = receive_from(&server);
        assert!(bytes == b"after" && none.is_empty());
        File::from(descriptor.try_clone_to_owned().expect("a copy")).write_all(b"x").expect("open");
        assert_eq!(reader.read(&mut [0; 8]).expect("a pipe"), 1);
        drop(passed);
        wait_until_closed(reader);
    }

    #[test]
    fn several_descriptors_are_closed_at_once() {
        for count in [2, 3, 8] {
            let (client, server) = UnixStream::pair().expect("sockets");
            let (reader, writer) = pipe().expect("a pipe");
            pass(&client, b"x", &vec![writer.as_fd(); count]);
            drop(writer);
            let (_, passed) = receive_from(&server);
            assert!(passed.only().is_err() && !passed.is_empty(), "{count}");
            wait_until_closed(reader);
        }
    }

    #[test]
    fn descriptors_of_one_request_add_up() {
        let (client, server) = UnixStream::pair().expect("sockets");
        let (reader, writer) = pipe().expect("a pipe");
        let mut passed = PassedDescriptors::default();
        for count in 1..=3 {
            pass(&client, b"x", &[writer.as_fd()]);
            passed.add(receive_from(&server).1);
            passed.add(PassedDescriptors::default());
            assert_eq!(passed.only().is_ok(), count == 1);
        }
        drop(writer);
        wait_until_closed(reader);
    }
}
