//! Instances that have several requests at once, each executed alone.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Instant,
};

use galatea_backend::{
    Batch, InstanceSpec, Model, ModelInstance,
    testing::{Answer, instance_spec, model_config},
};
use galatea_scheduler::{QueueScheduler, Scheduler, SchedulerSpec};
use galatea_telemetry::{FailureReason, ModelStatistics};
use galatea_types::{Error, Responder, Result};

use crate::probe::{LONG, TraceLog, all_succeed, named, submit, submit_in, wait};

const DEPTH: usize = 4;

/// Reports what it took, waits for the test, and answers as the ids of the requests ask.
struct Pipe {
    taken: Mutex<Sender<Vec<String>>>,
    go: Arc<Mutex<Receiver<()>>>,
    executed: Arc<AtomicUsize>,
}

struct PipeInstance {
    taken: Sender<Vec<String>>,
    go: Arc<Mutex<Receiver<()>>>,
    executed: Arc<AtomicUsize>,
}

impl Model for Pipe {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let (go, executed) = (self.go.clone(), self.executed.clone());
        Ok(Box::new(PipeInstance {
            taken: self.taken.lock().expect("no panic").clone(),
            go,
            executed,
        }))
    }
}

fn id(batch: &Batch) -> String {
    batch.request(0).expect("one request").id.clone()
}

impl PipeInstance {
    fn begin(&self, ids: Vec<String>) {
        let _ = self.taken.send(ids);
        // The test may have dropped its end: then nothing waits.
        let _ = self.go.lock().expect("no panic").recv();
    }
}

impl ModelInstance for PipeInstance {
    fn execute(&mut self, batch: &mut Batch) {
        self.begin(vec![id(batch)]);
        self.executed.fetch_add(1, Ordering::SeqCst);
        batch.respond(0, Ok(Vec::new()));
    }

    fn pipeline_depth(&self) -> usize {
        DEPTH
    }

    fn execute_many(&mut self, batches: Vec<Batch>, done: &mut dyn FnMut(Batch)) {
        assert!((2..=DEPTH).contains(&batches.len()), "{} batches", batches.len());
        self.begin(batches.iter().map(id).collect());
        for mut batch in batches {
            assert_eq!(batch.len(), 1);
            self.executed.fetch_add(1, Ordering::SeqCst);
            match id(&batch).as_str() {
                "panic" => panic!("asked to panic"),
                "lose" => continue,
                "mute" => {}
                "back" => batch.hand_back(),
                "fail" => batch.respond(0, Err(Error::internal("asked to fail"))),
                _ => batch.respond(0, Ok(Vec::new())),
            }
            done(batch);
        }
    }
}

struct Rig {
    scheduler: Arc<QueueScheduler>,
    statistics: Arc<ModelStatistics>,
    taken: Receiver<Vec<String>>,
    go: Option<Sender<()>>,
    executed: Arc<AtomicUsize>,
}

impl Rig {
    fn start(instances: usize) -> Self {
        let (taken_sender, taken) = mpsc::channel();
        let (go, go_receiver) = mpsc::channel();
        let executed = Arc::<AtomicUsize>::default();
        let statistics = Arc::<ModelStatistics>::default();
        let scheduler = QueueScheduler::start(SchedulerSpec {
            config: Arc::new(model_config("name: 'pipe' backend: 'pipe'")),
            version: 1,
            model: Arc::new(Pipe {
                taken: Mutex::new(taken_sender),
                go: Arc::new(Mutex::new(go_receiver)),
                executed: executed.clone(),
            }),
            instances: (0..instances).map(|i| instance_spec("pipe", i)).collect(),
            statistics: statistics.clone(),
            hold_until_queued: 0,
        });
        let scheduler = scheduler.expect("it starts");
        Self { scheduler, statistics, taken, go: Some(go), executed }
    }

    fn submit(&self, id: &str) -> Answer {
        let (responder, answer) = Responder::unary();
        submit(&self.scheduler, named(id, 1), responder);
        answer
    }

    fn next_taken(&self) -> Vec<String> {
        self.taken.recv_timeout(LONG).expect("requests are taken")
    }

    fn permit_one(&self) {
        self.go.as_ref().expect("not ended").send(()).expect("an instance listens");
    }

    /// From now on nothing waits for the test.
    fn permit_all(&mut self) {
        self.go = None;
    }
}

#[test]
fn what_waits_is_taken_together_up_to_the_depth_and_in_order() {
    let rig = Rig::start(1);
    let first = rig.submit("first");
    assert_eq!(rig.next_taken(), ["first"]);
    let rest = ["a", "b", "c", "d", "e"].map(|id| rig.submit(id));
    rig.permit_one();
    assert_eq!(rig.next_taken(), ["a", "b", "c", "d"]);
    assert_eq!(rig.statistics.snapshot().pending, 1);
    rig.permit_one();
    assert_eq!(rig.next_taken(), ["e"]);
    rig.permit_one();
    wait(first).expect("success");
    all_succeed(rest);
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.execution_count, s.inference_count), (6, 6, 6));
    assert_eq!(s.batches.keys().collect::<Vec<_>>(), [&1]);
}

