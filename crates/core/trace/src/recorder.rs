//! The parts that all traces share: numbers, the clock, memory, and the sink.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use galatea_types::Clock;

use crate::{
    clock_time::ClockTime, recent::RecentTraces, request_trace::Event, sink::TraceSink,
    trace_memory::TraceMemory,
};

/// Numbers traces, times their events and counts their memory.
pub(crate) struct Recorder {
    clock: Clock,
    /// Read with the first event: reading the clock of the machine needs its vDSO, which Valgrind hides.
    time: OnceLock<ClockTime>,
    next_id: AtomicU64,
    pub memory: TraceMemory,
    sink: Arc<dyn TraceSink>,
    lost: AtomicU64,
    /// The calls of a model are traced even where the model does not pass its trace on.
    pub traces_all_calls: bool,
    /// The last traces of each model, if they are kept.
    pub recent: Option<Arc<RecentTraces>>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

impl Recorder {
    pub fn new(clock: Clock, sink: Arc<dyn TraceSink>, traces_all_calls: bool) -> Self {
        Self {
            time: OnceLock::new(),
            clock,
            next_id: AtomicU64::new(1),
            memory: TraceMemory::default(),
            sink,
            lost: AtomicU64::new(0),
            traces_all_calls,
            recent: None,
        }
    }

    /// Keeps the last traces of each model.
    pub fn keeping_recent(self) -> Self {
        Self { recent: Some(Arc::default()), ..self }
    }

    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    pub fn event(&self, name: &'static str, at: Instant) -> Event {
        let time = self.time.get_or_init(|| ClockTime::new(self.clock.now()));
        Event { name, ns: time.ns(at) }
    }

    /// Counts a trace, or a part of one, that finds no room.
    pub fn lose(&self) {
        self.lost.fetch_add(1, Relaxed);
        self.sink.lost();
    }

    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed) + self.sink.unwritten()
    }
}
