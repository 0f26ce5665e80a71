//! What instances execute before they are ready.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use galatea_backend::{
    Batch, InstanceSpec, Model, ModelInstance,
    testing::{instance_spec, model_config},
};
use galatea_config::ModelConfig;
use galatea_scheduler::{ExecutionRules, QueueScheduler, SchedulerSpec, TestHold, WarmupSample};
use galatea_telemetry::ModelStatistics;
use galatea_test_support::eventually;
use galatea_types::{Code, DataType, Error, Responder, Result, Tensor};

use crate::probe::{named, submit, wait};

/// Executes a batch of the instance of this name.
type Execute = dyn Fn(&str, &mut Batch) + Send + Sync;

/// The name of an instance, and the ids of the requests of a batch.
type Noted = (String, Vec<String>);

/// A model whose instances do what a test says, and note what they are given.
#[derive(Clone)]
struct Scripted {
    execute: Arc<Execute>,
    noted: Arc<Mutex<Vec<Noted>>>,
    made: Arc<Mutex<Vec<InstanceSpec>>>,
    statistics: Arc<ModelStatistics>,
}

struct ScriptedInstance(String, Scripted);

impl Model for Scripted {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        self.made.lock().expect("no panic").push(spec.clone());
        Ok(Box::new(ScriptedInstance(spec.name.clone(), self.clone())))
    }
}

impl ModelInstance for ScriptedInstance {
    fn execute(&mut self, batch: &mut Batch) {
        let ids = batch.requests().map(|request| request.id.clone()).collect();
        self.1.noted.lock().expect("no panic").push((self.0.clone(), ids));
        (self.1.execute)(&self.0, batch);
    }
}

fn answer(batch: &mut Batch) {
    (0..batch.len()).for_each(|index| batch.respond(index, Ok(Vec::new())));
}

fn config(max_batch_size: u32, more: &str) -> ModelConfig {
    model_config(&format!(
        "name: 'probe' backend: 'probe' max_batch_size: {max_batch_size}
         input {{ name: 'IN' data_type: TYPE_FP32 dims: -1 }} {more}"
    ))
}

fn sample(name: &str, batch_size: u32, count: u32) -> WarmupSample {
    let (name, request, added) = (name.to_owned(), named(name, 1), Vec::new());
    WarmupSample { name, request, added, batch_size, count }
}

impl Scripted {
    fn new(execute: impl Fn(&str, &mut Batch) + Send + Sync + 'static) -> Self {
        let (noted, made, statistics) = Default::default();
        Self { execute: Arc::new(execute), noted, made, statistics }
    }

    fn start(
        &self,
        config: ModelConfig,
        instances: usize,
        warm_up: Vec<WarmupSample>,
    ) -> Result<Arc<QueueScheduler>> {
        QueueScheduler::start(SchedulerSpec {
            config: Arc::new(config),
            version: 1,
            model: Arc::new(self.clone()),
            instances: (0..instances).map(|i| instance_spec("probe", i)).collect(),
            statistics: self.statistics.clone(),
            initial_states: Vec::new(),
            hold: TestHold::default(),
            starts_one_by_one: false,
            execution: ExecutionRules::default(),
            warm_up,
        })
    }

    /// The batches of an instance so far.
    fn batches(&self, instance: &str) -> Vec<Vec<String>> {
        let noted = self.noted.lock().expect("no panic");
        noted.iter().filter(|(name, _)| name == instance).map(|(_, ids)| ids.clone()).collect()
    }

    fn alarm_last(&self) {
        let made = self.made.lock().expect("no panic");
        made.last().expect("one was made").alarm.raise(Error::internal("its worker ended"));
    }
}

#[test]
fn every_instance_executes_every_sample_before_it_is_ready() {
    let model = Scripted::new(|_, batch| answer(batch));
    let samples = vec![sample("a", 3, 2), sample("b", 1, 1)];
    let scheduler = model.start(config(8, ""), 2, samples).expect("it starts");
    for instance in ["probe_0_0", "probe_0_1"] {
        assert_eq!(
            model.batches(instance),
            [vec!["a", "a", "a"], vec!["a", "a", "a"], vec!["b"]],
            "{instance}"
        );
    }
    let counted = model.statistics.snapshot();
    assert_eq!(
        (counted.success.count, counted.execution_count, counted.inference_count),
        (14, 6, 14)
    );
    assert_eq!((counted.pending, counted.queue.count), (0, 14));
    assert_eq!(galatea_scheduler::Scheduler::in_flight(&*scheduler), 0);
}

#[test]
fn a_model_without_batching_executes_samples_one_by_one() {
    let model = Scripted::new(|_, batch| answer(batch));
    let _scheduler = model.start(config(0, ""), 1, vec![sample("a", 2, 2)]).expect("it starts");
    assert_eq!(model.batches("probe_0_0"), [["a"], ["a"], ["a"], ["a"]]);
}

#[test]
fn a_failed_sample_fails_the_start_with_its_name() {
    let model = Scripted::new(|_, batch| {
        for index in 0..batch.len() {
            let bad = batch.request(index).is_some_and(|request| request.id == "bad");
            let error =
                || Error::internal(format!("no {index}")).with_source(Error::internal("why"));
            batch.respond(index, if bad { Err(error()) } else { Ok(Vec::new()) });
        }
    });
    let samples = vec![sample("good", 1, 1), sample("bad", 2, 3), sample("later", 1, 1)];
    let error = model.start(config(8, ""), 1, samples).err().expect("it fails");
    assert_eq!(error.message(), "failed to run warmup sample 'bad': no 0; no 1; ");
    assert_eq!(error.code(), Code::InvalidArg);
    assert!(error.with_causes().ends_with(": why"), "{}", error.with_causes());
    assert_eq!(model.batches("probe_0_0"), [vec!["good"], vec!["bad", "bad"]]);
}