#[test]
fn instances_divide_what_waits() {
    let rig = Rig::start(2);
    let first = [rig.submit("x"), rig.submit("y")];
    let _ = (rig.next_taken(), rig.next_taken());
    let rest = ["a", "b", "c", "d"].map(|id| rig.submit(id));
    rig.permit_one();
    assert_eq!(rig.next_taken(), ["a", "b"], "the other half is left for the other instance");
    rig.permit_one();
    rig.permit_one();
    let mut left = rig.next_taken();
    rig.permit_one();
    if left.len() == 1 {
        left.extend(rig.next_taken());
        rig.permit_one();
    }
    left.sort_unstable();
    assert_eq!(left, ["c", "d"]);
    all_succeed(first);
    all_succeed(rest);
}

#[test]
fn requests_nobody_waits_for_are_not_taken() {
    let rig = Rig::start(1);
    let first = rig.submit("first");
    rig.next_taken();
    let a = rig.submit("a");
    drop(rig.submit("dropped"));
    let b = rig.submit("b");
    rig.permit_one();
    assert_eq!(rig.next_taken(), ["a"]);
    rig.permit_one();
    assert_eq!(rig.next_taken(), ["b"]);
    rig.permit_one();
    all_succeed([first, a, b]);
    assert_eq!(rig.statistics.snapshot().failures[FailureReason::Canceled as usize], 1);
}

#[test]
fn a_panic_in_the_middle_fails_only_what_was_not_answered() {
    let rig = Rig::start(1);
    let first = rig.submit("first");
    rig.next_taken();
    let [a, panicking, c] = ["a", "panic", "c"].map(|id| rig.submit(id));
    rig.permit_one();
    rig.next_taken();
    rig.permit_one();
    all_succeed([first, a]);
    for answer in [panicking, c] {
        let error = wait(answer).expect_err("failed");
        assert!(error.message().contains("failed unexpectedly while executing"), "{error}");
    }
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.failures[FailureReason::Backend as usize]), (2, 2));
    let after = rig.submit("after");
    rig.permit_one();
    wait(after).expect("another instance");
}

#[test]
fn what_was_not_begun_is_executed_next() {
    let rig = Rig::start(1);
    let first = rig.submit("first");
    rig.next_taken();
    let [a, back] = ["a", "back"].map(|id| rig.submit(id));
    rig.permit_one();
    assert_eq!(rig.next_taken(), ["a", "back"]);
    let last = rig.submit("last");
    rig.permit_one();
    assert_eq!(rig.next_taken(), ["back", "last"], "before what came later");
    rig.permit_one();
    assert_eq!(rig.next_taken(), ["back"]);
    assert_eq!(rig.statistics.snapshot().pending, 0);
    rig.permit_one();
    all_succeed([first, a, back, last]);
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.execution_count, s.fail.count), (4, 4, 0));
}

#[test]
fn what_is_not_handed_back_fails() {
    let rig = Rig::start(1);
    let first = rig.submit("first");
    rig.next_taken();
    let traced = ["lose", "mute", "fail", "a"].map(|id| {
        let (trace, (responder, answer)) = (TraceLog::default(), Responder::unary());
        submit_in(&rig.scheduler, named(id, 1), trace.context(), responder);
        (trace, answer)
    });
    let traces = traced.each_ref().map(|(trace, _)| trace.clone());
    let [lost, mute, failing, fine] = traced.map(|(_, answer)| answer);
    rig.permit_one();
    rig.next_taken();
    rig.permit_one();
    all_succeed([first, fine]);
    for answer in [lost, mute] {
        assert!(wait(answer).expect_err("failed").message().contains("gave no response"));
    }
    assert_eq!(wait(failing).expect_err("failed").message(), "asked to fail");
    assert_eq!(rig.statistics.snapshot().fail.count, 3);
    assert!(traces.iter().all(|trace| trace.only().end.is_some()));
}

#[test]
fn every_request_is_executed_and_answered_once() {
    const SUBMITTERS: usize = 6;
    const REQUESTS: usize = 300;
    for instances in [1, 3] {
        let mut rig = Rig::start(instances);
        rig.permit_all();
        thread::scope(|scope| {
            for submitter in 0..SUBMITTERS {
                let rig = (&rig.scheduler, submitter);
                scope.spawn(move || {
                    let (scheduler, submitter) = rig;
                    let submit = |id: &str| {
                        let (responder, answer) = Responder::unary();
                        submit(scheduler, named(id, 1), responder);
                        (id.to_owned(), answer)
                    };
                    for n in 0..REQUESTS / 3 {
                        let ids = [0, 1, 2].map(|i| format!("{submitter}-{n}-{i}"));
                        let answers = ids.map(|id| submit(&id));
                        for (id, answer) in answers {
                            assert_eq!(wait(answer).expect("success").id, id);
                        }
                    }
                });
            }
        });
        assert!(rig.scheduler.drain(Instant::now() + LONG));
        assert_eq!(rig.executed.load(Ordering::SeqCst), SUBMITTERS * REQUESTS);
        let s = rig.statistics.snapshot();
        assert_eq!(s.success.count, (SUBMITTERS * REQUESTS) as u64);
        assert_eq!((s.execution_count, s.pending), (s.success.count, 0));
        assert_eq!(rig.scheduler.in_flight(), 0);
    }
}
