//! Requests that are executed by the thread that brings them.

use std::{
    panic,
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
    time::Duration,
};

use galatea_backend::{
    Batch, InstanceSpec, Model, ModelInstance,
    testing::{Answer, LateAnswers, instance_spec, model_config},
};
use galatea_scheduler::{
    ExecutionRules, QueueScheduler, RateLimiter, Scheduler as _, SchedulerSpec, TestHold,
};
use galatea_telemetry::{FailureReason, ModelStatistics};
use galatea_types::{
    Code, DebugEvent, DebugEventReader, DebugEvents, InferResponse, ManualClock, RequestContext,
    Responder, Result, late_work,
};
use tokio::runtime::Builder;

use crate::probe::{LONG, by_clock, named, sized, submit_in};

/// More executions than it takes until they are on the spot.
const ENOUGH: usize = 20;

/// An execution this long makes a pause of a hundred times as long, in which none is on the spot.
const SLOW: Duration = Duration::from_millis(12);

/// Which requests were executed together, and by whom.
type Executed = Arc<Mutex<Vec<(ThreadId, Vec<String>)>>>;

struct Quick {
    executed: Executed,
    clock: ManualClock,
    computes_on_any_thread: bool,
}

impl Model for Quick {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(QuickInstance { executed: self.executed.clone(), clock: self.clock.clone() }))
    }

    fn computes_on_any_thread(&self) -> bool {
        self.computes_on_any_thread
    }
}

/// Takes no time, by the clock of the test, unless it is asked to.
struct QuickInstance {
    executed: Executed,
    clock: ManualClock,
}

impl ModelInstance for QuickInstance {
    fn execute(&mut self, batch: &mut Batch) {
        let ids: Vec<String> = batch.requests().map(|request| request.id.clone()).collect();
        match ids[0].as_str() {
            "slow" => self.clock.advance(SLOW),
            // Without the hook, which may take long to print where it was.
            "panic" => panic::resume_unwind(Box::new("asked to panic")),
            _ => {}
        }
        self.executed.lock().expect("no panic").push((thread::current().id(), ids));
        (0..batch.len()).for_each(|index| batch.respond(index, Ok(Vec::new())));
    }
}

struct Rig {
    scheduler: Arc<QueueScheduler>,
    statistics: Arc<ModelStatistics>,
    executed: Executed,
    clock: ManualClock,
    events: DebugEventReader,
}

impl Rig {
    fn start(config: &str) -> Self {
        Self::of(config, 1, true, ExecutionRules::default())
    }

    /// With its instances at rest.
    fn of(config: &str, instances: usize, computes: bool, execution: ExecutionRules) -> Self {
        let same = |model| -> Arc<dyn Model> { Arc::new(model) };
        Self::with(config, instances, computes, execution, same)
    }

    /// Does the same with another model around the quick one.
    fn with(
        config: &str,
        instances: usize,
        computes: bool,
        execution: ExecutionRules,
        wrap: impl FnOnce(Quick) -> Arc<dyn Model>,
    ) -> Self {
        let (executed, clock, events) =
            (Executed::default(), ManualClock::new(), DebugEvents::on());
        let (statistics, reader) = (by_clock(&clock), events.subscribe());
        let model = Quick {
            executed: executed.clone(),
            clock: clock.clone(),
            computes_on_any_thread: computes,
        };
        let text = format!(
            "name: 'probe' backend: 'probe' max_batch_size: 8
             input {{ name: 'IN' data_type: TYPE_FP32 dims: -1 }} {config}"
        );
        let scheduler = QueueScheduler::start(SchedulerSpec {
            config: Arc::new(model_config(&text)),
            version: 1,
            model: wrap(model),
            instances: (0..instances).map(|index| instance_spec("probe", index)).collect(),
            statistics: statistics.clone(),
            initial_states: Vec::new(),
            hold: TestHold::default(),
            starts_one_by_one: false,
            warm_up: Vec::new(),
            execution: ExecutionRules { events, ..execution },
        });
        let scheduler = scheduler.expect("it starts");
        let rig = Self { scheduler, statistics, executed, clock, events: reader };
        (0..instances).for_each(|_| rig.wait_for_rest());
        rig
    }

    /// Waits until an instance has nothing to do and its thread sleeps.
    fn wait_for_rest(&self) {
        let is_rest = |event: &DebugEvent| matches!(event, DebugEvent::InstanceIdle { .. });
        self.events.wait_for("an instance is at rest", is_rest);
    }

    fn submit(&self, id: &str) -> Answer {
        self.submit_in(id, RequestContext::received_at(self.clock.now()))
    }

    fn submit_in(&self, id: &str, context: RequestContext) -> Answer {
        let (responder, answer) = Responder::unary();
        submit_in(&self.scheduler, named(id, 1), context, responder);
        answer
    }

