//! A model whose instances tell what they execute, wait where a test wants them to, and fail on demand.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use galatea_backend::{
    Batch, InstanceSpec, Model, ModelInstance,
    testing::{Answer, instance_spec, model_config, request, tensor_spec},
};
use galatea_config::{DynamicBatching, ModelConfig, QueuePolicy, Scheduling};
use galatea_scheduler::{QueueScheduler, Scheduler, SchedulerSpec};
use galatea_telemetry::ModelStatistics;
use galatea_types::{DataType, Error, InferRequest, InferResponse, Responder, Result, Tensor};

/// Longer than anything here takes; only a hanging test gets there.
pub const LONG: Duration = Duration::from_secs(60);

type OnCreate = Box<dyn Fn(usize) -> Result<()> + Send + Sync>;

struct Probe {
    started: Mutex<Sender<Vec<String>>>,
    gate: Option<Arc<Gate>>,
    creations: Arc<AtomicUsize>,
    on_create: OnCreate,
}

impl Model for Probe {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        (self.on_create)(self.creations.fetch_add(1, Ordering::SeqCst))?;
        let started = self.started.lock().expect("no panic").clone();
        Ok(Box::new(ProbeInstance { started, gate: self.gate.clone() }))
    }
}

struct ProbeInstance {
    started: Sender<Vec<String>>,
    gate: Option<Arc<Gate>>,
}

/// Holds executions up until the test lets them go on: a number of them, or the one with a certain request.
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
        // The test may have seen enough and gone.
        let _ = self.started.send(batch.requests().map(|r| r.id.clone()).collect());
        if let Some(gate) = &self.gate {
            gate.pass(&batch.request(0).expect("never empty").id);
        }
        for index in 0..batch.len() {
            match batch.request(index).expect("in range").id.as_str() {
                "fail" => batch.respond(index, Err(Error::internal("told to fail"))),
                "cancel" => batch.respond(index, Err(Error::cancelled("noticed in time"))),
                "panic" => panic!("told to panic"),
                "mute" => {}
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
    pub on_create: OnCreate,
}

impl Setup {
    pub fn direct() -> Self {
        let mut config = model_config("probe", "probe");
        config.max_batch_size = 8;
        config.inputs = vec![tensor_spec("IN", DataType::Fp32, [-1])];
        let on_create = Box::new(|_| Ok(()));
        Self { config, instances: 1, has_gate: false, hold_until_queued: 0, on_create }
    }

    pub fn dynamic(adjust: impl FnOnce(&mut DynamicBatching)) -> Self {
        let mut setup = Self::direct();
        let mut dynamic = DynamicBatching {
            preferred_batch_sizes: Vec::new(),
            max_queue_delay: Duration::ZERO,
            preserves_ordering: false,
            priority_levels: 0,
            default_priority_level: 0,
            default_queue_policy: QueuePolicy::default(),
            priority_queue_policies: Default::default(),
        };
        adjust(&mut dynamic);
        setup.config.scheduling = Scheduling::Dynamic(dynamic);
        setup
    }

    pub fn gated(self) -> Self {
        Self { has_gate: true, ..self }
    }

    pub fn instances(self, instances: usize) -> Self {
        Self { instances, ..self }
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
        let gate = Arc::<Gate>::default();
        let creations = Arc::new(AtomicUsize::new(0));
        let statistics = Arc::new(ModelStatistics::default());
        let model = Probe {
            started: Mutex::new(started),
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
            hold_until_queued: self.hold_until_queued,
        })?;
        Ok(Rig { scheduler, statistics, starts: Mutex::new(starts), gate, creations })
    }
}

pub struct Rig {
    pub scheduler: Arc<QueueScheduler>,
    pub statistics: Arc<ModelStatistics>,
    starts: Mutex<Receiver<Vec<String>>>,
    gate: Arc<Gate>,
    pub creations: Arc<AtomicUsize>,
}

impl Rig {
    pub fn submit(&self, id: &str) -> Answer {
        self.submit_request(named(id, 1))
    }

    pub fn submit_request(&self, request: InferRequest) -> Answer {
        let (responder, answer) = Responder::unary();
        self.scheduler.submit(request, responder);
        answer
    }

    /// Waits for the next execution to start: the ids of its requests.
    pub fn next_start(&self) -> Vec<String> {
        self.starts.lock().expect("no panic").recv_timeout(LONG).expect("an execution starts")
    }

    /// Lets `count` gated executions go on.
    pub fn permit(&self, count: usize) {
        self.gate.grant(|leave| leave.count += count);
    }

    /// Lets the execution go on whose first request is `id`.
    pub fn release(&self, id: &str) {
        self.gate.grant(|leave| leave.ids.extend([id.to_owned()]));
    }
}

/// A request with `items` items of shape `[items, 4]`.
pub fn named(id: &str, items: u32) -> InferRequest {
    sized(id, items, 4)
}

pub fn sized(id: &str, items: u32, size: i64) -> InferRequest {
    let input = Tensor::new("IN", DataType::Fp32, [items.into(), size], Vec::new());
    InferRequest { id: id.to_owned(), ..request("probe", items, vec![input]) }
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
