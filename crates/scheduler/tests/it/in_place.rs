//! Requests that are executed by the thread that brings them.

use std::{
    panic,
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use galatea_backend::{
    Batch, InstanceSpec, Model, ModelInstance,
    testing::{Answer, instance_spec, model_config},
};
use galatea_scheduler::{
    ExecutionRules, Hold, QueueScheduler, RateLimiter, Scheduler as _, SchedulerSpec,
};
use galatea_telemetry::{FailureReason, ModelStatistics};
use galatea_types::{Code, InferResponse, RequestContext, Responder, Result, late_work};
use tokio::runtime::Builder;

use crate::probe::{LONG, named, sized, submit_in, until};

/// More executions than it takes until they are on the spot, where nothing takes the thread's processor away.
const ENOUGH: usize = 200;

/// Which requests were executed together, and by whom.
type Executed = Arc<Mutex<Vec<(ThreadId, Vec<String>)>>>;

struct Quick {
    executed: Executed,
    computes_on_any_thread: bool,
}

impl Model for Quick {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(QuickInstance(self.executed.clone())))
    }

    fn computes_on_any_thread(&self) -> bool {
        self.computes_on_any_thread
    }
}

struct QuickInstance(Executed);

impl ModelInstance for QuickInstance {
    fn execute(&mut self, batch: &mut Batch) {
        let ids: Vec<String> = batch.requests().map(|request| request.id.clone()).collect();
        match ids[0].as_str() {
            "slow" => compute_for(Duration::from_millis(12)),
            // Without the hook, which may take long to print where it was.
            "panic" => panic::resume_unwind(Box::new("asked to panic")),
            _ => {}
        }
        self.0.lock().expect("no panic").push((thread::current().id(), ids));
        (0..batch.len()).for_each(|index| batch.respond(index, Ok(Vec::new())));
    }
}

