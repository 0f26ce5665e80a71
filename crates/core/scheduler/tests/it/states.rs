//! The states that sequences keep, through the whole scheduler: their memory, and who waits for them.

use std::{
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use galatea_backend::{
    Batch, InstanceAlarm, InstanceSpec, Model, ModelInstance, TakenRequest,
    testing::{LateAnswers, instance_spec, model_config, prepared},
};
use galatea_scheduler::{
    ExecutionRules, QueueScheduler, Scheduler, SchedulerSpec, SequenceMemory, TestHold,
};
use galatea_types::{
    Code, CorrelationId, DataType, Error, InferRequest, MemoryBudget, RequestContext, Responder,
    Response, ResponseSink, Result, Tensor,
};

const BLOCK: usize = 1 << 10;
/// Longer than anything takes.
const DAY: Duration = Duration::from_hours(24);

/// Each step makes the state of its sequence longer by a block.
struct Growing;

impl Model for Growing {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(Growing))
    }
}

impl ModelInstance for Growing {
    fn execute(&mut self, batch: &mut Batch) {
        let had = batch.request(0).and_then(|r| r.inputs.last()).map_or(0, |t| t.data.len());
        let length = had / BLOCK * BLOCK + BLOCK;
        let state = Tensor::new("NEXT", DataType::Uint8, [length as i64], vec![1; length]);
        batch.respond(0, Ok(vec![state]));
    }
}

struct Sender(mpsc::Sender<Result<()>>);

impl ResponseSink for Sender {
    fn respond(&mut self, response: Response) {
        if let Some(result) = response.result {
            let _ = self.0.send(result.map(drop));
        }
    }
}

/// The model, which answers from its batch or from another thread.
fn growing(answers_later: bool) -> Arc<dyn Model> {
    match answers_later {
        true => Arc::new(LateAnswers(Box::new(Growing) as Box<dyn Model>)),
        false => Arc::new(Growing),
    }
}

fn start(memory: &Arc<SequenceMemory>, answers_later: bool) -> Arc<QueueScheduler> {
    start_model(growing(answers_later), "oldest { max_candidate_sequences: 1000 }", memory)
}

fn start_model(
    model: Arc<dyn Model>,
    strategy: &str,
    memory: &Arc<SequenceMemory>,
) -> Arc<QueueScheduler> {
    let config = model_config(&format!(
        "name: 'm' backend: 'm' sequence_batching {{ {strategy}
         max_sequence_idle_microseconds: 3600000000
         state {{ input_name: 'LAST' output_name: 'NEXT' data_type: TYPE_UINT8 dims: -1 }} }}"
    ));
    let scheduler = QueueScheduler::start(SchedulerSpec {
        config: Arc::new(config),
        version: 1,
        model,
        instances: vec![instance_spec("m", 0)],
        statistics: Arc::default(),
        initial_states: vec![Tensor::new("LAST", DataType::Uint8, [1], vec![0])],
        hold: TestHold::default(),
        starts_one_by_one: false,
        warm_up: Vec::new(),
        execution: ExecutionRules { sequence_memory: memory.clone(), ..ExecutionRules::default() },
    });
    scheduler.expect("it starts")
}

/// Submits a request of this sequence. Its answer comes to the receiver.
fn submit(
    scheduler: &QueueScheduler,
    sequence: u64,
    sequence_start: bool,
) -> Result<mpsc::Receiver<Result<()>>> {
    let request = InferRequest {
        correlation_id: CorrelationId::Number(sequence),
        sequence_start,
        ..InferRequest::new("m")
    };
    let (answer, answers) = mpsc::channel();
    let responder = Responder::calling(Sender(answer));
    let submitted = scheduler.submit(prepared(request, 1), RequestContext::new(), responder);
    submitted.map_err(galatea_types::Refused::into_error)?;
    Ok(answers)
}