#[test]
fn a_panic_or_a_missing_response_is_a_failure() {
    let panics = Scripted::new(|_, _| panic!("not warm"));
    let error = panics.start(config(8, ""), 1, vec![sample("a", 1, 1)]).err().expect("it fails");
    let text = "failed to run warmup sample 'a': instance 'probe_0_0' panicked: not warm; ";
    assert_eq!(error.message(), text);
    let mute = Scripted::new(|_, _| {});
    let error = mute.start(config(8, ""), 1, vec![sample("a", 1, 1)]).err().expect("it fails");
    assert!(error.message().starts_with("failed to run warmup sample 'a': "), "{error}");
}

const DECOUPLED: &str = "model_transaction_policy { decoupled: true }";

#[test]
fn warm_up_waits_for_the_end_of_a_stream() {
    let ended = Arc::new(AtomicUsize::new(0));
    let counted = ended.clone();
    let model = Scripted::new(move |_, batch| {
        for index in 0..batch.len() {
            let mut sender = batch.take(index).expect("not taken before").responder;
            let ended = counted.clone();
            thread::spawn(move || {
                (0..100).for_each(|_| sender.send(Ok(Default::default())));
                ended.fetch_add(1, Ordering::SeqCst);
                sender.finish(None);
            });
        }
    });
    let samples = vec![sample("a", 3, 2)];
    let scheduler = model.start(config(8, DECOUPLED), 1, samples).expect("it starts");
    assert_eq!(ended.load(Ordering::SeqCst), 6);
    let counted = model.statistics.snapshot();
    assert_eq!((counted.success.count, counted.execution_count), (6, 2));
    assert_eq!(galatea_scheduler::Scheduler::in_flight(&*scheduler), 0);
}

#[test]
fn the_number_of_reported_stream_errors_is_bounded() {
    let model = Scripted::new(|_, batch| {
        let mut sender = batch.take(0).expect("not taken before").responder;
        (0..1000).for_each(|_| sender.send(Err(Error::internal("no"))));
        sender.finish(None);
    });
    let started = model.start(config(8, DECOUPLED), 1, vec![sample("a", 1, 1)]);
    let error = started.err().expect("it fails");
    assert_eq!(error.message().matches("no; ").count(), 16, "{error}");
}

#[test]
fn an_added_instance_is_warmed_up_before_it_gets_requests() {
    let model = Scripted::new(|instance, batch| match instance {
        "probe_0_2" => batch.fail_all(&Error::internal("cold")),
        _ => answer(batch),
    });
    let scheduler = model.start(config(8, ""), 1, vec![sample("a", 1, 1)]).expect("it starts");
    scheduler.change_instances(vec![instance_spec("probe", 1)], &[]).expect("it is added");
    assert_eq!(model.batches("probe_0_1"), [["a"]]);
    let failed = scheduler.change_instances(vec![instance_spec("probe", 2)], &[]);
    let text = "failed to run warmup sample 'a': cold; ";
    assert_eq!(failed.expect_err("one fails").message(), text);
    assert_eq!(scheduler.instance_counts(), (2, 2), "nothing has changed");
}

const SEQUENCES: &str = "sequence_batching {
    control_input { name: 'START' control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 3, 4 ] } }
    control_input { name: 'END' control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 3, 4 ] } } iterative_sequence: true }";

#[test]
fn warm_up_starts_a_sequence_for_models_with_sequences() {
    let told = Arc::<Mutex<Vec<Vec<u8>>>>::default();
    let noted = told.clone();
    let model = Scripted::new(move |_, batch| {
        let request = batch.request(0).expect("never empty");
        let inputs = ["START", "END"].map(|name| request.input(name).expect("it has it"));
        let values = inputs.iter().map(|input| input.host().expect("host memory")[0]).collect();
        noted.lock().expect("no panic").push(values);
        // The next step of a real sequence.
        (0..batch.len()).for_each(|index| batch.execute_again(index));
    });
    let end = Tensor::new("END", DataType::Int32, [1, 1], 4_i32.to_le_bytes().to_vec());
    let samples = vec![sample("a", 2, 1), WarmupSample { added: vec![end], ..sample("b", 1, 1) }];
    let _scheduler = model.start(config(8, SEQUENCES), 1, samples).expect("it starts");
    assert_eq!(*told.lock().expect("no panic"), [[4, 3], [4, 4]]);
    assert_eq!(model.batches("probe_0_0"), [vec!["a", "a"], vec!["b"]]);
}

#[test]
fn a_restarted_instance_is_warmed_up_until_it_succeeds() {
    let fails = Arc::new(AtomicBool::new(false));
    let failing = fails.clone();
    let model = Scripted::new(move |_, batch| match failing.swap(false, Ordering::SeqCst) {
        true => batch.fail_all(&Error::internal("cold")),
        false => answer(batch),
    });
    let scheduler = model.start(config(8, ""), 1, vec![sample("a", 1, 1)]).expect("it starts");
    fails.store(true, Ordering::SeqCst);
    model.alarm_last();
    eventually("it is warmed up again", || model.batches("probe_0_0").len() == 3);
    eventually("an instance works", || scheduler.has_working_instance());
    let (responder, answer) = Responder::unary();
    submit(&scheduler, named("request", 1), responder);
    wait(answer).expect("success");
    assert_eq!(model.batches("probe_0_0"), [["a"], ["a"], ["a"], ["request"]]);
    let made = model.made.lock().expect("no panic").len();
    assert_eq!((made, model.statistics.snapshot().restarts), (3, 1), "the second one stayed cold");
}
