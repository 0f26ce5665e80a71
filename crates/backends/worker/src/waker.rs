//! Wakes the event thread of a worker out of `poll`.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::event::EventfdFlags;

/// An eventfd that the event thread polls, with a flag that is set if that thread polls with a time-out.
pub(crate) struct EventThreadWaker {
    event: OwnedFd,
    /// True while shared memory is in use: the event thread checks regularly if it can be given back.
    is_ticking: AtomicBool,
}

impl EventThreadWaker {
    pub fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let event = rustix::event::eventfd(0, flags)?;
        Ok(Self { event, is_ticking: AtomicBool::new(false) })
    }

    pub fn wake(&self) {
        // Fails only when the counter is full, and then the thread is awake.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Resets the eventfd after a wake-up.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.event, &mut [0_u8; 8]);
    }

    /// Starts the ticks because memory in use may have to be given back later. Costs one relaxed load if they run already.
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

impl AsFd for EventThreadWaker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
