//! Instances that are handed the next request while they execute one.

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use galatea_backend::{
    Batch, InstanceSpec, Model, ModelInstance, Pipeline, TakenBack, WaitingBatches,
    testing::{Answer, instance_spec, model_config},
};
use galatea_scheduler::{QueueScheduler, Scheduler, SchedulerSpec};
use galatea_telemetry::{FailureReason, ModelStatistics};
use galatea_types::{Error, Responder, Result};

use crate::probe::{LONG, TraceLog, all_succeed, named, submit, submit_in, wait};

/// What the test and the instances share: what happens, and what may.
struct Stage {
    log: Mutex<Sender<String>>,
    /// Ids of requests that may be complete; `None`: all.
    permitted: Mutex<Option<HashSet<String>>>,
    changed: Condvar,
    executed: AtomicUsize,
    /// Instances are behind until this is unset.
    is_behind: AtomicBool,
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
    was_late: bool,
    has_ended: bool,
}

/// Numbers of the batches it has not begun with.
#[derive(Default)]
struct Waiting(Mutex<VecDeque<usize>>);

impl WaitingBatches for Waiting {
    fn take_first_back(&self, from: usize) -> TakenBack {
        let first = self.0.lock().expect("no panic").pop_front();
        first.map_or(TakenBack::Nothing, |number| {
            assert!(number >= from, "that one is begun");
            TakenBack::Batch(number)
        })
    }
}

impl Model for Pipe {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let waiting = Arc::<Waiting>::default();
        Ok(Box::new(PipeInstance {
            stage: self.0.clone(),
            waiting,
            was_late: false,
            has_ended: false,
        }))
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

    fn is_behind(&self) -> bool {
        self.was_late && self.stage.is_behind.load(Ordering::SeqCst)
    }

    fn catch_up(&mut self, limit: Duration) {
        let is_behind = self.stage.permitted.lock().expect("no panic");
        let is_waiting = |_: &mut _| self.stage.is_behind.load(Ordering::SeqCst);
        drop(self.stage.changed.wait_timeout_while(is_behind, limit, is_waiting));
    }
}

