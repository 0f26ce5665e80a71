//! A clock that never waits, and a server that is a function of it.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use galatea_client::CountAndTime;
use galatea_perf_types::{
    console::Console,
    failure::{Failure, Result},
    load::{Clock, LoadGenerator, LoadStart, MetricsCollector, ServerStatistics},
    record::{CallTotals, Nanos, RequestRecord},
    status::{GpuMetrics, ModelCounters},
};

pub(super) const MICRO: Nanos = 1_000;
pub(super) const MILLI: Nanos = 1_000_000;
pub(super) const SECOND: Nanos = 1_000_000_000;

/// When every fake run begins.
pub(super) const BEGIN: Nanos = 1_700_000_000 * SECOND;

pub(super) struct FakeClock {
    now: Cell<Nanos>,
    /// After so long the user presses Ctrl-C.
    pub interrupt_after: Cell<Option<Nanos>>,
}

impl FakeClock {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self { now: Cell::new(BEGIN), interrupt_after: Cell::new(None) })
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Nanos {
        self.now.get()
    }

    fn sleep(&self, duration: Duration) -> bool {
        let until = self.now.get() + duration.as_nanos() as Nanos;
        let interrupt = self.interrupt_after.get().map_or(Nanos::MAX, |after| BEGIN + after);
        self.now.set(until.min(interrupt));
        until < interrupt
    }

    /// A fifth of a core.
    fn cpu_time(&self) -> Duration {
        Duration::from_nanos((self.now.get() - BEGIN) / 5)
    }
}

/// A request to the fake server.
pub(super) struct Sent {
    /// From 0 over the whole run.
    pub index: u64,
    pub concurrency: u64,
    /// Since the run began.
    pub after: Nanos,
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub(super) struct Served {
    /// Responses, in nanoseconds from the start.
    pub responses: Vec<Nanos>,
    pub last_is_empty: bool,
    /// Sent so much later than the schedule wanted.
    pub late: Nanos,
}

pub(super) fn after(latency: Nanos) -> Served {
    Served { responses: vec![latency], last_is_empty: false, late: 0 }
}

pub(super) type Behaviour = Box<dyn Fn(&Sent) -> Served>;

/// The fake server and the load on it.
pub(super) struct World {
    clock: Rc<FakeClock>,
    behaviour: Behaviour,
    start: Option<LoadStart>,
    /// Requests still to be sent.
    left: u64,
    /// When each lane sends next: one for each concurrent request, or one for a schedule.
    lanes: Vec<Nanos>,
    index: u64,
    sent: u64,
    in_flight: Vec<RequestRecord>,
    /// Start and end of every request, in the order they were sent.
    pub log: Vec<(Nanos, Nanos)>,
    ended: Vec<RequestRecord>,
    total_ended: u64,
    calls: CallTotals,
    /// Every so many requests end a sequence.
    pub sequence_length: u64,
    /// Share of the time in which workers wait.
    pub idle_share: f64,
    idle_since: Nanos,
    /// How long the caller is not scheduled after the load has begun, as on a busy machine.
    pub start_takes: Duration,
    /// After so long a worker fails.
    pub fails_after: Option<Nanos>,
}

/// A pause between a response and the next request of a lane.
const GAP: Nanos = 20 * MICRO;

impl World {
    pub(super) fn new(clock: Rc<FakeClock>, behaviour: Behaviour) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            clock,
            behaviour,
            start: None,
            left: 0,
            lanes: Vec::new(),
            index: 0,
            sent: 0,
            in_flight: Vec::new(),
            log: Vec::new(),
            ended: Vec::new(),
            total_ended: 0,
            calls: CallTotals::default(),
            sequence_length: 0,
            idle_share: 0.97,
            start_takes: Duration::ZERO,
            idle_since: BEGIN,
            fails_after: None,
        }))
    }

    fn begin(&mut self, start: LoadStart, count: u64) {
        self.advance();
        let lanes = match start {
            LoadStart::Concurrency(concurrency) => concurrency as usize,
            LoadStart::Periodic => 4,
            LoadStart::RequestRate(_) | LoadStart::CustomIntervals => 1,
        };
        self.lanes = vec![self.clock.now(); lanes];
        self.start = Some(start);
        self.left = count;
    }

    /// Advances the fake server to the present.
    fn advance(&mut self) {
        let now = self.clock.now();
        while let Some(lane) = self.next_lane(now) {
            self.send(lane);
        }
        let in_flight = std::mem::take(&mut self.in_flight);
        let (mut ended, in_flight): (Vec<_>, Vec<_>) =
            in_flight.into_iter().partition(|record| *record.responses.last().unwrap() <= now);
        self.in_flight = in_flight;
        for record in &ended {
            self.calls.calls += 1;
            self.calls.request_ns += record.responses.last().unwrap() - record.start - 8 * MICRO;
            self.calls.send_ns += 12 * MICRO;
            self.calls.receive_ns += 3 * MICRO;
        }
        self.total_ended += ended.len() as u64;
        self.ended.append(&mut ended);
    }

    fn next_lane(&self, now: Nanos) -> Option<usize> {
        let lane = (0..self.lanes.len()).min_by_key(|lane| self.lanes[*lane])?;
        (self.left > 0 && self.lanes[lane] <= now).then_some(lane)
    }

    fn send(&mut self, lane: usize) {
        let intended = self.lanes[lane];
        let request = Sent {
            index: self.index,
            concurrency: self.lanes.len() as u64,
            after: intended - BEGIN,
        };
        let served = (self.behaviour)(&request);
        self.index += 1;
        self.sent += 1;
        self.left -= 1;
        let start = intended + served.late;
        let responses = served.responses.iter().map(|latency| start + latency).collect();
        self.log.push((start, start + served.responses.last().unwrap()));
        let next = start + served.responses.last().unwrap() + GAP;
        let is_scheduled;
        (self.lanes[lane], is_scheduled) = match self.start {
            Some(LoadStart::RequestRate(rate)) => (intended + (1e9 / rate) as Nanos, true),
            Some(LoadStart::CustomIntervals) => {
                (intended + CUSTOM_INTERVALS[self.index as usize % CUSTOM_INTERVALS.len()], true)
            }
            _ => (next, false),
        };
        self.in_flight.push(RequestRecord {
            start,
            intended_start: is_scheduled.then_some(intended),
            responses,
            last_response_is_empty: served.last_is_empty,
            sequence_id: u64::from(self.sequence_length > 0),
            sequence_end: self.sequence_length > 0
                && self.index.is_multiple_of(self.sequence_length),
            delayed: served.late > 0,
            exported: None,
        });
    }
}