/// The outcome of one request of this sequence, which rests by then.
fn ask(scheduler: &QueueScheduler, sequence: u64, sequence_start: bool) -> Result<()> {
    let answers = submit(scheduler, sequence, sequence_start)?;
    let answer = answers.recv().unwrap_or_else(|_| Err(Error::internal("no answer")));
    assert!(scheduler.wait_until_idle(Instant::now() + DAY), "an answered request goes on");
    answer
}

#[test]
fn states_stay_within_half_of_the_budget_and_the_oldest_idle_ones_are_evicted() {
    let budget = MemoryBudget::new(20 * BLOCK);
    let memory = Arc::new(SequenceMemory::of(budget.clone()));
    let models = [start(&memory, false), start(&memory, true)];
    for number in 1..=100 {
        ask(&models[number as usize % 2], number, true).expect("it begins");
        assert!(budget.used() <= 10 * BLOCK, "{} bytes", budget.used());
    }
    assert_eq!((memory.metrics().gave_way, memory.metrics().used_bytes), (90, 10 * BLOCK));
    let error = ask(&models[0], 90, false).expect_err("it gave way");
    assert_eq!(error.code(), Code::Unavailable);
    for part in ["sequence 90", "model 'm'", "with the START flag", "--memory-budget"] {
        assert!(error.message().contains(part), "{error}");
    }
    ask(&models[1], 91, true).expect("the oldest that is left goes on");
    ask(&models[0], 90, true).expect("it begins again");
    drop(models);
}

#[test]
fn a_state_that_grows_beyond_its_memory_fails_its_request_and_is_kept() {
    [false, true].into_iter().for_each(check_growth);
}

fn check_growth(answers_later: bool) {
    let budget = MemoryBudget::new(20 * BLOCK);
    let memory = Arc::new(SequenceMemory::of(budget.clone()));
    let model = start(&memory, answers_later);
    ask(&model, 8, true).expect("another one");
    for step in 0..10 {
        ask(&model, 7, step == 0).expect("there is room");
    }
    assert_eq!(memory.metrics().gave_way, 1, "the other one made room");
    for _ in 0..3 {
        let error = ask(&model, 7, false).expect_err("too long");
        assert_eq!(error.code(), Code::Exhausted);
        for part in ["sequence 7", "model 'm'", "10240 of the 10240 bytes", "--memory-budget"] {
            assert!(error.message().contains(part), "{error}");
        }
        assert_eq!((budget.used(), memory.metrics().gave_way), (10 * BLOCK, 1));
    }
    assert_eq!(memory.metrics().refused, 3);
    ask(&model, 7, true).expect("it begins again");
    assert_eq!(budget.used(), BLOCK);
}

#[test]
fn the_memory_of_states_is_released_with_their_model() {
    let budget = MemoryBudget::new(20 * BLOCK);
    let memory = Arc::new(SequenceMemory::of(budget.clone()));
    let model = start(&memory, true);
    (1..5).for_each(|number| ask(&model, number, true).expect("it begins"));
    assert!(model.wait_until_idle(Instant::now() + DAY));
    assert_eq!(budget.used(), 4 * BLOCK);
    model.expect_no_more();
    assert_eq!(budget.used(), 0);
}

/// Hands all its requests over to the test, and with each instance what tells that it broke.
struct HandedOut {
    taken: mpsc::Sender<TakenRequest>,
    made: mpsc::Sender<InstanceAlarm>,
}

struct HandedOutInstance(mpsc::Sender<TakenRequest>);

impl Model for HandedOut {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let _ = self.made.send(spec.alarm.clone());
        Ok(Box::new(HandedOutInstance(self.taken.clone())))
    }

    fn may_answer_later(&self) -> bool {
        true
    }
}

impl ModelInstance for HandedOutInstance {
    fn execute(&mut self, batch: &mut Batch) {
        for index in 0..batch.len() {
            batch.take(index).into_iter().for_each(|taken| {
                let _ = self.0.send(taken);
            });
        }
    }
}

