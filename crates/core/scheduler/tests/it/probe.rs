//! A model whose instances report what they execute, wait where a test wants them to, and fail on demand.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use galatea_backend::{
    Batch, InstanceSpec, Model, ModelInstance, ResponseSender,
    testing::{Answer, ResponseStream, changed, instance_spec, model_config, prepared, stream},
};
use galatea_config::{ModelConfig, RawModelConfig};
use galatea_scheduler::{ExecutionRules, QueueScheduler, Scheduler, SchedulerSpec, TestHold};
use galatea_telemetry::{DistributionSettings, ModelStatistics};
use galatea_types::{
    Cause, Clock, DataType, DebugEvent, DebugEventReader, DebugEvents, Error, InferRequest,
    InferResponse, ManualClock, Observer, PreparedRequest, RequestContext, Responder, Result,
    Tensor, Timeline,
};

/// Longer than anything here takes; only a hanging test gets there.
pub const LONG: Duration = Duration::from_secs(60);

type OnCreate = Box<dyn Fn(usize) -> Result<()> + Send + Sync>;

/// An instance that was made.
pub struct Made {
    pub spec: InstanceSpec,
}

impl Made {
    /// Reports that it stopped working.
    pub fn alarm(&self) {
        self.spec.alarm.raise(Error::internal("its worker ended"));
    }
}

/// Where instances report what they do.
#[derive(Clone)]
struct Reports {
    started: Sender<Vec<String>>,
    made: Sender<Made>,
    dropped: Sender<String>,
    streams: Sender<ResponseSender>,
}

struct Probe {
    reports: Mutex<Reports>,
    gate: Option<Arc<Gate>>,
    creations: Arc<AtomicUsize>,
    breaks_on_start: Arc<AtomicBool>,
    on_create: OnCreate,
}

impl Model for Probe {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let number = self.creations.fetch_add(1, Ordering::SeqCst);
        if self.breaks_on_start.load(Ordering::SeqCst) {
            spec.alarm.raise(Error::internal("broke while starting"));
        }
        (self.on_create)(number)?;
        let reports = self.reports.lock().expect("no panic").clone();
        let _ = reports.made.send(Made { spec: spec.clone() });
        let name = spec.name.clone();
        Ok(Box::new(ProbeInstance { name, reports, gate: self.gate.clone() }))
    }
}

struct ProbeInstance {
    name: String,
    reports: Reports,
    gate: Option<Arc<Gate>>,
}

impl Drop for ProbeInstance {
    fn drop(&mut self) {
        let _ = self.reports.dropped.send(self.name.clone());
    }
}

/// Executions wait here for the permission of the test: for a number of them, or for that of a certain request.
#[derive(Default)]
struct Gate {
    leave: Mutex<Leave>,
    granted: Condvar,
}

#[derive(Default)]
struct Leave {
    count: usize,
    ids: BTreeSet<String>,
}

impl Gate {
    fn grant(&self, grant: impl FnOnce(&mut Leave)) {
        grant(&mut self.leave.lock().expect("no panic"));
        self.granted.notify_all();
    }

    fn pass(&self, id: &str) {
        let leave = self.leave.lock().expect("no panic");
        let is_held = |leave: &mut Leave| leave.count == 0 && !leave.ids.contains(id);
        let mut leave = self.granted.wait_while(leave, is_held).expect("no panic");
        if !leave.ids.remove(id) {
            leave.count -= 1;
        }
    }
}

impl ModelInstance for ProbeInstance {
    fn execute(&mut self, batch: &mut Batch) {
        // The test may have ended.
        let _ = self.reports.started.send(batch.requests().map(|r| r.id.clone()).collect());
        if let Some(gate) = &self.gate {
            gate.pass(&batch.request(0).expect("never empty").id);
        }
        for index in 0..batch.len() {
            match batch.request(index).expect("in range").id.as_str() {
                "fail" => batch.respond(index, Err(Error::internal("asked to fail"))),
                "fail with cause" => {
                    let cause = Error::internal("the cause");
                    batch.respond(index, Err(Error::internal("asked to fail").with_source(cause)));
                }
                "cancel" => batch.respond(index, Err(Error::cancelled("noticed in time"))),
                "panic" => panic!("asked to panic"),
                "mute" => {}
                "stream" => {
                    let taken = batch.take(index).expect("not taken before");
                    let _ = self.reports.streams.send(taken.responder);
                }
                "short stream" => {
                    let mut sender = batch.take(index).expect("not taken before").responder;
                    sender.send(Ok(Default::default()));
                    sender.finish(None);
                }
                "failed stream" => {
                    let mut sender = batch.take(index).expect("not taken before").responder;
                    sender.send(Err(Error::internal("asked to fail")));
                    sender.finish(None);
                    batch.fail_taken();
                }
                _ => batch.respond(index, Ok(Vec::new())),
            }
        }
    }
}

/// How a test wants its scheduler.
pub struct Setup {
    pub config: ModelConfig,
    pub instances: usize,
    pub has_gate: bool,
    pub hold_until_queued: usize,
    pub starts_one_by_one: bool,
    pub on_create: OnCreate,
    pub clock: Clock,
}

