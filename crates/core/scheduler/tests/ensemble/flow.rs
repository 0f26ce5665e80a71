//! Which step runs when, with what.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use galatea_config::RawModelConfig;
use galatea_scheduler::Scheduler as _;
use galatea_test_support::eventually;
use galatea_types::{
    Cause, CorrelationId, Observer, Origin, ParameterValue, RequestContext, Responder, Tensor,
    Timeline,
};

use crate::rig::{Queue, StepSetup, build, ensemble, request, response, step, tensor, text};

fn batching(size: i32) -> impl FnOnce(&mut RawModelConfig) {
    move |config| config.max_batch_size = size
}

#[test]
fn a_step_runs_as_soon_as_its_inputs_exist() {
    let (a, b, c) = (Queue::default(), Queue::default(), Queue::default());
    let rig = ensemble(
        "IN",
        "OUT",
        vec![
            step("c", "X=left Y=right", "Z=OUT").queued(&c),
            step("a", "X=IN", "Y=left").queued(&a),
            step("b", "X=IN", "Y=right").queued(&b),
        ],
    );
    let answer = rig.ask(vec![tensor("IN", b"in")]);
    assert_eq!((a.len(), b.len(), c.len()), (1, 1, 0), "independent steps run side by side");
    b.answer(vec![tensor("Y", b"from b")]);
    assert_eq!(c.len(), 0);
    a.answer(vec![tensor("Y", b"from a")]);
    let asked = c.answer(vec![tensor("Z", b"done")]);
    assert_eq!(asked.inputs.iter().map(text).collect::<String>(), "from afrom b");
    let answer = answer.only().expect("an answer");
    assert_eq!((&*answer.model_name, answer.model_version), ("ens", 3));
    assert_eq!((&*answer.outputs[0].name, text(&answer.outputs[0])), ("OUT", "done".to_owned()));
    let s = rig.statistics();
    assert_eq!((s.success.count, s.inference_count, s.execution_count, s.fail.count), (1, 1, 1, 0));
}

#[test]
fn tensors_are_passed_on_without_copies() {
    let (a, b) = (Queue::default(), Queue::default());
    let rig = ensemble(
        "IN",
        "OUT",
        vec![step("a", "X=IN X2=IN", "Y=mid").queued(&a), step("b", "X=mid", "Y=OUT").queued(&b)],
    );
    let input = tensor("IN", b"input");
    let answer = rig.ask(vec![input.clone()]);
    let made = tensor("Y", b"made by a");
    let asked = a.answer(vec![made.clone()]);
    let names: Vec<&str> = asked.inputs.iter().map(|t| &*t.name).collect();
    assert_eq!(names, ["X", "X2"]);
    assert!(
        asked.inputs.iter().all(|t| t.host().expect("host memory").as_ptr()
            == input.host().expect("host memory").as_ptr())
    );
    let asked = b.answer(vec![tensor("Y", b"")]);
    assert_eq!(
        asked.inputs[0].host().expect("host memory").as_ptr(),
        made.host().expect("host memory").as_ptr()
    );
    answer.only().expect("an answer");
}

#[test]
fn every_step_gets_the_clients_parameters() {
    let a = Queue::default();
    let rig = ensemble("IN", "OUT", vec![step("a", "X=IN", "Y=OUT").queued(&a)]);
    let mut asked = request(vec![tensor("IN", b"1")]);
    asked.id = "id".to_owned();
    asked.parameters = vec![("p".to_owned(), ParameterValue::Int(7))];
    asked.priority = 2;
    asked.correlation_id = CorrelationId::Number(9);
    asked.sequence_start = true;
    asked.timeout = Some(Duration::from_secs(3600));
    let received = rig.clock.now();
    rig.clock.advance(Duration::from_secs(1));
    let context = || RequestContext::received_at(received);
    let late = {
        let mut late = asked.clone();
        late.timeout = Some(Duration::from_nanos(1));
        late
    };
    let answer = rig.submit_in(asked, 1, context());
    let (got, responder) = a.take();
    assert_eq!(
        (got.id.as_str(), got.priority, got.sequence_start, got.sequence_end),
        ("id", 2, true, false)
    );
    assert_eq!(got.parameters, [("p".to_owned(), ParameterValue::Int(7))]);
    assert_eq!(got.correlation_id, CorrelationId::Number(9));
    assert_eq!(got.timeout, Some(Duration::from_secs(3599)), "a second has passed");
    assert!(got.outputs.is_empty() && !got.context.cancellation.is_cancelled());
    responder.finish(Ok(response(vec![tensor("Y", b"2")])));
    let answer = answer.only().expect("an answer");
    assert_eq!(answer.id, "id");
    let sequence = [
        ("sequence_id".to_owned(), ParameterValue::Int(9)),
        ("sequence_start".to_owned(), ParameterValue::Bool(true)),
        ("sequence_end".to_owned(), ParameterValue::Bool(false)),
    ];
    assert_eq!(answer.parameters, sequence);
    let late_context = context();
    let cancellation = late_context.cancellation.clone();
    let _answer = rig.submit_in(late, 1, late_context);
    let (got, responder) = a.take();
    assert_eq!(got.timeout, Some(Duration::from_micros(1)), "0 would be none at all");
    assert!(!got.context.cancellation.is_cancelled());
    cancellation.cancel();
    assert!(got.context.cancellation.is_cancelled() && responder.is_closed());
}

