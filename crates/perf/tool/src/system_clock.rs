//! The clock of a real run, which the user may interrupt.

use std::{
    process,
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use galatea_perf_types::{
    failure::{Failure, Result},
    load::Clock,
    record::Nanos,
};
use galatea_types::{CondvarExt, LockExt};
use rustix::time::{ClockId, clock_gettime};
use tokio::signal::unix::{SignalKind, signal};

/// Time since the Unix epoch that does not jump: read once from the calendar, then from the monotonic clock.
pub struct SystemClock {
    epoch: Duration,
    start: Instant,
    interrupt: Arc<Interrupt>,
}

/// Ends the sleeps of the clocks that share it, and so their measurements.
#[derive(Debug, Default)]
pub struct Interrupt {
    raised: Mutex<bool>,
    changed: Condvar,
}

impl SystemClock {
    /// Listens for SIGINT from now on: the first one ends sleeps, the second one the process.
    pub fn start() -> Result<Self> {
        let interrupt = Arc::new(Interrupt::default());
        listen(interrupt.clone())
            .map_err(|error| Failure::generic(format!("cannot listen for signals: {error}")))?;
        Ok(Self::interrupted_by(interrupt))
    }

    /// Makes a clock without a signal: the owner of `interrupt` raises it.
    pub fn interrupted_by(interrupt: Arc<Interrupt>) -> Self {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { epoch, start: Instant::now(), interrupt }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> Nanos {
        (self.epoch + self.start.elapsed()).as_nanos() as Nanos
    }

    fn sleep(&self, duration: Duration) -> bool {
        let raised = self.interrupt.raised.lock_unpoisoned();
        let changed = &self.interrupt.changed;
        let (raised, _) =
            changed.wait_timeout_while_unpoisoned(raised, duration, |raised| !*raised);
        !*raised
    }

    fn cpu_time(&self) -> Duration {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
    }
}

/// Listens in a thread of its own: the main thread sleeps or measures, and must not receive the signal.
fn listen(interrupt: Arc<Interrupt>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let guard = runtime.enter();
    let mut signals = signal(SignalKind::interrupt())?;
    drop(guard);
    thread::Builder::new().name("interrupt".into()).spawn(move || {
        runtime.block_on(async {
            while signals.recv().await.is_some() {
                interrupt.on_signal();
            }
        });
    })?;
    Ok(())
}

impl Interrupt {
    /// Ends sleeps from now on.
    pub fn raise(&self) {
        *self.raised.lock_unpoisoned() = true;
        self.changed.notify_all();
    }

    /// Returns true if it was raised.
    pub fn is_raised(&self) -> bool {
        *self.raised.lock_unpoisoned()
    }

    /// Handles a signal as in perf_analyzer: the second one ends the process.
    fn on_signal(&self) {
        println!("Interrupt signal ({}) received.", SignalKind::interrupt().as_raw_value());
        if self.is_raised() {
            println!("Exiting immediately...");
            process::exit(0);
        }
        println!("Waiting for in-flight inferences to complete.");
        self.raise();
    }
}
