//! The whole scheduler under the model checker.

use std::{
    sync::Mutex as StdMutex,
    time::{Duration, Instant},
};

use galatea_backend::{
    Batch, ModelInstance, TakenRequest,
    testing::{instance_spec, model_config, prepared, request},
};
use galatea_types::{CorrelationId, InferRequest, LockExt as _, Response, ResponseSink};

use super::*;
use crate::RateLimiter;

/// Instances that note which requests they executed.
#[derive(Default)]
struct Noting(Arc<StdMutex<Vec<String>>>);

struct NotingInstance {
    name: String,
    executed: Arc<StdMutex<Vec<String>>>,
}

impl Model for Noting {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(NotingInstance { name: spec.name.clone(), executed: self.0.clone() }))
    }
}

impl ModelInstance for NotingInstance {
    fn execute(&mut self, batch: &mut Batch) {
        for index in 0..batch.len() {
            let id = &batch.request(index).expect("in range").id;
            self.executed.lock_unpoisoned().push(format!("{id} on {}", self.name));
            batch.respond(index, Ok(Vec::new()));
        }
    }
}

struct Answered(Arc<StdMutex<usize>>);

impl ResponseSink for Answered {
    fn respond(&mut self, response: Response) {
        assert!(matches!(response, Response { result: Some(Ok(_)), is_final: true }));
        *self.0.lock_unpoisoned() += 1;
    }
}

/// The texts of errors.
struct Failed(Arc<StdMutex<Vec<String>>>);

impl ResponseSink for Failed {
    fn respond(&mut self, response: Response) {
        let result = response.result.expect("an answer");
        self.0.lock_unpoisoned().push(result.expect_err("an error").message().to_owned());
    }
}

/// Takes requests out of their batch, and keeps them.
#[derive(Default)]
struct Keeping(Arc<StdMutex<Vec<TakenRequest>>>);

struct KeepingInstance(Arc<StdMutex<Vec<TakenRequest>>>);

impl Model for Keeping {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(KeepingInstance(self.0.clone())))
    }
}

impl ModelInstance for KeepingInstance {
    fn execute(&mut self, batch: &mut Batch) {
        let taken = (0..batch.len()).map(|index| batch.take(index).expect("not taken before"));
        self.0.lock_unpoisoned().extend(taken);
    }
}

/// An open stream delays a change of instances only up to a limit; its instance ends with it.
#[test]
fn an_open_stream_does_not_block_an_instance_change_for_ever() {
    let run = || {
        let (model, answered) = (Keeping::default(), Arc::<StdMutex<usize>>::default());
        let kept = model.0.clone();
        let config = "name: 'm' backend: 'm' model_transaction_policy { decoupled: true }";
        let scheduler = QueueScheduler::start(SchedulerSpec {
            config: Arc::new(model_config(config)),
            ..spec(model)
        });
        let scheduler = scheduler.expect("it starts");
        let request = prepared(InferRequest::new("m"), 1);
        let responder = Responder::calling(Answered(answered.clone()));
        assert!(scheduler.submit(request, RequestContext::new(), responder).is_ok());
        while kept.lock_unpoisoned().is_empty() {
            shuttle::thread::yield_now();
        }
        scheduler.change_instances(vec![instance_spec("m", 1)], &[0]).expect("it starts");
        let names: Vec<_> = scheduler.instances().into_iter().map(|spec| spec.name).collect();
        assert_eq!((&*names, scheduler.in_flight()), (&["m_0_1".to_owned()][..], 1));
        let taken = kept.lock_unpoisoned().pop().expect("kept");
        taken.responder.finish(Some(Ok(Default::default())));
        assert!(scheduler.drain(Instant::now() + Duration::from_secs(86400)));
        assert_eq!(*answered.lock_unpoisoned(), 1);
    };
    galatea_test_support::interleavings::check_random(run, 300);
}

/// Each instance has two slots; one instance executes all requests of a sequence in order.
#[test]
fn each_sequence_is_executed_by_one_instance_in_order() {
    galatea_test_support::interleavings::check_random(
        || run_sequences(ExecutionRules::default(), ""),
        300,
    );
}

/// Only one instance may execute at a time, and it cannot take the other's requests.
#[test]
fn sequences_wait_for_the_permit_of_their_instance() {
    let limiter = "rate_limiter { resources { name: 'R' count: 1 } }";
    let run = move || {
        let rate_limiter = Some(RateLimiter::new(Vec::new()));
        run_sequences(ExecutionRules { rate_limiter, ..ExecutionRules::default() }, limiter);
    };
    galatea_test_support::interleavings::check_random(run, 300);
    galatea_test_support::interleavings::check_pct(run, 300, 3);
}