#[test]
fn a_step_may_change_the_sequence_id_for_later_steps() {
    let (a, b) = (Queue::default(), Queue::default());
    let steps = vec![step("a", "X=IN", "Y=mid").queued(&a), step("b", "X=mid", "Y=OUT").queued(&b)];
    let rig = ensemble("IN", "OUT", steps);
    let answer = rig.ask(vec![tensor("IN", b"1")]);
    let (_, responder) = a.take();
    let mut answer_of_step = response(vec![tensor("Y", b"2")]);
    answer_of_step.parameters = vec![
        ("sequence_id".to_owned(), ParameterValue::String("s".to_owned())),
        ("sequence_end".to_owned(), ParameterValue::Bool(true)),
        ("other".to_owned(), ParameterValue::Bool(true)),
    ];
    responder.finish(Ok(answer_of_step));
    let asked = b.answer(vec![tensor("Y", b"3")]);
    assert_eq!(asked.correlation_id, CorrelationId::Text("s".to_owned()));
    assert!(asked.sequence_end && !asked.sequence_start);
    let answer = answer.only().expect("an answer");
    assert_eq!(answer.parameters[0].1, ParameterValue::String("s".to_owned()));
    assert_eq!(answer.parameters.len(), 3);
}

#[test]
fn steps_without_requested_outputs_are_skipped() {
    let (a, b) = (Queue::default(), Queue::default());
    let steps = vec![
        step("a", "X=IN", "Y=one Z=two").queued(&a),
        step("b", "X=one", "Y=OUT1").queued(&b),
        step("c", "X=two", "Y=OUT2"),
    ];
    let rig = ensemble("IN", "OUT1 OUT2", steps);
    let mut asked = request(vec![tensor("IN", b"1")]);
    asked.outputs = vec!["OUT2".into()];
    let answer = rig.submit(asked);
    let asked = a.answer(vec![tensor("Z", b"2")]);
    assert_eq!(asked.outputs, ["Z".into()]);
    assert_eq!(b.len(), 0);
    let answer = answer.only().expect("an answer");
    assert_eq!((answer.outputs.len(), &*answer.outputs[0].name), (1, "OUT2"));
    let answer = rig.ask(vec![tensor("IN", b"1")]);
    let asked = a.answer(vec![tensor("Z", b"two"), tensor("Y", b"one")]);
    assert!(asked.outputs.is_empty(), "all of them");
    b.answer(vec![tensor("Y", b"one")]);
    let answer = answer.only().expect("an answer");
    let names: Vec<&str> = answer.outputs.iter().map(|t| &*t.name).collect();
    assert_eq!(names, ["OUT1", "OUT2"], "in the order of the configuration");
}

#[test]
fn optional_tensors_may_be_missing() {
    let (a, b) = (Queue::default(), Queue::default());
    let steps = vec![
        step("a", "X=IN Y=MAYBE", "Z=mid W=extra").queued(&a),
        step("b", "X=mid Y=extra", "Z=OUT").queued(&b),
    ];
    let rig = ensemble("IN MAYBE?", "OUT", steps);
    let answer = rig.ask(vec![tensor("IN", b"1")]);
    let asked = a.answer(vec![tensor("Z", b"2")]);
    assert_eq!((asked.inputs.len(), &*asked.inputs[0].name), (1, "X"));
    let asked = b.answer(vec![]);
    assert_eq!((asked.inputs.len(), &*asked.inputs[0].name), (1, "X"));
    assert!(answer.only().expect("an answer without outputs").outputs.is_empty());
}

