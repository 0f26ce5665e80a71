//! Waits for a moment, to the microsecond.

use std::{
    io::{self, ErrorKind},
    time::Instant,
};

use galatea_system::Alarm;
use tokio::io::unix::AsyncFd;

/// A timer of the kernel. The runtime's timers wake at whole milliseconds, which is longer than the gap between two requests at
/// any rate worth measuring. They are the fallback on systems without such a timer.
#[derive(Debug)]
pub struct Timer {
    alarm: Option<AsyncFd<Alarm>>,
}

impl Timer {
    /// Makes a timer. It needs a runtime with I/O.
    pub fn new() -> io::Result<Self> {
        let alarm = match Alarm::new() {
            Ok(alarm) => alarm,
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                return Ok(Self { alarm: None });
            }
            Err(error) => return Err(error),
        };
        #[expect(
            deprecated,
            reason = "what replaces it is unsafe, for the sake of types whose descriptor may change; an alarm keeps its own"
        )]
        let alarm = AsyncFd::new(alarm)?;
        Ok(Self { alarm: Some(alarm) })
    }

    /// Waits; returns at once if the moment is past.
    #[expect(
        clippy::disallowed_methods,
        reason = "the load is sent at these moments; where the system has no exact alarm, tokio's has to do"
    )]
    pub async fn sleep_until(&mut self, due: Instant) -> io::Result<()> {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let Some(alarm) = &self.alarm else {
            tokio::time::sleep_until(due.into()).await;
            return Ok(());
        };
        alarm.get_ref().set(left)?;
        // The timer is not read: setting it again clears old expirations, and the next one is an event again.
        alarm.readable().await?.clear_ready();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the timer is held against the real time")]
    fn the_timer_never_wakes_early_and_sleeps_under_a_millisecond() {
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