fn run_sequences(execution: ExecutionRules, of_group: &str) {
    let (model, answered) = (Noting::default(), Arc::<StdMutex<usize>>::default());
    let executed = model.0.clone();
    let config = model_config(&format!(
        "name: 'm' backend: 'm' sequence_batching {{}} instance_group {{ count: 2 {of_group} }}"
    ));
    let group = Arc::new(config.instance_groups()[0].clone());
    let instance = |index| InstanceSpec { group: group.clone(), ..instance_spec("a", index) };
    let scheduler = QueueScheduler::start(SchedulerSpec {
        config: Arc::new(config),
        instances: vec![instance(0), instance(1)],
        execution,
        ..spec(model)
    });
    let scheduler = scheduler.expect("it starts");
    let ids = ["a1s", "b1s", "c1s", "a2", "b2e", "c2e", "a3e"];
    for id in ids {
        let request = prepared(
            InferRequest {
                id: id.to_owned(),
                correlation_id: CorrelationId::Text(id[..1].to_owned()),
                sequence_start: id.contains('s'),
                sequence_end: id.contains('e'),
                ..InferRequest::new("m")
            },
            1,
        );
        let responder = Responder::calling(Answered(answered.clone()));
        assert!(scheduler.submit(request, RequestContext::new(), responder).is_ok());
    }
    assert!(scheduler.drain(Instant::now() + Duration::from_secs(86400)));
    assert_eq!((*answered.lock_unpoisoned(), scheduler.in_flight()), (ids.len(), 0));
    let executed = executed.lock_unpoisoned();
    for sequence in ["a", "b", "c"] {
        let of = |line: &&String| line.starts_with(sequence);
        let lines: Vec<_> = executed.iter().filter(of).collect();
        let numbers: Vec<_> = lines.iter().map(|line| &line[1..2]).collect();
        assert!(numbers.is_sorted() && numbers.len() == if sequence == "a" { 3 } else { 2 });
        let instance = |line: &String| line.split_once(" on ").map(|(_, on)| on.to_owned());
        assert!(lines.iter().all(|line| instance(line) == instance(lines[0])), "{lines:?}");
    }
}

#[test]
fn a_request_without_a_valid_sequence_is_refused() {
    galatea_test_support::interleavings::check_random(
        || {
            let config =
                "name: 'm' backend: 'm' max_batch_size: 4 sequence_batching { control_input {
               name: 'ID' control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32 } } }";
            let scheduler = QueueScheduler::start(SchedulerSpec {
                config: Arc::new(model_config(config)),
                ..spec(Noting::default())
            });
            let scheduler = scheduler.expect("it starts");
            let refusal = |correlation_id, batch_size| {
                let tensor =
                    galatea_types::Tensor::new("x", galatea_types::DataType::Int8, [1], vec![0]);
                let request = InferRequest {
                    correlation_id,
                    sequence_start: true,
                    inputs: vec![tensor],
                    ..InferRequest::new("m")
                };
                let request = prepared(request, batch_size);
                let refused = scheduler.submit(request, RequestContext::new(), Responder::spent());
                refused.expect_err("refused").into_error().message().to_owned()
            };
            let refusals = [
                (CorrelationId::None, 1, "must specify a non-zero or non-empty correlation ID"),
                (CorrelationId::Number(1), 2, "must specify batch-size 1 due to"),
                (CorrelationId::Number(1 << 31), 1, "correlation ID '2147483648' of the request"),
                (
                    CorrelationId::Text("a".to_owned()),
                    1,
                    "is not of type INT32, which the model takes as",
                ),
            ];
            for (id, batch_size, text) in refusals {
                let refusal = refusal(id, batch_size);
                assert!(refusal.contains(text), "{refusal}");
            }
        },
        10,
    );
}

/// One instance.
fn spec(model: impl Model + 'static) -> SchedulerSpec {
    SchedulerSpec {
        config: Arc::new(model_config("name: 'm' backend: 'm'")),
        version: 1,
        model: Arc::new(model),
        instances: vec![instance_spec("m", 0)],
        statistics: Arc::default(),
        initial_states: Vec::new(),
        hold: TestHold::default(),
        starts_one_by_one: false,
        warm_up: Vec::new(),
        execution: ExecutionRules::default(),
    }
}

#[test]
fn a_request_without_inputs_has_no_batch_size() {
    galatea_test_support::interleavings::check_random(
        || {
            let statistics = Arc::<ModelStatistics>::default();
            let scheduler = QueueScheduler::start(SchedulerSpec {
                config: Arc::new(model_config("name: 'm' backend: 'm' max_batch_size: 4")),
                statistics: statistics.clone(),
                ..spec(Noting::default())
            });
            let scheduler = scheduler.expect("it starts");
            let answered = Arc::<StdMutex<Vec<String>>>::default();
            let responder = Responder::calling(Failed(answered.clone()));
            let request = request("m", 1, Vec::new());
            assert!(scheduler.submit(request, RequestContext::new(), responder).is_ok());
            assert_eq!(
                *answered.lock_unpoisoned(),
                ["[request id: <id_unknown>] out of bounds index 0: request has 0 inputs"]
            );
            let counted = statistics.snapshot();
            assert_eq!((counted.failures, counted.execution_count), ([0, 0, 1, 0], 0));
        },
        10,
    );
}