impl Setup {
    pub fn direct() -> Self {
        Self::of("")
    }

    /// `fields`: those of `dynamic_batching`.
    pub fn dynamic(fields: &str) -> Self {
        Self::of(&format!("dynamic_batching {{ {fields} }}"))
    }

    /// `text`: what the configuration has besides a batch size of 8 and one input of any size.
    pub fn of(text: &str) -> Self {
        let config = model_config(&format!(
            "name: 'probe' backend: 'probe' max_batch_size: 8
             input {{ name: 'IN' data_type: TYPE_FP32 dims: -1 }} {text}"
        ));
        let on_create = Box::new(|_| Ok(()));
        Self {
            config,
            instances: 1,
            has_gate: false,
            hold_until_queued: 0,
            starts_one_by_one: false,
            on_create,
            clock: Clock::system(),
        }
    }

    pub fn changed(mut self, change: impl FnOnce(&mut RawModelConfig)) -> Self {
        self.config = changed(&self.config, change);
        self
    }

    pub fn decoupled(self) -> Self {
        self.changed(|raw| raw.model_transaction_policy.get_or_insert_default().decoupled = true)
    }

    pub fn gated(self) -> Self {
        Self { has_gate: true, ..self }
    }

    pub fn instances(self, instances: usize) -> Self {
        Self { instances, ..self }
    }

    /// All times are told by this clock, which the test moves.
    pub fn by(self, clock: &ManualClock) -> Self {
        Self { clock: clock.clock(), ..self }
    }

    pub fn one_by_one(self) -> Self {
        Self { starts_one_by_one: true, ..self }
    }

    pub fn hold(self, hold_until_queued: usize) -> Self {
        Self { hold_until_queued, ..self }
    }

    /// `f` gets the number of instances made before.
    pub fn on_create(self, f: impl Fn(usize) -> Result<()> + Send + Sync + 'static) -> Self {
        Self { on_create: Box::new(f), ..self }
    }

    pub fn start(self) -> Rig {
        self.try_start().expect("it starts")
    }

    pub fn try_start(self) -> Result<Rig> {
        let (started, starts) = mpsc::channel();
        let (made, makings) = mpsc::channel();
        let (dropped, drops) = mpsc::channel();
        let (streams, senders) = mpsc::channel();
        let reports = Reports { started, made, dropped, streams };
        let breaks_on_start = Arc::<AtomicBool>::default();
        let gate = Arc::<Gate>::default();
        let creations = Arc::new(AtomicUsize::new(0));
        let settings = DistributionSettings::default();
        let statistics = Arc::new(ModelStatistics::new(&settings, self.clock.clone()));
        let events = DebugEvents::on();
        let reader = Mutex::new(events.subscribe());
        let model = Probe {
            reports: Mutex::new(reports),
            breaks_on_start: breaks_on_start.clone(),
            gate: self.has_gate.then(|| gate.clone()),
            creations: creations.clone(),
            on_create: self.on_create,
        };
        let scheduler = QueueScheduler::start(SchedulerSpec {
            config: Arc::new(self.config),
            version: 3,
            model: Arc::new(model),
            instances: (0..self.instances).map(|i| instance_spec("probe", i)).collect(),
            statistics: statistics.clone(),
            initial_states: Vec::new(),
            hold: TestHold { queued: self.hold_until_queued, backlogged: 0 },
            starts_one_by_one: self.starts_one_by_one,
            warm_up: Vec::new(),
            execution: ExecutionRules { events, ..ExecutionRules::default() },
        })?;
        Ok(Rig {
            clock: self.clock,
            events: reader,
            scheduler,
            statistics,
            starts: Mutex::new(starts),
            makings: Mutex::new(makings),
            drops: Mutex::new(drops),
            senders: Mutex::new(senders),
            gate,
            creations,
            breaks_on_start,
        })
    }
}

pub struct Rig {
    clock: Clock,
    events: Mutex<DebugEventReader>,
    pub scheduler: Arc<QueueScheduler>,
    pub statistics: Arc<ModelStatistics>,
    starts: Mutex<Receiver<Vec<String>>>,
    makings: Mutex<Receiver<Made>>,
    drops: Mutex<Receiver<String>>,
    senders: Mutex<Receiver<ResponseSender>>,
    gate: Arc<Gate>,
    pub creations: Arc<AtomicUsize>,
    /// Every instance raises its alarm while it is being made.
    pub breaks_on_start: Arc<AtomicBool>,
}

impl Rig {
    pub fn submit(&self, id: &str) -> Answer {
        self.submit_request(named(id, 1))
    }

    pub fn submit_request(&self, request: PreparedRequest) -> Answer {
        self.submit_in(request, RequestContext::received_at(self.clock.now()))
    }

    pub fn submit_in(&self, request: PreparedRequest, context: RequestContext) -> Answer {
        let (responder, answer) = Responder::unary();
        submit_in(&self.scheduler, request, context, responder);
        answer
    }

