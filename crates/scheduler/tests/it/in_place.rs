//! Requests that are executed by the thread that brings them.

use std::{
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

/// More executions than it takes until they are on the spot.
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
            "panic" => panic!("asked to panic"),
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

    /// Sends one request after the other; whether one was executed on the spot.
    async fn becomes_quick(&self) -> bool {
        for _ in 0..ENOUGH {
            answered(self.submit("warm")).await.expect("success");
            if self.in_place() > 0 {
                return true;
            }
        }
        false
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

#[test]
fn a_quick_model_is_executed_by_the_thread_that_brings_the_requests_in_their_order() {
    as_connection(|| async {
        let rig = Rig::start("");
        assert!(rig.becomes_quick().await);
        rig.take_executed();
        let before = rig.in_place();
        let answers: Vec<Answer> = ["a", "b", "c"].map(|id| rig.submit(id)).into();
        assert_eq!(rig.in_place(), before, "the other tasks come first");
        for answer in answers {
            answered(answer).await.expect("success");
        }
        let own = thread::current().id();
        let expected = ["a", "b", "c"].map(|id| (own, vec![id.to_owned()]));
        assert_eq!(rig.take_executed(), expected);
        assert_eq!(rig.in_place(), before + 3);
        let counted = rig.statistics.snapshot();
        assert_eq!(counted.success.count, counted.execution_count);
        assert_eq!((counted.pending, rig.scheduler.in_flight()), (0, 0));
    });
}

#[test]
fn what_the_tasks_of_a_thread_bring_at_once_is_one_batch() {
    as_connection(|| async {
        let rig = Rig::start("dynamic_batching { preserve_ordering: true }");
        assert!(rig.becomes_quick().await);
        rig.take_executed();
        let answers: Vec<Answer> = ["a", "b", "c"].map(|id| rig.submit(id)).into();
        for answer in answers {
            answered(answer).await.expect("success");
        }
        assert_eq!(rig.take_executed().len(), 1);
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
                assert!(!rig.becomes_quick().await, "{case}");
            }
            assert_eq!(rig.in_place(), 0, "{case}");
        }
    });
    // A thread without such a task, however quick the model is.
    let rig = Rig::start("");
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    assert!(!runtime.block_on(rig.becomes_quick()));
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
        assert!(rig.becomes_quick().await);
        let before = rig.in_place();
        submit(1 << 20).await.expect("success");
        assert_eq!(rig.in_place(), before);
        let mut others = 0;
        while rig.in_place() == before {
            submit(1 << 20).await.expect("success");
            others += 1;
            assert!(others < ENOUGH, "by then it is known to be quick");
        }
    });
}

#[test]
fn a_model_that_takes_long_gets_its_thread_back_and_holds_up_no_connection_for_a_while() {
    as_connection(|| async {
        let rig = Rig::start("");
        assert!(rig.becomes_quick().await);
        let (slow, behind) = (rig.submit("slow"), rig.submit("behind"));
        answered(slow).await.expect("success");
        answered(behind).await.expect("success");
        let executed = rig.take_executed();
        let (by, ids) = executed.last().expect("executed");
        assert_eq!(ids[0], "behind");
        assert_ne!(*by, thread::current().id(), "the time of the turn is over");
        let before = rig.in_place();
        assert!(before > 0);
        for _ in 0..ENOUGH {
            answered(rig.submit("quick again")).await.expect("success");
        }
        assert_eq!(rig.in_place(), before);
    });
}

#[test]
fn an_instance_that_panics_is_restarted_by_its_thread() {
    as_connection(|| async {
        let rig = Rig::of("", 2, true, ExecutionRules::default());
        assert!(rig.becomes_quick().await);
        let before = rig.in_place();
        let (panicking, behind) = (rig.submit("panic"), rig.submit("behind"));
        let error = answered(panicking).await.expect_err("it panicked");
        assert_eq!(error.code(), Code::Internal);
        assert_eq!(rig.in_place(), before + 1);
        answered(behind).await.expect("success");
        let statistics = rig.statistics.clone();
        let restarted = move || until(|| statistics.snapshot().restarts == 1);
        thread::spawn(restarted).join().expect("it is restarted");
        assert!(rig.becomes_quick().await);
    });
}

#[test]
fn who_gives_up_before_the_turn_is_not_executed() {
    as_connection(|| async {
        let rig = Rig::start("");
        assert!(rig.becomes_quick().await);
        rig.take_executed();
        let context = RequestContext::new();
        let cancellation = context.cancellation.clone();
        let cancelled = rig.submit_in("cancelled", context);
        let kept = rig.submit("kept");
        cancellation.cancel();
        let error = answered(cancelled).await.expect_err("cancelled");
        assert_eq!(error.code(), Code::Cancelled);
        answered(kept).await.expect("success");
        assert_eq!(rig.take_executed().len(), 1);
        let counted = rig.statistics.snapshot();
        assert_eq!(counted.failures[FailureReason::Canceled as usize], 1);
    });
}

#[test]
fn what_was_accepted_is_answered_when_the_scheduler_closes_or_the_thread_ends() {
    let rig = Rig::start("");
    as_connection(|| async {
        assert!(rig.becomes_quick().await);
        let accepted = rig.submit("accepted");
        rig.scheduler.close();
        answered(accepted).await.expect("success");
    });
    let closed = |rig: &Rig| assert!(rig.scheduler.drain(Instant::now() + LONG));
    closed(&rig);
    let rig = Rig::start("");
    let mut left = None;
    as_connection(|| async {
        assert!(rig.becomes_quick().await);
        left = Some(rig.submit("left"));
    });
    let left = left.expect("submitted").blocking_recv().expect("a responder always answers");
    left.expect("by the instance's thread");
    closed(&rig);
}
