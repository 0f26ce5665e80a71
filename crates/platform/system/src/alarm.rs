//! A timer that is exact to the microsecond.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    time::Duration,
};

#[cfg(target_os = "linux")]
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// A timer of the kernel with a descriptor that becomes readable when the time has come.
#[derive(Debug)]
pub struct Alarm(OwnedFd);

#[cfg(target_os = "linux")]
impl Alarm {
    /// Makes a timer that is not set.
    ///
    /// # Errors
    /// Those of the system; `Unsupported` if it has no such timer.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self(timerfd_create(TimerfdClockId::Monotonic, flags)?))
    }

    /// Sets the timer, and forgets an earlier expiry.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set(&self, left: Duration) -> io::Result<()> {
        let it_value = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let once = Itimerspec { it_interval, it_value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
#[expect(missing_docs, reason = "as above")]
impl Alarm {
    pub fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn set(&self, _: Duration) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl AsRawFd for Alarm {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