fn compute_for(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

struct Rig {
    scheduler: Arc<QueueScheduler>,
    statistics: Arc<ModelStatistics>,
    executed: Executed,
}

impl Rig {
    fn start(config: &str) -> Self {
        Self::of(config, 1, true, ExecutionRules::default())
    }

    fn of(config: &str, instances: usize, computes: bool, execution: ExecutionRules) -> Self {
        let (executed, statistics) = (Executed::default(), Arc::<ModelStatistics>::default());
        let text = format!(
            "name: 'probe' backend: 'probe' max_batch_size: 8
             input {{ name: 'IN' data_type: TYPE_FP32 dims: -1 }} {config}"
        );
        let scheduler = QueueScheduler::start(SchedulerSpec {
            config: Arc::new(model_config(&text)),
            version: 1,
            model: Arc::new(Quick { executed: executed.clone(), computes_on_any_thread: computes }),
            instances: (0..instances).map(|index| instance_spec("probe", index)).collect(),
            statistics: statistics.clone(),
            initial_states: Vec::new(),
            hold: Hold::default(),
            starts_one_by_one: false,
            warm_up: Vec::new(),
            execution,
        });
        Self { scheduler: scheduler.expect("it starts"), statistics, executed }
    }

    fn submit(&self, id: &str) -> Answer {
        self.submit_in(id, RequestContext::new())
    }

    fn submit_in(&self, id: &str, context: RequestContext) -> Answer {
        let (responder, answer) = Responder::unary();
        submit_in(&self.scheduler, named(id, 1), context, responder);
        answer
    }

    fn in_place(&self) -> u64 {
        self.statistics.snapshot().executions_in_place
    }

    /// Sends one request after the other until one is executed on the spot. A thread that loses its processor meanwhile
    /// makes the model look slow, for seconds if it loses it for long.
    async fn becomes_quick(&self) {
        let (before, begin) = (self.in_place(), Instant::now());
        while self.in_place() == before {
            assert!(begin.elapsed() < LONG, "short executions are done on the spot");
            answered(self.submit("warm")).await.expect("success");
        }
        self.take_executed();
    }

    /// Sends one request after the other, none of which is executed on the spot.
    async fn stays_with_instances(&self, case: &str) {
        let before = self.in_place();
        for _ in 0..ENOUGH {
            answered(self.submit("warm")).await.expect("success");
        }
        assert_eq!(self.in_place(), before, "{case}");
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

/// Runs a test as a task of a thread that serves connections, with a model that such a thread executes. The test says
/// whether it did. It did not where the thread lost its processor for a moment, so that the model looked slow or the turn
/// was over: then it is done again with a new model.
fn with_quick_model(start: impl Fn() -> Rig, test: impl AsyncFn(&Rig) -> bool) {
    as_connection(|| async {
        let begin = Instant::now();
        loop {
            let rig = start();
            rig.becomes_quick().await;
            if test(&rig).await {
                return;
            }
            assert!(begin.elapsed() < LONG, "it was never executed on the spot");
        }
    });
}

#[test]
fn a_quick_model_is_executed_by_the_thread_that_brings_the_requests_in_their_order() {
    with_quick_model(
        || Rig::start(""),
        async |rig| {
            let before = rig.in_place();
            let answers: Vec<Answer> = ["a", "b", "c"].map(|id| rig.submit(id)).into();
            assert_eq!(rig.in_place(), before, "the other tasks come first");
            for answer in answers {
                answered(answer).await.expect("success");
            }
            let counted = rig.statistics.snapshot();
            assert_eq!(counted.success.count, counted.execution_count);
            assert_eq!((counted.pending, rig.scheduler.in_flight()), (0, 0));
            if rig.in_place() < before + 3 {
                return false;
            }
            let own = thread::current().id();
            let expected = ["a", "b", "c"].map(|id| (own, vec![id.to_owned()]));
            assert_eq!(rig.take_executed(), expected);
            true
        },
    );
}

#[test]
fn what_the_tasks_of_a_thread_bring_at_once_is_one_batch() {
    let start = || Rig::start("dynamic_batching { preserve_ordering: true }");
    with_quick_model(start, async |rig| {
        let before = rig.in_place();
        let answers: Vec<Answer> = ["a", "b", "c"].map(|id| rig.submit(id)).into();
        for answer in answers {
            answered(answer).await.expect("success");
        }
        let executed = rig.take_executed();
        let (first, _) = &executed[0];
        if rig.in_place() == before || *first != thread::current().id() {
            return false;
        }
        assert_eq!(executed.len(), 1);
        true
    });
}

#[test]
fn elsewhere_and_where_it_would_not_be_right_instances_execute_themselves() {
    let limited =
        ExecutionRules { rate_limiter: Some(RateLimiter::new(Vec::new())), ..Default::default() };
    let rigs = [
        ("another thread's model", Rig::of("", 1, false, ExecutionRules::default())),
        ("a rate limiter", Rig::of("", 1, true, limited)),
        ("a batch that waits", Rig::start("dynamic_batching { max_queue_delay_microseconds: 1 }")),
        ("a device of the model's choice", Rig::start("instance_group { kind: KIND_MODEL }")),
        ("sequences", Rig::start("sequence_batching { }")),
        ("a priority of the thread", Rig::start("optimization { priority: PRIORITY_MIN }")),
    ];
    as_connection(|| async {
        for (case, rig) in rigs {
            if case != "sequences" {
                rig.stays_with_instances(case).await;
            }
            assert_eq!(rig.in_place(), 0, "{case}");
        }
    });
    // A thread without such a task, however quick the model is.
    let rig = Rig::start("");
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(rig.stays_with_instances("a thread that serves no connections"));
}

#[test]
fn a_request_that_is_much_larger_goes_to_the_instance() {
    as_connection(|| async {
        let rig = Rig::start("");
        let submit = |items| {
            let (responder, answer) = Responder::unary();
            let mut request = sized("large", 1, 4).into_request();
            request.inputs[0].data = vec![0; items].into();
            let request = galatea_backend::testing::prepared(request, 1);
            submit_in(&rig.scheduler, request, RequestContext::new(), responder);
            answered(answer)
        };
        rig.becomes_quick().await;
        let before = rig.in_place();
        submit(1 << 20).await.expect("success");
        assert_eq!(rig.in_place(), before);
        let begin = Instant::now();
        while rig.in_place() == before {
            submit(1 << 20).await.expect("success");
            assert!(begin.elapsed() < LONG, "by then it is known to be quick");
        }
    });
}

#[test]
fn a_model_that_takes_long_gets_its_thread_back_and_holds_up_no_connection_for_a_while() {
    with_quick_model(
        || Rig::start(""),
        async |rig| {
            let (slow, behind) = (rig.submit("slow"), rig.submit("behind"));
            answered(slow).await.expect("success");
            answered(behind).await.expect("success");
            let executed = rig.take_executed();
            let own = thread::current().id();
            assert_eq!(
                executed.iter().map(|(_, ids)| &ids[0]).collect::<Vec<_>>(),
                ["slow", "behind"]
            );
            assert_ne!(executed[1].0, own, "the time of the turn is over");
            let (before, begin) = (rig.in_place(), Instant::now());
            for _ in 0..ENOUGH {
                answered(rig.submit("quick again")).await.expect("success");
            }
            if executed[0].0 != own || begin.elapsed() > Duration::from_secs(1) {
                return false;
            }
            assert_eq!(rig.in_place(), before);
            true
        },
    );
}

#[test]
fn an_instance_that_panics_is_restarted_by_its_thread() {
    let start = || Rig::of("", 2, true, ExecutionRules::default());
    with_quick_model(start, async |rig| {
        let before = rig.in_place();
        let (panicking, behind) = (rig.submit("panic"), rig.submit("behind"));
        let error = answered(panicking).await.expect_err("it panicked");
        assert_eq!(error.code(), Code::Internal);
        let panicked_on_the_spot = rig.in_place() == before + 1;
        answered(behind).await.expect("success");
        let statistics = rig.statistics.clone();
        let restarted = move || until(|| statistics.snapshot().restarts == 1);
        thread::spawn(restarted).join().expect("it is restarted");
        rig.becomes_quick().await;
        panicked_on_the_spot
    });
}

#[test]
fn who_gives_up_before_the_turn_is_not_executed() {
    with_quick_model(
        || Rig::start(""),
        async |rig| {
            let before = rig.in_place();
            let context = RequestContext::new();
            let cancellation = context.cancellation.clone();
            let cancelled = rig.submit_in("cancelled", context);
            let kept = rig.submit("kept");
            cancellation.cancel();
            let outcome = answered(cancelled).await;
            answered(kept).await.expect("success");
            if rig.in_place() != before + 1 {
                return false;
            }
            assert_eq!(outcome.expect_err("cancelled").code(), Code::Cancelled);
            assert_eq!(rig.take_executed().len(), 1);
            let counted = rig.statistics.snapshot();
            assert_eq!(counted.failures[FailureReason::Canceled as usize], 1);
            true
        },
    );
}

#[test]
fn what_was_accepted_is_answered_when_the_scheduler_closes_or_the_thread_ends() {
    let rig = Rig::start("");
    as_connection(|| async {
        rig.becomes_quick().await;
        let accepted = rig.submit("accepted");
        rig.scheduler.close();
        answered(accepted).await.expect("success");
    });
    let closed = |rig: &Rig| assert!(rig.scheduler.drain(Instant::now() + LONG));
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
