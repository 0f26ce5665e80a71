//! A model whose instances are handed requests while they execute one, and tell what happens.

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
};

use galatea_backend::{
    Batch, InstanceSpec, Model, ModelInstance, Pipeline, ReturnedRequests, WaitingBatches,
    testing::{Answer, instance_spec, model_config},
};
use galatea_scheduler::{ExecutionRules, QueueScheduler, SchedulerSpec, TestHold};
use galatea_telemetry::ModelStatistics;
use galatea_types::{Error, Responder, Result};

use crate::probe::{LONG, named, submit};

/// What the test and the instances share: what happens, and what may.
pub struct Stage {
    log: Mutex<Sender<String>>,
    /// Ids of requests that may be complete; `None`: all.
    permitted: Mutex<Option<HashSet<String>>>,
    changed: Condvar,
    pub executed: AtomicUsize,
    /// Requests that may wait in an instance.
    depth: usize,
}

impl Stage {
    fn note(&self, event: String) {
        // The test may have dropped its end.
        let _ = self.log.lock().expect("no panic").send(event);
    }

    fn wait_for_permit(&self, id: &str) {
        let permitted = self.permitted.lock().expect("no panic");
        let is_waiting =
            |p: &mut Option<HashSet<String>>| p.as_ref().is_some_and(|p| !p.contains(id));
        drop(self.changed.wait_while(permitted, is_waiting).expect("no panic"));
    }
}

struct Pipe(Arc<Stage>);

/// As a worker in another process: what is handed over is begun when what was before it is complete.
struct PipeInstance {
    stage: Arc<Stage>,
    waiting: Arc<Waiting>,
    has_ended: bool,
}

/// Numbers of the batches it has not begun with.
#[derive(Default)]
struct Waiting(Mutex<VecDeque<usize>>);

impl WaitingBatches for Waiting {
    fn take_first_back(&self, from: usize) -> ReturnedRequests {
        let first = self.0.lock().expect("no panic").pop_front();
        first.map_or(ReturnedRequests::Nothing, |number| {
            assert!(number >= from, "that one is begun");
            ReturnedRequests::Batch(number)
        })
    }
}

impl Model for Pipe {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let waiting = Arc::<Waiting>::default();
        Ok(Box::new(PipeInstance { stage: self.0.clone(), waiting, has_ended: false }))
    }
}

fn id(batch: &Batch) -> String {
    batch.request(0).expect("one request").id.clone()
}

impl ModelInstance for PipeInstance {
    fn execute(&mut self, _: &mut Batch) {
        panic!("it has a pipeline");
    }

    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        Some(self)
    }
}

impl Pipeline for PipeInstance {
    fn begin(&mut self, batch: &mut Batch) {
        assert_eq!(batch.len(), 1);
        // As a process that was started again.
        self.has_ended = false;
    }

    fn room(&self) -> usize {
        self.stage.depth.saturating_sub(self.waiting.0.lock().expect("no panic").len())
    }

    fn hand_over(&mut self, batch: &mut Batch) -> bool {
        let id = id(batch);
        match id.as_str() {
            "full" => return false,
            "bad" => {
                batch.respond(0, Err(Error::invalid_arg("cannot be sent")));
                return false;
            }
            _ => self.stage.note(format!("ahead {id}")),
        }
        let mut waiting = self.waiting.0.lock().expect("no panic");
        waiting.push_back(batch.number());
        assert!(waiting.len() <= self.stage.depth, "there was no room");
        true
    }

    fn complete(&mut self, batch: &mut Batch) {
        let id = id(batch);
        // Whatever is handed over behind it was so before.
        self.stage.note(format!("begin {id}"));
        self.stage.wait_for_permit(&id);
        self.has_ended |= id == "end";
        if self.has_ended {
            return batch.fail_all(&Error::unavailable("it has ended"));
        }
        match id.as_str() {
            "panic" => panic!("asked to panic"),
            "mute" => {}
            "fail" => batch.respond(0, Err(Error::internal("asked to fail"))),
            _ => batch.respond(0, Ok(Vec::new())),
        }
        self.stage.executed.fetch_add(1, Ordering::SeqCst);
        // Now it begins with what waits.
        self.waiting.0.lock().expect("no panic").pop_front();
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn waiting(&self) -> Arc<dyn WaitingBatches> {
        self.waiting.clone()
    }
}

pub struct Rig {
    pub scheduler: Arc<QueueScheduler>,
    pub statistics: Arc<ModelStatistics>,
    pub log: Receiver<String>,
    pub stage: Arc<Stage>,
}

impl Rig {
    /// One request waits in an instance.
    pub fn start(instances: usize) -> Self {
        Self::start_deep(instances, 1)
    }

    pub fn start_deep(instances: usize, depth: usize) -> Self {
        let (sender, log) = mpsc::channel();
        let stage = Arc::new(Stage {
            log: Mutex::new(sender),
            permitted: Mutex::new(Some(HashSet::new())),
            changed: Condvar::new(),
            executed: AtomicUsize::new(0),
            depth,
        });
        let statistics = Arc::<ModelStatistics>::default();
        let scheduler = QueueScheduler::start(SchedulerSpec {
            config: Arc::new(model_config("name: 'pipe' backend: 'pipe'")),
            version: 1,
            model: Arc::new(Pipe(stage.clone())),
            instances: (0..instances).map(|i| instance_spec("pipe", i)).collect(),
            statistics: statistics.clone(),
            initial_states: Vec::new(),
            hold: TestHold::default(),
            starts_one_by_one: false,
            warm_up: Vec::new(),
            execution: ExecutionRules::default(),
        });
        Self { scheduler: scheduler.expect("it starts"), statistics, log, stage }
    }

    pub fn submit(&self, id: &str) -> Answer {
        let (responder, answer) = Responder::unary();
        submit(&self.scheduler, named(id, 1), responder);
        answer
    }

    pub fn next(&self) -> String {
        self.log.recv_timeout(LONG).expect("something happens")
    }

    pub fn next_begun(&self) -> String {
        let mut events = std::iter::repeat_with(|| self.next());
        events.find(|event| event.starts_with("begin")).expect("endless")
    }

    /// Two instances that execute 'x' and 'y'.
    pub fn begin_two(&self) -> [Answer; 2] {
        let answers = ["x", "y"].map(|id| self.submit(id));
        let _ = (self.next_begun(), self.next_begun());
        answers
    }

    pub fn permit(&self, ids: &[&str]) {
        let mut permitted = self.stage.permitted.lock().expect("no panic");
        permitted.as_mut().expect("not all").extend(ids.iter().map(|id| (*id).to_owned()));
        self.stage.changed.notify_all();
    }

    pub fn permit_all(&self) {
        *self.stage.permitted.lock().expect("no panic") = None;
        self.stage.changed.notify_all();
    }

    pub fn pending(&self) -> i64 {
        self.statistics.snapshot().pending
    }

    /// One instance that executes 'a' while these wait, the first of them within it.
    pub fn with_waiting<const N: usize>(&self, ids: [&str; N]) -> (Vec<Answer>, [Answer; N]) {
        self.with_waiting_behind("a", ids)
    }

    /// The same with another one than 'a'.
    pub fn with_waiting_behind<const N: usize>(
        &self,
        executed: &str,
        ids: [&str; N],
    ) -> (Vec<Answer>, [Answer; N]) {
        let first = self.submit("first");
        assert_eq!(self.next(), "begin first");
        let a = self.submit(executed);
        let answers = ids.map(|id| self.submit(id));
        self.permit(&["first"]);
        (vec![first, a], answers)
    }
}
