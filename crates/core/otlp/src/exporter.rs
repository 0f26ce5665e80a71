//! The sink of traces, and the thread that sends them.

use std::{
    fmt,
    pin::pin,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use futures_util::future::{self, Either};
use galatea_trace::{FinishedTrace, TraceSink};
use galatea_types::{Clock, Environment, Error, LockExt as _, Result};
use tokio::sync::Notify;

use crate::{
    messages::Span,
    notice::Notice,
    options::BatchLimits,
    queue::{PushOutcome, Queue},
    settings::ExportSettings,
    spans::{self, TimeOfDay},
    transport::{ExportError, Transport},
};

/// The longest time for the last spans at the end of the process.
const LAST_EXPORT: Duration = Duration::from_secs(5);
/// The longest wait for the thread after that.
const LAST_WAIT: Duration = Duration::from_secs(6);

/// Sends finished traces to a collector.
pub struct SpanExporter {
    shared: Arc<Shared>,
    /// The address of the collector, for messages.
    place: String,
}

struct Shared {
    state: Mutex<State>,
    limits: BatchLimits,
    /// A trace waits, a batch is full, or the sink is closed.
    wake: Notify,
    /// The sink is closed.
    closing: Notify,
    /// The thread has ended.
    ended: Condvar,
    /// Traces that were not delivered.
    lost: AtomicU64,
}

struct State {
    queue: Queue,
    /// The thread; it is started with the first trace.
    thread: Thread,
    is_closed: bool,
    /// The lines about a full queue.
    full_queue: Notice,
    /// The log has a line about the memory for traces.
    has_told_of_memory: bool,
}

enum Thread {
    NotStarted(Box<Transport>),
    Running,
    Ended,
}

impl SpanExporter {
    /// Makes a sink that connects with the first trace. `environment` names proxies and certificates.
    ///
    /// # Errors
    /// When TLS cannot be used.
    pub fn new(settings: ExportSettings, environment: &Environment) -> Result<Self> {
        let limits = settings.limits;
        let transport = Transport::new(settings, environment);
        let transport = transport.map_err(|error| {
            Error::unavailable(format!("traces cannot be exported: {error}")).with_source(error)
        })?;
        let place = transport.place();
        let state = State {
            queue: Queue::new(limits),
            thread: Thread::NotStarted(Box::new(transport)),
            is_closed: false,
            full_queue: Notice::default(),
            has_told_of_memory: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            limits,
            wake: Notify::new(),
            closing: Notify::new(),
            ended: Condvar::new(),
            lost: AtomicU64::new(0),
        });
        Ok(Self { shared, place })
    }

    fn start(&self, state: &mut State) {
        let Thread::NotStarted(transport) = std::mem::replace(&mut state.thread, Thread::Ended)
        else {
            return;
        };
        let shared = self.shared.clone();
        let run = move || run(&shared, &transport);
        match thread::Builder::new().name("spans".to_owned()).spawn(run) {
            Ok(_) => state.thread = Thread::Running,
            Err(error) => log::error!("traces are lost: no thread could be started: {error}"),
        }
    }
}

impl State {
    /// Returns whether the log gets a line about a full queue.
    fn tells_of_queue(&mut self) -> bool {
        let tells = !self.queue.is_told && self.full_queue.is_due(clock_now());
        self.queue.is_told |= tells;
        tells
    }
}

impl TraceSink for SpanExporter {
    fn finished(&self, trace: FinishedTrace) {
        let mut state = self.shared.state.lock_unpoisoned();
        if matches!(state.thread, Thread::NotStarted(_)) && !state.is_closed {
            self.start(&mut state);
        }
        if state.is_closed || matches!(state.thread, Thread::Ended) {
            self.shared.lost.fetch_add(1, Relaxed);
            return;
        }
        let pushed = state.queue.push(trace);
        let is_told = pushed == PushOutcome::Lost && state.tells_of_queue();
        drop(state);
        match pushed {
            PushOutcome::Waits => {}
            PushOutcome::Wakes => self.shared.wake.notify_one(),
            PushOutcome::Lost => {
                self.shared.lost.fetch_add(1, Relaxed);
                if is_told {
                    log::warn!(
                        "traces are lost: {} spans, the most of bsp_max_queue_size, wait for the collector at {}",
                        self.shared.limits.max_queue_size,
                        self.place
                    );
                }
            }
        }
    }

    fn retired(&self, _: u64) {}

    fn lost(&self) {
        let mut state = self.shared.state.lock_unpoisoned();
        if !std::mem::replace(&mut state.has_told_of_memory, true) {
            log::warn!(
                "traces are lost: those that wait for the collector at {} take all the memory for traces",
                self.place
            );
        }
    }

