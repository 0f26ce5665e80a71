use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::event::EventfdFlags;

/// Gets the side thread out of its waiting.
pub(crate) struct Wake {
    event: OwnedFd,
    /// The side thread looks after idle memory from time to time.
    is_ticking: AtomicBool,
}

impl Wake {
    pub fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let event = rustix::event::eventfd(0, flags)?;
        Ok(Self { event, is_ticking: AtomicBool::new(false) })
    }

    pub fn wake(&self) {
        // Fails only when the counter is full, and then the thread is awake.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    pub fn clear(&self) {
        let _ = rustix::io::read(&self.event, &mut [0_u8; 8]);
    }

    /// Memory is in use that may have to be given back later. Costs nothing while that is known.
    pub fn start_ticking(&self) {
        if !self.is_ticking.load(Ordering::Relaxed) && !self.is_ticking.swap(true, Ordering::AcqRel)
        {
            self.wake();
        }
    }

    pub fn stop_ticking(&self) {
        self.is_ticking.store(false, Ordering::Release);
    }

    pub fn is_ticking(&self) -> bool {
        self.is_ticking.load(Ordering::Acquire)
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
