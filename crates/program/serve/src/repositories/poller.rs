//! Checks the model repositories at intervals, for `--model-control-mode=poll`.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use galatea_engine::{Engine, PollOutcome};

/// Pause after a look that found a change. A change that is the same after it is loaded. The pause is long enough that a copy
/// in progress has written something.
const SETTLE: Duration = Duration::from_secs(2);

/// A thread that polls until this is dropped. A load in progress is completed.
pub struct Poller {
    _stop: Sender<()>,
}

impl Poller {
    /// Starts the thread. The first look is one interval from now.
    pub fn start(engine: &Arc<Engine>, interval: Duration) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let engine = engine.clone();
        let body = move || poll(&stopped, interval, |retries| engine.poll_repositories(retries));
        thread::Builder::new().name("poll".to_owned()).spawn(body)?;
        Ok(Self { _stop: stop })
    }
}

/// Looks once in each interval, and more often while something is changing, to see whether it has settled. Only the looks of
/// the interval retry failed loads.
fn poll(stopped: &Receiver<()>, interval: Duration, look: impl Fn(bool) -> PollOutcome) {
    let mut next_full = Instant::now() + interval;
    let mut outcome = PollOutcome::Settled;
    loop {
        let until_full = next_full.saturating_duration_since(Instant::now());
        let wait = match outcome {
            PollOutcome::Settled => until_full,
            PollOutcome::Changing => until_full.min(SETTLE),
            PollOutcome::Waiting(left) => until_full.min(left),
        };
        if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        let is_full = Instant::now() >= next_full;
        outcome = look(is_full);
        if is_full {
            next_full = Instant::now() + interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    #[test]
    fn the_poller_runs_until_it_is_stopped() {
        let (stop, stopped) = mpsc::channel();
        let (looks, stop) = (RefCell::new(Vec::new()), Cell::new(Some(stop)));
        poll(&stopped, Duration::from_millis(1), |retries| {
            looks.borrow_mut().push(retries);
            if looks.borrow().len() == 3 {
                drop(stop.take());
            }
            PollOutcome::Changing
        });
        assert_eq!(looks.into_inner(), [true; 3], "the interval is shorter than settling");
    }
}