    fn unwritten(&self) -> u64 {
        self.shared.lost.load(Relaxed)
    }

    fn close(&self) {
        let clock = Clock::system();
        let mut state = self.shared.state.lock_unpoisoned();
        state.is_closed = true;
        self.shared.wake.notify_one();
        self.shared.closing.notify_one();
        let is_running = |state: &mut State| matches!(state.thread, Thread::Running);
        let until = clock.after(LAST_WAIT);
        let (_state, is_late) =
            clock.wait_while_until(&self.shared.ended, state, until, is_running);
        if is_late {
            log::error!("the thread that sends traces did not end in time");
        }
    }
}

impl fmt::Debug for SpanExporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpanExporter").field("place", &self.place).finish_non_exhaustive()
    }
}

fn clock_now() -> Instant {
    Clock::system().now()
}

fn run(shared: &Shared, transport: &Transport) {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            if !runtime.block_on(export(shared, transport)) {
                log::warn!(
                    "traces are lost: the collector at {} did not take the last ones within {} s",
                    transport.place(),
                    LAST_EXPORT.as_secs()
                );
            }
            // A look-up of a name may still run.
            runtime.shutdown_background();
        }
        Err(error) => log::error!("traces are lost: the thread cannot wait for events: {error}"),
    }
    let mut state = shared.state.lock_unpoisoned();
    state.thread = Thread::Ended;
    shared.lost.fetch_add(state.queue.len() as u64, Relaxed);
    shared.ended.notify_all();
}

/// Sends everything until the sink is closed, and then what is left. Returns `false` if that took too long.
async fn export(shared: &Shared, transport: &Transport) -> bool {
    let all = pin!(export_all(shared, transport));
    let last = pin!(async {
        shared.closing.notified().await;
        let _ = tokio::time::timeout(LAST_EXPORT, future::pending::<()>()).await;
    });
    matches!(future::select(all, last).await, Either::Left(_))
}

async fn export_all(shared: &Shared, transport: &Transport) {
    // The log says that the collector takes nothing.
    let mut is_told = false;
    let mut failing = Notice::default();
    loop {
        shared.wait_for_batch().await;
        let (batch, is_closed) = {
            let mut state = shared.state.lock_unpoisoned();
            (state.queue.take(), state.is_closed)
        };
        if batch.is_empty() && is_closed {
            return;
        }
        let batch = Unsent { traces: batch, lost: &shared.lost };
        match deliver(transport, &batch.traces, shared.limits).await {
            Ok(()) => {
                batch.delivered();
                if std::mem::take(&mut is_told) {
                    log::info!("the collector of traces at {} takes them again", transport.place());
                }
            }
            Err(error) => {
                if !is_told && failing.is_due(clock_now()) {
                    is_told = true;
                    log::warn!(
                        "traces are lost until the collector at {} takes them: {error}",
                        transport.place()
                    );
                }
            }
        }
    }
}

/// Traces that were taken from the queue. They count as lost unless they are delivered.
struct Unsent<'a> {
    traces: Vec<FinishedTrace>,
    lost: &'a AtomicU64,
}

impl Unsent<'_> {
    fn delivered(mut self) {
        self.traces.clear();
    }
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        self.lost.fetch_add(self.traces.len() as u64, Relaxed);
    }
}

async fn deliver(
    transport: &Transport,
    traces: &[FinishedTrace],
    limits: BatchLimits,
) -> Result<(), ExportError> {
    let time = TimeOfDay::now();
    let mut spans: Vec<Span> = Vec::new();
    let most = limits.max_export_batch_size as usize;
    spans.extend(traces.iter().flat_map(|trace| spans::spans(trace, time)));
    // A single trace may have more spans than a batch.
    while !spans.is_empty() {
        let rest = spans.split_off(spans.len().min(most));
        transport.send(spans).await?;
        spans = rest;
    }
    Ok(())
}

impl Shared {
    /// Waits until a batch is full, the first trace has waited for its time, or the sink is closed.
    async fn wait_for_batch(&self) {
        while self.is_idle(Queue::is_empty) {
            self.wake.notified().await;
        }
        let full = async {
            while self.is_idle(|queue| !queue.is_full()) {
                self.wake.notified().await;
            }
        };
        // The time is over, or the batch is full: both end the wait.
        let _ = tokio::time::timeout(self.limits.schedule_delay, full).await;
    }

    fn is_idle(&self, lacks: impl FnOnce(&Queue) -> bool) -> bool {
        let state = self.state.lock_unpoisoned();
        !state.is_closed && lacks(&state.queue)
    }
}