struct Desk {
    scheduler: Arc<QueueScheduler>,
    taken: mpsc::Receiver<TakenRequest>,
    made: mpsc::Receiver<InstanceAlarm>,
    answers: Vec<mpsc::Receiver<Result<()>>>,
}

impl Desk {
    fn open(strategy: &str) -> Self {
        let ((taken, requests), (made, instances)) = (mpsc::channel(), mpsc::channel());
        let scheduler = start_model(Arc::new(HandedOut { taken, made }), strategy, &Arc::default());
        Self { scheduler, taken: requests, made: instances, answers: Vec::new() }
    }

    fn submit(&mut self, sequence: u64, is_start: bool) {
        self.answers.push(submit(&self.scheduler, sequence, is_start).expect("it is accepted"));
    }

    /// Waits for the next request that is executed: its sequence, and the state that it has.
    fn next(&self) -> (u64, Vec<u8>, TakenRequest) {
        let taken = self.taken.recv_timeout(DAY).expect("it happens");
        let CorrelationId::Number(sequence) = taken.request.correlation_id else {
            panic!("no sequence")
        };
        let state = taken.request.inputs.last().expect("a state");
        (sequence, state.host().expect("host memory").to_vec(), taken)
    }
}

fn leave(mut taken: TakenRequest, state: u8) {
    let state = Tensor::new("NEXT", DataType::Uint8, [1], vec![state]);
    taken.set_state(state).expect("it is kept");
    taken.responder.finish(Some(Ok(Default::default())));
}

#[test]
fn the_next_request_of_a_sequence_waits_for_the_previous_states() {
    let mut desk = Desk::open("oldest { max_candidate_sequences: 8 }");
    desk.submit(7, true);
    desk.submit(7, false);
    desk.submit(8, true);
    let (first, _, seven) = desk.next();
    // Had the second one of sequence 7 not waited, it would come first.
    let (second, _, eight) = desk.next();
    assert_eq!((first, second), (7, 8));
    leave(seven, 5);
    let (third, state, seven) = desk.next();
    assert_eq!((third, state), (7, vec![5]));
    // A queue that is closed goes on in the same way, while other requests are not answered yet.
    desk.submit(7, false);
    desk.scheduler.close();
    leave(seven, 6);
    let (fourth, state, seven) = desk.next();
    assert_eq!((fourth, state), (7, vec![6]));
    drop(seven);
    leave(eight, 1);
    let answers = desk.answers.iter().map(|answer| answer.recv().expect("an answer").is_ok());
    assert_eq!(answers.collect::<Vec<_>>(), [true, true, true, false], "the last one was dropped");
    assert!(desk.scheduler.drain(Instant::now() + DAY));
}

#[test]
fn a_direct_slot_also_waits_for_the_previous_states() {
    let mut desk = Desk::open("direct { }");
    desk.submit(7, true);
    desk.submit(7, false);
    let (_, _, seven) = desk.next();
    assert!(desk.taken.try_recv().is_err());
    leave(seven, 5);
    let (_, state, seven) = desk.next();
    assert_eq!(state, [5]);
    leave(seven, 6);
}

#[test]
fn states_returned_after_an_instance_failure_are_discarded() {
    let mut desk = Desk::open("oldest { max_candidate_sequences: 1 }");
    desk.submit(7, true);
    let (_, _, lost) = desk.next();
    let alarm = desk.made.recv_timeout(DAY).expect("an instance");
    alarm.raise(Error::internal("its worker ended"));
    desk.made.recv_timeout(DAY).expect("another instance");
    // The slot has another sequence, of which a request is executed.
    desk.submit(8, true);
    desk.submit(8, false);
    let (sequence, _, eight) = desk.next();
    assert_eq!(sequence, 8);
    leave(lost, 9);
    assert!(desk.taken.try_recv().is_err(), "the second one waits for the first");
    leave(eight, 3);
    let (sequence, state, eight) = desk.next();
    assert_eq!((sequence, state), (8, vec![3]));
    leave(eight, 4);
}