    fn in_place(&self) -> u64 {
        self.statistics.snapshot().executions_in_place
    }

    /// Sends a request to instances at rest and leaves them so: returns whether it was executed on the spot.
    async fn is_executed_in_place(&self, id: &str) -> bool {
        let before = self.in_place();
        answered(self.submit(id)).await.expect("success");
        let is_in_place = self.in_place() > before;
        if !is_in_place {
            self.wait_for_rest();
        }
        is_in_place
    }

    /// Sends one request after the other until one is executed on the spot.
    async fn becomes_quick(&self) {
        for _ in 0..ENOUGH {
            if self.is_executed_in_place("warm").await {
                self.take_executed();
                return;
            }
        }
        panic!("short executions are done on the spot");
    }

    /// Sends one request after the other, none of which is executed on the spot.
    async fn stays_with_instances(&self, case: &str) {
        for _ in 0..ENOUGH {
            assert!(!self.is_executed_in_place("warm").await, "{case}");
        }
    }

    /// What was executed since this was asked last.
    fn take_executed(&self) -> Vec<(ThreadId, Vec<String>)> {
        std::mem::take(&mut self.executed.lock().expect("no panic"))
    }
}

async fn answered(answer: Answer) -> Result<InferResponse> {
    tokio::time::timeout(LONG, answer).await.expect("in time").expect("a responder always answers")
}

/// Runs a test as a task of a thread that serves connections.
fn as_connection<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        tokio::spawn(late_work::serve());
        // It is served as soon as the task has been polled.
        tokio::task::yield_now().await;
        test().await;
    });
}

/// Runs a test as a task of a thread that serves connections, with a model that such a thread executes.
fn with_quick_model(rig: Rig, test: impl AsyncFn(&Rig)) {
    as_connection(|| async {
        rig.becomes_quick().await;
        test(&rig).await;
    });
}

#[test]
fn a_quick_model_is_executed_in_order_on_the_callers_thread() {
    with_quick_model(Rig::start(""), async |rig| {
        let before = rig.in_place();
        let answers: Vec<Answer> = ["a", "b", "c"].map(|id| rig.submit(id)).into();
        assert_eq!(rig.in_place(), before, "the other tasks come first");
        for answer in answers {
            answered(answer).await.expect("success");
        }
        let counted = rig.statistics.snapshot();
        assert_eq!(counted.success.count, counted.execution_count);
        assert_eq!((counted.pending, rig.scheduler.in_flight()), (0, 0));
        assert_eq!(rig.in_place(), before + 3);
        let own = thread::current().id();
        let expected = ["a", "b", "c"].map(|id| (own, vec![id.to_owned()]));
        assert_eq!(rig.take_executed(), expected);
    });
}

#[test]
fn a_model_that_answers_later_is_executed_in_place() {
    let later = |model| -> Arc<dyn Model> {
        let model: Box<dyn Model> = Box::new(model);
        Arc::new(LateAnswers(model))
    };
    let rig = Rig::with("", 1, true, ExecutionRules::default(), later);
    with_quick_model(rig, async |rig| {
        let before = rig.in_place();
        for id in ["a", "b", "c"] {
            answered(rig.submit(id)).await.expect("success");
        }
        let counted = rig.statistics.snapshot();
        assert_eq!(counted.executions_in_place, before + 3);
        assert_eq!(counted.success.count, counted.execution_count);
    });
}

#[test]
fn requests_submitted_at_once_by_one_thread_form_one_batch() {
    let rig = Rig::start("dynamic_batching { preserve_ordering: true }");
    with_quick_model(rig, async |rig| {
        let before = rig.in_place();
        let answers: Vec<Answer> = ["a", "b", "c"].map(|id| rig.submit(id)).into();
        for answer in answers {
            answered(answer).await.expect("success");
        }
        assert_eq!(rig.in_place(), before + 1);
        let together = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(rig.take_executed(), [(thread::current().id(), together)]);
    });
}

#[test]
fn models_unfit_for_in_place_execution_use_their_instance_threads() {
    let limited =
        ExecutionRules { rate_limiter: Some(RateLimiter::new(Vec::new())), ..Default::default() };
    let rigs = [
        ("another thread's model", Rig::of("", 1, false, ExecutionRules::default())),
        ("a rate limiter", Rig::of("", 1, true, limited)),
        ("a device of the model's choice", Rig::start("instance_group { kind: KIND_MODEL }")),
        ("a priority of the thread", Rig::start("optimization { priority: PRIORITY_MIN }")),
    ];
    as_connection(|| async {
        for (case, rig) in rigs {
            rig.stays_with_instances(case).await;
        }
        // Whose requests need time, or a sequence.
        let rig = Rig::start("dynamic_batching { max_queue_delay_microseconds: 1 }");
        for _ in 0..ENOUGH {
            let waiting = rig.submit("a batch that waits");
            rig.clock.advance(Duration::from_micros(1));
            answered(waiting).await.expect("success");
            rig.wait_for_rest();
        }
        assert_eq!(rig.in_place(), 0);
        assert_eq!(Rig::start("sequence_batching { }").in_place(), 0);
    });
    // A thread without such a task, however quick the model is.
    let rig = Rig::start("");
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(rig.stays_with_instances("a thread that serves no connections"));
}

