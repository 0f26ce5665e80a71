//! The clock of a real run, which the user may interrupt.

use std::{
    fmt,
    future::poll_fn,
    process,
    sync::{Arc, Condvar, Mutex},
    task::Poll,
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
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Time since the Unix epoch that does not jump: read once from the calendar, then from the monotonic clock.
pub struct SystemClock {
    epoch: Duration,
    start: Instant,
    interrupt: Arc<Interrupt>,
}

/// The work of a program that a signal ends at once.
pub type LastAct = Box<dyn FnOnce() + Send>;

/// Ends the sleeps of the clocks that share it, and so their measurements.
#[derive(Default)]
pub struct Interrupt {
    raised: Mutex<bool>,
    changed: Condvar,
    last_act: Mutex<Option<LastAct>>,
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt").field("is_raised", &self.is_raised()).finish_non_exhaustive()
    }
}

/// A signal that the tool handles.
#[derive(Clone, Copy)]
enum StopSignal {
    Interrupt,
    Termination,
}

impl SystemClock {
    /// Listens for signals from now on: the first SIGINT ends sleeps, the second one and SIGTERM end the process.
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

    /// Sets the work to do when a signal ends the process at once, or removes it.
    pub fn set_last_act(&self, act: Option<LastAct>) {
        *self.interrupt.last_act.lock_unpoisoned() = act;
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
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    drop(guard);
    thread::Builder::new().name("interrupt".into()).spawn(move || {
        // Signals are handled outside of the runtime: the last act of the process may need one.
        loop {
            match runtime.block_on(next(&mut interrupts, &mut terminations)) {
                StopSignal::Interrupt => interrupt.on_interrupt(),
                StopSignal::Termination => {
                    interrupt.end(128 + SignalKind::terminate().as_raw_value())
                }
            }
        }
    })?;
    Ok(())
}

async fn next(interrupts: &mut Signal, terminations: &mut Signal) -> StopSignal {
    poll_fn(|context| {
        if interrupts.poll_recv(context).is_ready() {
            return Poll::Ready(StopSignal::Interrupt);
        }
        terminations.poll_recv(context).map(|_| StopSignal::Termination)
    })
    .await
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
    fn on_interrupt(&self) {
        println!("Interrupt signal ({}) received.", SignalKind::interrupt().as_raw_value());
        if self.is_raised() {
            println!("Exiting immediately...");
            self.end(0);
        }
        println!("Waiting for in-flight inferences to complete.");
        self.raise();
    }

    /// Ends the process, after its last act.
    fn end(&self, status: i32) -> ! {
        let act = self.last_act.lock_unpoisoned().take();
        if let Some(act) = act {
            act();
        }
        process::exit(status)
    }
}