const CUSTOM_INTERVALS: [Nanos; 3] = [20 * MILLI, 30 * MILLI, 10 * MILLI];

/// The load on a [`World`].
pub(super) struct FakeLoad(pub Rc<RefCell<World>>);

impl LoadGenerator for FakeLoad {
    fn warm_up(&mut self, start: LoadStart, count: u64) -> Result<()> {
        let mut world = self.0.borrow_mut();
        world.begin(start, count);
        let before = world.total_ended;
        while world.total_ended < before + count {
            world.clock.clone().sleep(Duration::from_millis(1));
            world.advance();
        }
        world.ended.clear();
        Ok(())
    }

    fn start(&mut self, start: LoadStart, request_count: Option<u64>) -> Result<()> {
        let count =
            if start == LoadStart::Periodic { 12 } else { request_count.unwrap_or(u64::MAX) };
        let mut world = self.0.borrow_mut();
        world.begin(start, count);
        world.clock.sleep(world.start_takes);
        Ok(())
    }

    fn check_health(&self) -> Result<()> {
        let world = self.0.borrow();
        match world.fails_after {
            Some(after) if world.clock.now() >= BEGIN + after => Err(Failure::generic(
                "Failed to maintain requested inference load. Worker thread(s) failed to generate concurrent requests.\nThread [0] had error: the model is gone\n",
            )),
            _ => Ok(()),
        }
    }

    fn collected(&self) -> u64 {
        let mut world = self.0.borrow_mut();
        world.advance();
        world.ended.len() as u64
    }

    fn take_records(&mut self) -> Vec<RequestRecord> {
        let mut world = self.0.borrow_mut();
        world.advance();
        std::mem::take(&mut world.ended)
    }

    fn call_totals(&self) -> CallTotals {
        let mut world = self.0.borrow_mut();
        world.advance();
        world.calls
    }

    fn reset_idle_time(&mut self) {
        let mut world = self.0.borrow_mut();
        world.idle_since = world.clock.now();
    }

    fn idle_time(&self) -> Duration {
        let world = self.0.borrow();
        let waited = (world.clock.now() - world.idle_since) as f64 * world.idle_share;
        Duration::from_nanos(waited as Nanos)
    }

    fn take_sent_count(&mut self) -> u64 {
        std::mem::take(&mut self.0.borrow_mut().sent)
    }

    fn is_finished(&self) -> bool {
        let mut world = self.0.borrow_mut();
        world.advance();
        world.left == 0 && world.in_flight.is_empty()
    }

