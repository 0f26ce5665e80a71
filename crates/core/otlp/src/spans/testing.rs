//! Requests that are played to a tracer, and what it makes of them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use galatea_trace::{
    ClientSpan, FinishedTrace, FrontEndTrace, Levels, Settings, TraceMode, TraceOptions, TraceSink,
    Tracer,
};
use galatea_types::{
    Error, InferRequest, InferResponse, LockExt as _, ManualClock, Observer, Observers, Origin,
    Protocol, RequestStart, Responder, Timeline, TraceContext,
};

/// Keeps the traces that it is given.
#[derive(Debug, Default)]
pub struct CollectingSink(Mutex<Vec<FinishedTrace>>);

impl TraceSink for CollectingSink {
    fn finished(&self, trace: FinishedTrace) {
        self.0.lock_unpoisoned().push(trace);
    }

    fn retired(&self, _: u64) {}

    fn lost(&self) {}

    fn close(&self) {}
}

/// A tracer of mode `opentelemetry`, its clock and its traces.
pub struct Played {
    pub tracer: Arc<Tracer>,
    pub clock: ManualClock,
    kept: Arc<CollectingSink>,
}

/// The outcome of a request in its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    Computed,
    Failed,
    /// An ensemble or the cache answers: nothing is computed.
    Answered,
    Refused,
}

impl Played {
    pub fn new(levels: Levels) -> Self {
        let settings = Settings { levels, rate: 1, ..Settings::default() };
        let mode = TraceMode::OpenTelemetry;
        let options = TraceOptions { settings, mode, ..TraceOptions::default() };
        let (kept, clock) = (Arc::new(CollectingSink::default()), ManualClock::new());
        let tracer = Arc::new(Tracer::with_sink(options, kept.clone(), clock.clock()));
        Self { tracer, clock, kept }
    }

    pub fn tick(&self) {
        self.clock.advance(Duration::from_nanos(10));
    }

    /// Begins a request that was received whole.
    pub fn begin(&self, client: Option<TraceContext>) -> Box<FrontEndTrace> {
        let client = client.map(ClientSpan::below);
        let mut front_end = self.tracer.begin(Protocol::Http, client.as_ref()).expect("on");
        self.tick();
        front_end.record_received();
        front_end.set_model("m");
        front_end
    }

    /// Plays the part of a request that a model has.
    pub fn run(&self, observer: Arc<dyn Observer>, model: &str, outcome: RequestOutcome) {
        let request = InferRequest { id: "7".into(), ..InferRequest::new(model) };
        let origin = Origin::default();
        let mut observers = Observers::default();
        observers.add(observer);
        self.tick();
        observers.start(&RequestStart { request: &request, version: 3, origin: &origin });
        let (responder, _answer) = Responder::unary();
        let responder = observers.watch(responder);
        let mut timeline = Timeline::new(self.clock.now());
        if matches!(outcome, RequestOutcome::Computed | RequestOutcome::Failed) {
            timeline.queued = Some(self.clock.now());
            self.tick();
            timeline.compute_start = Some(self.clock.now());
        }
        self.tick();
        timeline.end = Some(self.clock.now());
        observers.finish(&timeline);
        match outcome {
            RequestOutcome::Refused => responder.discard(),
            RequestOutcome::Failed => responder.finish(Err(Error::internal("it broke"))),
            RequestOutcome::Computed | RequestOutcome::Answered => {
                responder.finish(Ok(InferResponse {
                    model_name: model.into(),
                    model_version: 3,
                    id: String::new(),
                    parameters: Vec::new(),
                    outputs: Vec::new(),
                }))
            }
        }
    }

    /// Sends the answer.
    pub fn end(&self, front_end: FrontEndTrace) {
        let sending = front_end.begin_sending().expect("traced");
        self.tick();
        sending.finish();
    }

    /// Returns the traces so far.
    pub fn take(&self) -> Vec<FinishedTrace> {
        std::mem::take(&mut self.kept.0.lock_unpoisoned())
    }
}

pub const TIMESTAMPS: Levels = Levels { timestamps: true, tensors: false };

/// Returns traces of simple requests.
pub fn traces(count: usize) -> Vec<FinishedTrace> {
    let played = Played::new(TIMESTAMPS);
    for _ in 0..count {
        let front_end = played.begin(None);
        played.run(front_end.observer().expect("traced"), "m", RequestOutcome::Computed);
        played.end(*front_end);
    }
    played.take()
}
