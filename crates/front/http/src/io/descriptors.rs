//! The descriptors of a connection that wait for the request that they came with.

use galatea_frontend::PassedDescriptors;

/// At most one descriptor waits. A read ends with the bytes that passed a descriptor, so it belongs to the request of the last
/// byte of that read.
#[derive(Debug, Default)]
pub(super) struct WaitingDescriptors {
    /// The bytes that were read from the stream.
    read: u64,
    waiting: PassedDescriptors,
    /// The bytes that were read when the first of those that wait had come.
    came: u64,
    /// The current request may have one.
    pub is_wanted: bool,
}

impl WaitingDescriptors {
    /// Adds what came with a read of `count` bytes.
    pub fn add(&mut self, count: usize, passed: PassedDescriptors) {
        self.read += count as u64;
        if self.waiting.is_empty() {
            self.came = self.read;
        }
        self.waiting.add(passed);
    }

    /// Returns what belongs to the current request or came before it. `unread` of the bytes that were read are not used yet, and
    /// the request needs `left` more bytes than those that are used.
    pub fn take(&mut self, unread: usize, left: u64) -> PassedDescriptors {
        let used = self.read.saturating_sub(unread as u64);
        match self.came <= used.saturating_add(left) {
            true => std::mem::take(&mut self.waiting),
            false => PassedDescriptors::default(),
        }
    }
}