#[test]
fn a_much_larger_request_is_executed_by_the_instance_thread() {
    with_quick_model(Rig::start(""), async |rig| {
        let submit = async || {
            let (responder, answer) = Responder::unary();
            let mut request = sized("large", 1, 4).into_request();
            request.inputs[0].data = vec![0; 1 << 20].into();
            let request = galatea_backend::testing::prepared(request, 1);
            let context = RequestContext::received_at(rig.clock.now());
            submit_in(&rig.scheduler, request, context, responder);
            answered(answer).await.expect("success");
        };
        let before = rig.in_place();
        submit().await;
        assert_eq!(rig.in_place(), before);
        rig.wait_for_rest();
        submit().await;
        assert_eq!(rig.in_place(), before + 1, "by then it is known to be quick");
    });
}

#[test]
fn a_slow_model_returns_to_its_instance_thread_for_a_while() {
    with_quick_model(Rig::start(""), async |rig| {
        let (slow, behind) = (rig.submit("slow"), rig.submit("behind"));
        answered(slow).await.expect("success");
        answered(behind).await.expect("success");
        rig.wait_for_rest();
        let executed = rig.take_executed();
        let own = thread::current().id();
        assert_eq!(executed.iter().map(|(_, ids)| &ids[0]).collect::<Vec<_>>(), ["slow", "behind"]);
        assert_eq!(executed[0].0, own);
        assert_ne!(executed[1].0, own, "the time of the turn is over");
        rig.stays_with_instances("a pause").await;
        rig.clock.advance(100 * SLOW);
        assert!(rig.is_executed_in_place("the pause is over").await);
    });
}

#[test]
fn an_instance_that_panics_is_restarted_by_its_thread() {
    let rig = Rig::of("", 2, true, ExecutionRules::default());
    with_quick_model(rig, async |rig| {
        let before = rig.in_place();
        let (panicking, behind) = (rig.submit("panic"), rig.submit("behind"));
        let error = answered(panicking).await.expect_err("it panicked");
        assert_eq!(error.code(), Code::Internal);
        assert_eq!(rig.in_place(), before + 1);
        answered(behind).await.expect("success");
        let is_restart = |event: &DebugEvent| matches!(event, DebugEvent::WorkerRestarted { .. });
        let restart = rig.events.wait_for("it is restarted", is_restart);
        // Either instance may execute what was behind. The restarted one is at rest in the end.
        rig.events.wait_for("the restarted one is at rest", |event| {
            matches!(event, DebugEvent::InstanceIdle { .. })
                && event.instance() == restart.instance()
        });
        assert_eq!(rig.statistics.snapshot().restarts, 1);
        assert!(rig.is_executed_in_place("on the spot as before").await);
    });
}

#[test]
fn a_request_abandoned_before_its_turn_is_not_executed() {
    with_quick_model(Rig::start(""), async |rig| {
        let before = rig.in_place();
        let context = RequestContext::received_at(rig.clock.now());
        let cancellation = context.cancellation.clone();
        let cancelled = rig.submit_in("cancelled", context);
        let kept = rig.submit("kept");
        cancellation.cancel();
        let outcome = answered(cancelled).await;
        answered(kept).await.expect("success");
        assert_eq!(rig.in_place(), before + 1);
        assert_eq!(outcome.expect_err("cancelled").code(), Code::Cancelled);
        assert_eq!(rig.take_executed().len(), 1);
        let counted = rig.statistics.snapshot();
        assert_eq!(counted.failures[FailureReason::Canceled as usize], 1);
    });
}

#[test]
fn accepted_requests_are_answered_when_the_scheduler_or_thread_ends() {
    let rig = Rig::start("");
    as_connection(|| async {
        rig.becomes_quick().await;
        let accepted = rig.submit("accepted");
        rig.scheduler.close();
        answered(accepted).await.expect("success");
    });
    let closed = |rig: &Rig| assert!(rig.scheduler.drain(rig.clock.now() + LONG));
    closed(&rig);
    let rig = Rig::start("");
    let mut left = None;
    as_connection(|| async {
        rig.becomes_quick().await;
        left = Some(rig.submit("left"));
    });
    let left = left.expect("submitted").blocking_recv().expect("a responder always answers");
    left.expect("by the instance's thread");
    closed(&rig);
}