#[test]
fn batch_dimensions_are_added_and_removed_between_models() {
    let (flat, batched) = (Queue::default(), Queue::default());
    let steps = || -> Vec<StepSetup> {
        vec![
            step("flat", "X=IN", "Y=mid").queued(&flat),
            step("batched", "X=mid", "Y=OUT").with(batching(8)).queued(&batched),
        ]
    };
    let rig = build("IN", "OUT", steps(), batching(4), 0).expect("sound");
    let asked =
        request(vec![Tensor::new("IN", galatea_types::DataType::Uint8, [1, 3], vec![1, 2, 3])]);
    let answer = rig.submit(asked);
    let asked = flat.answer(vec![tensor("Y", b"123")]);
    assert_eq!(&*asked.inputs[0].shape, [3], "a batch of one loses its dimension");
    let asked = batched.answer(vec![Tensor::new(
        "Y",
        galatea_types::DataType::Uint8,
        [1, 3],
        vec![1, 2, 3],
    )]);
    assert_eq!(&*asked.inputs[0].shape, [1, 3], "and gets it back");
    assert_eq!(&*answer.only().expect("an answer").outputs[0].shape, [1, 3]);

    let rig = build("IN", "OUT", steps(), |_| {}, 0).expect("sound");
    let answer = rig.ask(vec![tensor("IN", b"123")]);
    flat.answer(vec![tensor("Y", b"123")]);
    batched.answer(vec![Tensor::new("Y", galatea_types::DataType::Uint8, [1, 3], vec![1, 2, 3])]);
    assert_eq!(&*answer.only().expect("an answer").outputs[0].shape, [3], "the ensemble has none");
}

/// Of the one input and the one output.
fn reshaped(
    size: i32,
    input: (&'static [i64], &'static [i64]),
    output: (&'static [i64], &'static [i64]),
) -> impl FnOnce(&mut RawModelConfig) {
    move |config| {
        config.max_batch_size = size;
        config.input[0].dims = input.0.to_vec();
        config.input[0].reshape.get_or_insert_default().shape = input.1.to_vec();
        config.output[0].dims = output.0.to_vec();
        config.output[0].reshape.get_or_insert_default().shape = output.1.to_vec();
    }
}

#[test]
fn an_ensembles_own_tensors_are_reshaped() {
    let uint8 = |name: &str, shape: &[i64]| {
        let count = usize::try_from(shape.iter().product::<i64>()).expect("small");
        Tensor::new(name, galatea_types::DataType::Uint8, shape, vec![7; count])
    };
    for (size, input, output, sent, seen, made, answered) in [
        (
            0,
            (&[2, 2][..], &[4][..]),
            (&[4, 1][..], &[4][..]),
            &[2, 2][..],
            &[4][..],
            &[4][..],
            &[4, 1][..],
        ),
        (0, (&[-1, 1], &[-1]), (&[1, -1], &[-1]), &[3, 1], &[3], &[5], &[1, 5]),
        (4, (&[2, 2], &[4]), (&[4, 1], &[4]), &[3, 2, 2], &[3, 4], &[3, 4], &[3, 4, 1]),
        (4, (&[1], &[]), (&[1], &[]), &[2, 1], &[2], &[2], &[2, 1]),
        // A step that makes another shape than it declares is answered as it is.
        (0, (&[2, 2], &[4]), (&[4, 1], &[4]), &[2, 2], &[4], &[6], &[6]),
    ] {
        let queue = Queue::default();
        let steps = vec![step("a", "X=IN", "Y=OUT").with(batching(size)).queued(&queue)];
        let rig = build("IN", "OUT", steps, reshaped(size, input, output), 0).expect("sound");
        let answer = rig.submit(request(vec![uint8("IN", sent)]));
        let asked = queue.answer(vec![uint8("Y", made)]);
        assert_eq!(&*asked.inputs[0].shape, seen, "{sent:?}");
        assert_eq!(&*answer.only().expect("an answer").outputs[0].shape, answered, "{made:?}");
    }
}

#[test]
fn statistics_count_the_batch_and_the_times_of_steps() {
    let ms = Duration::from_millis;
    let timed = |name: &str, inputs: &str, outputs: &str| {
        let name_out = outputs.split_once('=').expect("a pair").0.to_owned();
        step(name, inputs, outputs).with(batching(8)).doing(move |request, responder| {
            let times = request.context.origin.step_times().expect("a step");
            times.add(ms(1), ms(2), ms(3));
            responder.finish(Ok(response(vec![Tensor {
                name: name_out.as_str().into(),
                ..request.inputs[0].clone()
            }])));
        })
    };
    let steps = vec![timed("a", "X=IN", "Y=mid"), timed("b", "X=mid", "Y=OUT")];
    let rig = build("IN", "OUT", steps, batching(8), 0).expect("sound");
    let asked =
        request(vec![Tensor::new("IN", galatea_types::DataType::Uint8, [5, 1], vec![0; 5])]);
    let outer = std::sync::Arc::<galatea_types::StepTimes>::default();
    let context = RequestContext { origin: Origin::Step(outer.clone()), ..RequestContext::new() };
    rig.submit_in(asked, 5, context).only().expect("an answer");
    let s = rig.statistics();
    assert_eq!((s.success.count, s.inference_count, s.execution_count), (1, 5, 1));
    assert_eq!(
        (s.compute_input.ns, s.compute_infer.ns, s.compute_output.ns),
        (2_000_000, 4_000_000, 6_000_000)
    );
    assert_eq!(s.batches.keys().copied().collect::<Vec<_>>(), [5]);
    assert_eq!(outer.sums(), [ms(2), ms(4), ms(6)], "an ensemble in an ensemble");
}