impl Pipeline for PipeInstance {
    fn begin(&mut self, batch: &mut Batch) {
        assert_eq!((batch.len(), self.is_behind()), (1, false));
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
            "late" => {
                self.was_late = true;
                batch.fail_all(&Error::unavailable("late"));
                return;
            }
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

struct Rig {
    scheduler: Arc<QueueScheduler>,
    statistics: Arc<ModelStatistics>,
    log: Receiver<String>,
    stage: Arc<Stage>,
}

impl Rig {
    /// One request waits in an instance.
    fn start(instances: usize) -> Self {
        Self::start_deep(instances, 1)
    }

    fn start_deep(instances: usize, depth: usize) -> Self {
        let (sender, log) = mpsc::channel();
        let stage = Arc::new(Stage {
            log: Mutex::new(sender),
            permitted: Mutex::new(Some(HashSet::new())),
            changed: Condvar::new(),
            executed: AtomicUsize::new(0),
            is_behind: AtomicBool::new(true),
            depth,
        });
        let statistics = Arc::<ModelStatistics>::default();
        let scheduler = QueueScheduler::start(SchedulerSpec {
            config: Arc::new(model_config("name: 'pipe' backend: 'pipe'")),
            version: 1,
            model: Arc::new(Pipe(stage.clone())),
            instances: (0..instances).map(|i| instance_spec("pipe", i)).collect(),
            statistics: statistics.clone(),
            hold_until_queued: 0,
        });
        Self { scheduler: scheduler.expect("it starts"), statistics, log, stage }
    }

    fn submit(&self, id: &str) -> Answer {
        let (responder, answer) = Responder::unary();
        submit(&self.scheduler, named(id, 1), responder);
        answer
    }

    fn next(&self) -> String {
        self.log.recv_timeout(LONG).expect("something happens")
    }

    fn next_begun(&self) -> String {
        let mut events = std::iter::repeat_with(|| self.next());
        events.find(|event| event.starts_with("begin")).expect("endless")
    }

    /// Two instances that execute 'x' and 'y'.
    fn begin_two(&self) -> [Answer; 2] {
        let answers = ["x", "y"].map(|id| self.submit(id));
        let _ = (self.next_begun(), self.next_begun());
        answers
    }

    fn permit(&self, ids: &[&str]) {
        let mut permitted = self.stage.permitted.lock().expect("no panic");
        permitted.as_mut().expect("not all").extend(ids.iter().map(|id| (*id).to_owned()));
        self.stage.changed.notify_all();
    }

    fn permit_all(&self) {
        *self.stage.permitted.lock().expect("no panic") = None;
        self.stage.changed.notify_all();
    }

    fn catch_up(&self) {
        let _permitted = self.stage.permitted.lock().expect("no panic");
        self.stage.is_behind.store(false, Ordering::SeqCst);
        self.stage.changed.notify_all();
    }

    fn pending(&self) -> i64 {
        self.statistics.snapshot().pending
    }

    /// One instance that executes 'a' while these wait, the first of them within it.
    fn with_waiting<const N: usize>(&self, ids: [&str; N]) -> (Vec<Answer>, [Answer; N]) {
        self.with_waiting_behind("a", ids)
    }

    /// The same with another one than 'a'.
    fn with_waiting_behind<const N: usize>(
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

#[test]
fn a_request_handed_over_still_waits() {
    let rig = Rig::start(1);
    let (first, [b]) = rig.with_waiting(["b"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin a"]);
    assert_eq!(rig.pending(), 1, "it is not executed yet");
    let (trace, (responder, c)) = (TraceLog::default(), Responder::unary());
    submit_in(&rig.scheduler, named("c", 1), trace.context(), responder);
    assert_eq!(rig.pending(), 2);
    rig.permit(&["a"]);
    assert_eq!([rig.next(), rig.next()], ["ahead c", "begin b"]);
    assert_eq!(rig.pending(), 1);
    let b_ends = Instant::now();
    rig.permit(&["b", "c"]);
    all_succeed(first);
    all_succeed([b, c]);
    let timeline = trace.only();
    assert!(timeline.compute_start.is_some_and(|start| start >= b_ends), "it waited until then");
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.execution_count, s.inference_count, s.pending), (4, 4, 4, 0));
    assert_eq!(s.batches.keys().collect::<Vec<_>>(), [&1]);
}

#[test]
fn what_waits_in_an_instance_that_ends_does_not_fail_with_the_request_it_executed() {
    let rig = Rig::start(1);
    let (mut first, [b]) = rig.with_waiting_behind("end", ["b"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin end"]);
    rig.permit_all();
    wait(first.remove(1)).expect_err("it ended with that");
    all_succeed(first);
    wait(b).expect("it had not begun");
}

#[test]
fn nothing_is_handed_over_while_an_instance_is_free() {
    let rig = Rig::start(2);
    let long = rig.submit("long");
    assert_eq!(rig.next(), "begin long");
    for id in ["a", "b", "c"] {
        let answer = rig.submit(id);
        assert_eq!(rig.next(), format!("begin {id}"));
        rig.permit(&[id]);
        wait(answer).expect("it does not wait behind the long one");
    }
    rig.permit_all();
    wait(long).expect("success");
}

#[test]
fn an_instance_that_is_free_takes_back_what_waits_in_another() {
    let rig = Rig::start(2);
    let [x, y] = rig.begin_two();
    let [a, b] = ["a", "b"].map(|id| rig.submit(id));
    rig.permit(&["x"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin a"]);
    rig.permit(&["y"]);
    assert_eq!(rig.next(), "begin b", "by the other instance");
    assert_eq!(rig.pending(), 0);
    rig.permit(&["b"]);
    all_succeed([x, y, b]);
    assert_eq!(rig.statistics.snapshot().success.count, 3, "a is still executed");
    rig.permit(&["a"]);
    wait(a).expect("success");
}

#[test]
fn several_wait_in_an_instance_and_are_begun_in_their_order() {
    let rig = Rig::start_deep(1, 3);
    let (first, rest) = rig.with_waiting(["b", "c", "d", "e"]);
    assert_eq!([rig.next(), rig.next(), rig.next()], ["ahead b", "ahead c", "ahead d"]);
    assert_eq!(rig.next(), "begin a");
    assert_eq!(rig.pending(), 4, "none of them is executed yet");
    rig.permit(&["a"]);
    assert_eq!([rig.next(), rig.next()], ["ahead e", "begin b"]);
    assert_eq!(rig.pending(), 3);
    rig.permit_all();
    assert_eq!([rig.next(), rig.next(), rig.next()], ["begin c", "begin d", "begin e"]);
    all_succeed(first);
    all_succeed(rest);
    let s = rig.statistics.snapshot();
    assert_eq!((s.success.count, s.execution_count, s.pending), (6, 6, 0));
}

/// One by one, first in first out.
#[test]
fn all_that_waits_in_an_instance_goes_to_one_that_is_free() {
    let rig = Rig::start_deep(2, 3);
    let [x, y] = rig.begin_two();
    let ids = ["a", "b", "c", "d", "e", "f"];
    let answers = ids.map(|id| rig.submit(id));
    rig.permit(&["x"]);
    assert_eq!(
        [rig.next(), rig.next(), rig.next(), rig.next()],
        ["ahead b", "ahead c", "ahead d", "begin a"]
    );
    rig.permit(&["y", "e", "f"]);
    let begun: Vec<_> = (0..3).map(|_| rig.next_begun()).collect();
    assert_eq!(begun, ["begin e", "begin f", "begin b"], "and not after a");
    for (permitted, waiting, next) in [("b", 2, "begin c"), ("c", 1, "begin d")] {
        assert_eq!(rig.pending(), waiting);
        rig.permit(&[permitted]);
        assert_eq!(rig.next_begun(), next);
    }
    rig.permit_all();
    all_succeed([x, y]);
    all_succeed(answers);
}

/// The first that cannot be handed over is the first that is executed.
#[test]
fn nothing_overtakes_what_cannot_be_handed_over() {
    let rig = Rig::start_deep(1, 3);
    let (first, rest) = rig.with_waiting(["full", "b", "c"]);
    assert_eq!(rig.next(), "begin a");
    assert_eq!(rig.pending(), 3);
    rig.permit(&["a"]);
    assert_eq!([rig.next(), rig.next(), rig.next()], ["ahead b", "ahead c", "begin full"]);
    rig.permit_all();
    all_succeed(first);
    all_succeed(rest);
}

/// The other instance always has the next request before it is free.
#[test]
fn what_waits_behind_a_long_request_is_not_overtaken_without_end() {
    let rig = Rig::start(2);
    let first = rig.begin_two();
    let ids = ["0", "1", "a", "b", "2", "3", "4", "5", "6", "7", "8", "9"];
    let others = ids.map(|id| rig.submit(id));
    rig.permit(&["y"]);
    assert_eq!([rig.next(), rig.next()], ["ahead 1", "begin 0"]);
    rig.permit(&["x"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin a"]);
    rig.permit(&["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    let mut begun = std::iter::repeat_with(|| rig.next_begun());
    let place = begun.position(|event| event == "begin b").expect("it is begun");
    assert!((2..=6).contains(&place), "begun as number {place}");
    rig.permit_all();
    all_succeed(first);
    all_succeed(others);
}

#[test]
fn requests_nobody_waits_for_are_not_executed() {
    let rig = Rig::start(1);
    let (first, [b]) = rig.with_waiting(["b"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin a"]);
    let (c, d) = (rig.submit("c"), rig.submit("d"));
    drop(b);
    assert_eq!(rig.scheduler.release_abandoned(), 1);
    assert_eq!(rig.pending(), 2);
    drop(c);
    rig.permit(&["a"]);
    assert_eq!(rig.next(), "begin d", "not c");
    rig.permit(&["d"]);
    all_succeed(first);
    wait(d).expect("success");
    let s = rig.statistics.snapshot();
    assert_eq!((s.failures[FailureReason::Canceled as usize], s.pending), (2, 0));
}

#[test]
fn a_panic_fails_only_what_was_begun() {
    let rig = Rig::start(1);
    let first = rig.submit("first");
    assert_eq!(rig.next(), "begin first");
    let [panicking, b, c] = ["panic", "b", "c"].map(|id| rig.submit(id));
    rig.permit(&["first"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin panic"]);
    rig.permit(&["panic"]);
    let error = wait(panicking).expect_err("failed");
    assert!(error.message().contains("failed unexpectedly while executing"), "{error}");
    assert_eq!([rig.next(), rig.next()], ["ahead c", "begin b"], "in another instance");
    rig.permit_all();
    all_succeed([first, b, c]);
    let s = rig.statistics.snapshot();
    let failed = s.failures[FailureReason::Backend as usize];
    assert_eq!((s.success.count, failed, s.pending), (3, 1, 0));
}

#[test]
fn what_cannot_be_handed_over_is_executed_next() {
    let rig = Rig::start(1);
    let (first, [full, b]) = rig.with_waiting(["full", "b"]);
    assert_eq!(rig.next(), "begin a");
    assert_eq!(rig.pending(), 2);
    rig.permit(&["a"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin full"]);
    rig.permit_all();
    all_succeed(first);
    all_succeed([full, b]);
}

#[test]
fn what_cannot_be_sent_at_all_is_answered_once() {
    let rig = Rig::start(1);
    let (first, [bad, b]) = rig.with_waiting(["bad", "b"]);
    assert_eq!(rig.next(), "begin a");
    assert_eq!(wait(bad).expect_err("bad").message(), "cannot be sent");
    assert_eq!(rig.pending(), 1);
    rig.permit_all();
    all_succeed(first);
    wait(b).expect("success");
    assert_eq!(rig.statistics.snapshot().fail.count, 1);
}

#[test]
fn failures_stay_with_their_request() {
    let rig = Rig::start(1);
    let first = rig.submit("first");
    assert_eq!(rig.next(), "begin first");
    let traced = ["mute", "fail", "b"].map(|id| {
        let (trace, (responder, answer)) = (TraceLog::default(), Responder::unary());
        submit_in(&rig.scheduler, named(id, 1), trace.context(), responder);
        (trace, answer)
    });
    let traces = traced.each_ref().map(|(trace, _)| trace.clone());
    let [mute, failing, fine] = traced.map(|(_, answer)| answer);
    rig.permit_all();
    all_succeed([first, fine]);
    assert!(wait(mute).expect_err("failed").message().contains("gave no response"));
    assert_eq!(wait(failing).expect_err("failed").message(), "asked to fail");
    assert_eq!(rig.statistics.snapshot().fail.count, 2);
    assert!(traces.iter().all(|trace| trace.only().end.is_some()));
}

/// The caller's time was over: what waits behind it, and what comes, goes to the other instance.
#[test]
fn requests_do_not_wait_for_an_instance_that_is_behind() {
    let rig = Rig::start(2);
    let busy = rig.begin_two();
    let [late, b] = ["late", "b"].map(|id| rig.submit(id));
    rig.permit(&["x"]);
    assert_eq!([rig.next(), rig.next()], ["ahead b", "begin late"]);
    rig.permit(&["late"]);
    wait(late).expect_err("late");
    rig.permit(&["y"]);
    assert_eq!(rig.next(), "begin b");
    rig.permit(&["b"]);
    wait(b).expect("by the other instance");
    for id in ["c", "d"] {
        let answer = rig.submit(id);
        assert_eq!(rig.next(), format!("begin {id}"));
        rig.permit(&[id]);
        wait(answer).expect("by the other instance");
    }
    rig.catch_up();
    let both = [rig.submit("e"), rig.submit("f")];
    let mut begun = [rig.next_begun(), rig.next_begun()];
    begun.sort_unstable();
    assert_eq!(begun, ["begin e", "begin f"], "both instances are there again");
    rig.permit_all();
    all_succeed(busy);
    all_succeed(both);
}

#[test]
fn every_request_is_executed_and_answered_once() {
    const SUBMITTERS: usize = 6;
    const REQUESTS: usize = 300;
    for instances in [1, 3] {
        let rig = Rig::start(instances);
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
        assert_eq!(rig.stage.executed.load(Ordering::SeqCst), SUBMITTERS * REQUESTS);
        let s = rig.statistics.snapshot();
        assert_eq!(s.success.count, (SUBMITTERS * REQUESTS) as u64);
        assert_eq!((s.execution_count, s.pending), (s.success.count, 0));
        assert_eq!(rig.scheduler.in_flight(), 0);
    }
}