    /// Submits a request that must be refused, which is reported at once and not through the responder.
    #[track_caller]
    pub fn submit_refused(&self, id: &str) -> Error {
        let (responder, mut answer) = Responder::unary();
        let submitted = self.scheduler.submit(named(id, 1), RequestContext::new(), responder);
        let refused = submitted.expect_err("refused");
        assert!(answer.try_recv().is_err(), "nothing is sent through the responder");
        refused.into_error()
    }

    pub fn submit_stream(&self, id: &str) -> ResponseStream {
        let (responder, stream) = stream();
        submit(&self.scheduler, named(id, 1), responder);
        stream
    }

    pub fn has_working_instance(&self) -> bool {
        self.scheduler.has_working_instance()
    }

    /// Waits for an event. Those before it are passed over.
    pub fn wait_for(&self, what: &str, is_it: impl FnMut(&DebugEvent) -> bool) -> DebugEvent {
        self.events.lock().expect("no panic").wait_for(what, is_it)
    }

    /// Waits until an instance is to be started again: how long that waits.
    pub fn next_restart(&self) -> Duration {
        let is_it = |event: &DebugEvent| matches!(event, DebugEvent::RestartPlanned { .. });
        match self.wait_for("an instance is to be restarted", is_it) {
            DebugEvent::RestartPlanned { wait, .. } => wait,
            other => panic!("another event: {other:?}"),
        }
    }

    /// Waits for the next execution to start: the ids of its requests.
    pub fn next_start(&self) -> Vec<String> {
        next(&self.starts)
    }

    /// Waits for the next instance to be made.
    pub fn next_made(&self) -> Made {
        next(&self.makings)
    }

    /// An instance that was made, if there is another one by now.
    pub fn try_made(&self) -> Option<Made> {
        self.makings.lock().expect("no panic").try_recv().ok()
    }

    /// Waits for the next instance to be dropped: its name.
    pub fn next_drop(&self) -> String {
        next(&self.drops)
    }

    pub fn has_dropped_any(&self) -> bool {
        self.drops.lock().expect("no panic").try_recv().is_ok()
    }

    /// Waits for the next request that is taken out to be answered by the test.
    pub fn next_stream(&self) -> ResponseSender {
        next(&self.senders)
    }

    /// Permits `count` gated executions.
    pub fn permit(&self, count: usize) {
        self.gate.grant(|leave| leave.count += count);
    }

    /// Permits the execution whose first request is `id`.
    pub fn release(&self, id: &str) {
        self.gate.grant(|leave| leave.ids.extend([id.to_owned()]));
    }
}

/// Notes the timelines it is given.
#[derive(Clone, Debug, Default)]
pub struct TraceLog(Arc<Mutex<Vec<Timeline>>>);

impl Observer for TraceLog {
    fn finish(&self, timeline: &Timeline) {
        self.0.lock().expect("no panic").push(*timeline);
    }

    fn child(self: Arc<Self>, _: &str, _: Cause) -> Option<Arc<dyn Observer>> {
        None
    }
}

impl TraceLog {
    pub fn context(&self) -> RequestContext {
        let mut context = RequestContext::new();
        context.observers.add(Arc::new(self.clone()));
        context
    }

    pub fn count(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }

    /// The one timeline there must be.
    #[track_caller]
    pub fn only(&self) -> Timeline {
        let timelines = self.0.lock().expect("no panic");
        assert_eq!(timelines.len(), 1);
        timelines[0]
    }
}

/// A refusal is answered like any other failure, so that a test sees it in the same place.
pub fn submit(scheduler: &QueueScheduler, request: PreparedRequest, responder: Responder) {
    submit_in(scheduler, request, RequestContext::new(), responder);
}

pub fn submit_in(
    scheduler: &QueueScheduler,
    request: PreparedRequest,
    context: RequestContext,
    responder: Responder,
) {
    if let Err(refused) = scheduler.submit(request, context, responder) {
        refused.answer();
    }
}

#[track_caller]
fn next<T>(reports: &Mutex<Receiver<T>>) -> T {
    reports.lock().expect("no panic").recv_timeout(LONG).expect("it happens")
}

/// Where the requests of a model are counted whose times this clock tells.
pub fn by_clock(clock: &ManualClock) -> Arc<ModelStatistics> {
    Arc::new(ModelStatistics::new(&DistributionSettings::default(), clock.clock()))
}

/// A request with `items` items of shape `[items, 4]`.
pub fn named(id: &str, items: u32) -> PreparedRequest {
    sized(id, items, 4)
}

pub fn sized(id: &str, items: u32, size: i64) -> PreparedRequest {
    let inputs = vec![Tensor::new("IN", DataType::Fp32, [items.into(), size], Vec::new())];
    prepared(InferRequest { id: id.to_owned(), inputs, ..InferRequest::new("probe") }, items)
}

#[track_caller]
pub fn wait(answer: Answer) -> Result<InferResponse> {
    answer.blocking_recv().expect("a responder always answers")
}

#[track_caller]
pub fn all_succeed(answers: impl IntoIterator<Item = Answer>) {
    for answer in answers {
        wait(answer).expect("success");
    }
}
