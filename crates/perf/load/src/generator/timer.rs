//! Waiting for a moment, to the microsecond.

use std::{io, os::fd::OwnedFd, time::Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// A timer of the kernel's own. The runtime's timers wake at whole milliseconds, which is longer than the gap
/// between two requests at any rate worth measuring.
#[derive(Debug)]
pub struct Timer {
    file: AsyncFd<OwnedFd>,
}

impl Timer {
    /// Needs a runtime with I/O.
    pub fn new() -> io::Result<Self> {
        let file = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        #[expect(
            deprecated,
            reason = "what replaces it is unsafe, for the sake of types whose descriptor may change; this is an OwnedFd"
        )]
        let file = AsyncFd::new(file)?;
        Ok(Self { file })
    }

    /// Returns at once if the moment is past.
    pub async fn sleep_until(&mut self, due: Instant) -> io::Result<()> {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let it_value = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let once = Itimerspec { it_interval, it_value };
        timerfd_settime(self.file.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        // Not read: arming it again forgets old expirations, and the next one is an event again.
        self.file.readable().await?.clear_ready();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the timer is held against the real time")]
    fn it_never_wakes_early_and_rests_no_whole_millisecond() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let shortest = runtime.block_on(async {
            let mut timer = Timer::new().unwrap();
            let mut shortest = Duration::MAX;
            for _ in 0..50 {
                let begin = Instant::now();
                timer.sleep_until(begin + Duration::from_micros(100)).await.unwrap();
                shortest = shortest.min(begin.elapsed());
            }
            timer.sleep_until(Instant::now()).await.unwrap();
            shortest
        });
        assert!(shortest >= Duration::from_micros(100), "{shortest:?}");
        assert!(shortest < Duration::from_micros(900), "{shortest:?}");
    }
}
