//! The whole scheduler under the model checker: groups of instances with queues of their own.

use std::{
    sync::Mutex as StdMutex,
    time::{Duration, Instant},
};

use galatea_backend::{
    Batch, ModelInstance, TakenRequest,
    testing::{instance_spec, model_config, prepared, request},
};
use galatea_types::{LockExt as _, Response, ResponseSink};

use super::*;

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

/// A client that keeps a stream open holds up a change of the instances, but not for ever; its instance goes with it.
#[test]
fn an_open_stream_does_not_hold_up_a_change_for_ever() {
    let run = || {
        let (model, answered) = (Keeping::default(), Arc::<StdMutex<usize>>::default());
        let kept = model.0.clone();
        let config = "name: 'm' backend: 'm' model_transaction_policy { decoupled: true }";
        let scheduler = QueueScheduler::start(SchedulerSpec {
            config: Arc::new(model_config(config)),
            version: 1,
            model: Arc::new(model),
            instances: vec![instance_spec("m", 0)],
            statistics: Arc::default(),
            hold_until_queued: 0,
            starts_one_by_one: false,
            execution: ExecutionRules::default(),
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
    shuttle::check_random(run, 300);
}

/// By the first letter of the id.
fn route(request: &InferRequest) -> usize {
    usize::from(request.id.starts_with('b'))
}

#[test]
fn each_group_of_instances_serves_its_own_queue() {
    let run = || {
        let (model, answered) = (Noting::default(), Arc::<StdMutex<usize>>::default());
        let executed = model.0.clone();
        let spec = SchedulerSpec {
            config: Arc::new(model_config("name: 'm' backend: 'm'")),
            version: 1,
            model: Arc::new(model),
            instances: Vec::new(),
            statistics: Arc::default(),
            hold_until_queued: 0,
            starts_one_by_one: false,
            execution: ExecutionRules::default(),
        };
        let groups =
            vec![vec![instance_spec("a", 0)], vec![instance_spec("b", 0), instance_spec("b", 1)]];
        let scheduler = QueueScheduler::start_groups(spec, groups, route).expect("it starts");
        for id in ["a1", "b1", "a2", "b2", "b3"] {
            let request = prepared(InferRequest { id: id.to_owned(), ..InferRequest::new("m") }, 1);
            let responder = Responder::calling(Answered(answered.clone()));
            assert!(scheduler.submit(request, RequestContext::new(), responder).is_ok());
        }
        assert!(scheduler.drain(Instant::now() + Duration::from_secs(86400)));
        assert_eq!((*answered.lock_unpoisoned(), scheduler.in_flight()), (5, 0));
        let executed = executed.lock_unpoisoned();
        let on =
            |name: &'static str| executed.iter().filter(move |line| line.contains(name)).cloned();
        assert_eq!(on("on a").collect::<Vec<_>>(), ["a1 on a_0_0", "a2 on a_0_0"]);
        let mut ids: Vec<_> = on("on b").map(|line| line[..2].to_owned()).collect();
        ids.sort_unstable();
        assert_eq!(ids, ["b1", "b2", "b3"]);
    };
    shuttle::check_random(run, 300);
}

#[test]
fn a_request_without_a_queue_is_refused() {
    shuttle::check_random(
        || {
            let spec = SchedulerSpec {
                config: Arc::new(model_config("name: 'm' backend: 'm'")),
                version: 1,
                model: Arc::new(Noting::default()),
                instances: Vec::new(),
                statistics: Arc::default(),
                hold_until_queued: 0,
                starts_one_by_one: false,
            execution: ExecutionRules::default(),
            };
            let groups = vec![vec![instance_spec("a", 0)]];
            let scheduler = QueueScheduler::start_groups(spec, groups, |_| 1).expect("it starts");
            let submitted = scheduler.submit(
                request("m", 1, Vec::new()),
                RequestContext::new(),
                Responder::spent(),
            );
            assert_eq!(
                submitted.expect_err("refused").into_error().message(),
                "no queue takes the request"
            );
        },
        10,
    );
}

#[test]
fn a_request_without_inputs_has_no_batch_size() {
    shuttle::check_random(
        || {
            let statistics = Arc::<ModelStatistics>::default();
            let spec = SchedulerSpec {
                config: Arc::new(model_config("name: 'm' backend: 'm' max_batch_size: 4")),
                version: 1,
                model: Arc::new(Noting::default()),
                instances: Vec::new(),
                statistics: statistics.clone(),
                hold_until_queued: 0,
                starts_one_by_one: false,
            execution: ExecutionRules::default(),
            };
            let groups = vec![vec![instance_spec("a", 0)]];
            let scheduler = QueueScheduler::start_groups(spec, groups, |_| 0).expect("it starts");
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