    fn custom_request_rate(&self) -> Option<f64> {
        Some(50.0)
    }

    fn stop(&mut self) -> Result<()> {
        let mut world = self.0.borrow_mut();
        world.advance();
        world.left = 0;
        Ok(())
    }
}

/// A model of a fake server: what one request adds to its counters.
pub(super) struct FakeModel {
    pub name: &'static str,
    pub version: &'static str,
    pub per_request: ModelCounters,
}

/// Counters of models that were each called once for every request.
pub(super) struct FakeStatistics {
    pub world: Rc<RefCell<World>>,
    pub models: Vec<FakeModel>,
}

impl ServerStatistics for FakeStatistics {
    fn read(&mut self, all_models: bool) -> Result<Vec<((String, String), ModelCounters)>> {
        let mut world = self.world.borrow_mut();
        world.advance();
        let models = if all_models { self.models.len() } else { 1 };
        Ok(self.models.iter().take(models).map(|model| model.after(world.total_ended)).collect())
    }
}

impl FakeModel {
    fn after(&self, requests: u64) -> ((String, String), ModelCounters) {
        let one = &self.per_request;
        let times =
            |of: CountAndTime| CountAndTime { count: of.count * requests, ns: of.ns * requests };
        let counters = ModelCounters {
            success: times(one.success),
            inference_count: one.inference_count * requests,
            execution_count: one.execution_count * requests,
            executed_items: one.executed_items * requests,
            queue: times(one.queue),
            compute_input: times(one.compute_input),
            compute_infer: times(one.compute_infer),
            compute_output: times(one.compute_output),
            cache_hit: times(one.cache_hit),
            cache_miss: times(one.cache_miss),
        };
        ((self.name.to_owned(), self.version.to_owned()), counters)
    }
}

/// Times of one request in microseconds: all of it, queue, input, infer, output.
pub(super) fn per_request([total, queue, input, infer, output]: [u64; 5]) -> ModelCounters {
    let times = |micros| CountAndTime { count: 1, ns: micros * MICRO };
    ModelCounters {
        success: times(total),
        inference_count: 1,
        execution_count: 1,
        queue: times(queue),
        compute_input: times(input),
        compute_infer: times(infer),
        compute_output: times(output),
        ..ModelCounters::default()
    }
}

/// A GPU whose readings rise with every query.
#[derive(Default)]
pub(super) struct FakeGpu {
    asked: u64,
    warned: bool,
    pub fails: bool,
}

impl MetricsCollector for FakeGpu {
    fn start(&mut self) {}

    fn take(&mut self) -> Result<Vec<GpuMetrics>> {
        if self.fails {
            let text = "Unable to connect to Metrics endpoint localhost:9799/metrics";
            return Err(Failure::generic(text));
        }
        let samples = (self.asked..self.asked + 2).map(sample).collect();
        self.asked += 2;
        Ok(samples)
    }

    fn take_warnings(&mut self) -> Vec<String> {
        if std::mem::replace(&mut self.warned, true) {
            return Vec::new();
        }
        vec!["WARNING: Unable to parse 'nv_gpu_power_usage' metric.".into()]
    }

    fn stop(&mut self) {}
}

fn sample(index: u64) -> GpuMetrics {
    let uuid = || "GPU-4dfa".to_owned();
    GpuMetrics {
        utilization: [(uuid(), 0.5 + index as f64 / 100.0)].into(),
        power_watts: [(uuid(), 70.25 + index as f64)].into(),
        memory_used_bytes: [(uuid(), (1 << 30) + index)].into(),
        memory_total_bytes: [(uuid(), 80 << 30)].into(),
    }
}

/// Keeps what was printed, in order. Blanks at the end of a line are made visible.
#[derive(Default)]
pub(super) struct Transcript {
    pub text: String,
    pub progress: Vec<String>,
}

impl Transcript {
    fn add(&mut self, stream: &str, text: &str) {
        assert!(text.ends_with('\n') || text.is_empty(), "a line without its end: {text:?}");
        for line in text.lines() {
            let shown = line.trim_end_matches(' ');
            let blanks = "~".repeat(line.len() - shown.len());
            self.text += format!("{stream}{shown}{blanks}").trim_end();
            self.text.push('\n');
        }
    }
}

impl Console for Transcript {
    fn out(&mut self, text: &str) {
        self.add("out| ", text);
    }

    fn err(&mut self, text: &str) {
        self.add("err| ", text);
    }

    fn progress(&mut self, text: &str) {
        self.progress.push(text.to_owned());
    }
}
