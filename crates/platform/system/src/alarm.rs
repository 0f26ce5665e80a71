//! A timer that is exact to the microsecond.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    time::Duration,
};

/// A timer of the kernel with a descriptor that can be read when the time has come.
#[derive(Debug)]
pub struct Alarm(OwnedFd);

impl Alarm {
    /// Makes a timer that is not set.
    ///
    /// # Errors
    /// Those of the system; `Unsupported` where the system has no such timer.
    pub fn new() -> io::Result<Self> {
        system::create().map(Self)
    }

    /// Sets the timer, and forgets whether it has expired before.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set(&self, left: Duration) -> io::Result<()> {
        system::set(&self.0, left)
    }
}

impl AsRawFd for Alarm {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::{io, os::fd::OwnedFd, time::Duration};

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };

    pub fn create() -> io::Result<OwnedFd> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(timerfd_create(TimerfdClockId::Monotonic, flags)?)
    }

    pub fn set(timer: &OwnedFd, left: Duration) -> io::Result<()> {
        let it_value = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let once = Itimerspec { it_interval, it_value };
        timerfd_settime(timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::{io, os::fd::OwnedFd, time::Duration};

    pub fn create() -> io::Result<OwnedFd> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn set(_: &OwnedFd, _: Duration) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