/// Notes the names of what ended.
#[derive(Clone, Debug)]
struct Ended {
    name: String,
    names: Arc<Mutex<Vec<String>>>,
}

impl Observer for Ended {
    fn finish(&self, timeline: &Timeline) {
        assert!(timeline.end.is_some());
        self.names.lock().expect("no panic").push(self.name.clone());
    }

    fn child(self: Arc<Self>, model: &str, cause: Cause) -> Option<Arc<dyn Observer>> {
        assert_eq!(cause, Cause::Step);
        let name = format!("{} > {model}", self.name);
        Some(Arc::new(Self { name, names: self.names.clone() }))
    }
}

#[test]
fn steps_are_observed_as_children_of_the_ensemble_request() {
    let traced = |name: &str, inputs: &str, outputs: &str| {
        let output = outputs.split_once('=').expect("a pair").0.to_owned();
        step(name, inputs, outputs).doing(move |mut asked, responder| {
            asked.context.finish(std::time::Instant::now());
            responder.finish(Ok(response(vec![tensor(&output, b"1")])));
        })
    };
    let steps = vec![traced("a", "X=IN", "Y=mid"), traced("b", "X=mid", "Y=OUT")];
    let rig = ensemble("IN", "OUT", steps);
    let names = Arc::<Mutex<Vec<String>>>::default();
    let trace = Ended { name: "ens".to_owned(), names: names.clone() };
    let mut context = RequestContext::new();
    context.observers.add(Arc::new(trace));
    rig.submit_in(request(vec![tensor("IN", b"1")]), 1, context).only().expect("an answer");
    assert_eq!(*names.lock().expect("no panic"), ["ens > a", "ens > b", "ens"]);
}

/// The chain has the maximum length, and the stack is too small for a few calls per step.
#[test]
fn a_long_chain_of_immediate_responses_does_not_overflow_the_stack() {
    const STEPS: usize = 1024;
    let names: Vec<String> = (0..=STEPS).map(|i| format!("t{i}")).collect();
    let steps = names.windows(2);
    let steps = steps.map(|w| step("copy", &format!("X={}", w[0]), &format!("Y={}", w[1])));
    let rig = ensemble("t0", "t1024", steps.collect());
    let ask = move || rig.ask(vec![tensor("t0", b"carried")]).only().expect("an answer");
    let small_stack = std::thread::Builder::new().stack_size(128 << 10);
    let answer = small_stack.spawn(ask).expect("a thread").join().expect("no panic");
    assert_eq!(text(&answer.outputs[0]), "carried");
}

#[test]
fn a_closed_ensemble_finishes_its_requests() {
    let (a, b) = (Queue::default(), Queue::default());
    let steps = vec![step("a", "X=IN", "Y=mid").queued(&a), step("b", "X=mid", "Y=OUT").queued(&b)];
    let rig = ensemble("IN", "OUT", steps);
    let answer = rig.ask(vec![tensor("IN", b"1")]);
    assert!(!rig.scheduler.drain(rig.clock.now()));
    assert_eq!(rig.scheduler.in_flight(), 1);
    let late = rig.ask(vec![tensor("IN", b"1")]).only().expect_err("closed");
    assert!(late.message().ends_with("has stopped accepting new inference requests"), "{late}");
    let (scheduler, deadline) = (rig.scheduler.clone(), rig.clock.now() + Duration::from_secs(20));
    let drain = std::thread::spawn(move || scheduler.drain(deadline));
    a.answer(vec![tensor("Y", b"2")]);
    b.answer(vec![tensor("Y", b"3")]);
    answer.only().expect("an answer");
    assert!(drain.join().expect("no panic"));
    eventually("nothing is left", || rig.scheduler.in_flight() == 0);
    drop(Responder::spent());
}
