//! What the built-in backends about sequences answer, and which configurations they refuse.

use crate::registered::{instance, load};
use galatea_backend::{
    Batch, ModelInstance, Outcome, PendingRequest, SequenceState, SequenceStates,
    testing::{Fixture, model_config, pending, request, run_batch, stream},
};
use galatea_types::{
    DataType, InferResponse, PreparedRequest, RequestContext, Response, Result, Shape, Tensor,
};

const VECTORS: &str = "input { name: 'INPUT' data_type: TYPE_INT32 dims: [ -1 ] }
                       output { name: 'OUTPUT' data_type: TYPE_INT32 dims: [ -1 ] }";

fn controls(names: &[&str]) -> String {
    let control = |name: &&str| {
        let values = match *name {
            "CORRID" => "data_type: TYPE_UINT64",
            "CORRID_TEXT" => "data_type: TYPE_STRING",
            _ => "int32_false_true: [ 0, 1 ]",
        };
        let kind = name.trim_end_matches("_TEXT");
        format!(
            "control_input {{ name: '{kind}' control {{ kind: CONTROL_SEQUENCE_{kind} {values} }} }} "
        )
    };
    names.iter().map(control).collect()
}

fn config(backend: &str, names: &[&str], more: &str) -> Fixture {
    let controls = controls(names);
    let text =
        format!("backend: '{backend}' max_batch_size: 4 sequence_batching {{ {controls} }} {more}");
    Fixture::new(model_config(&text), "unused")
}

fn refusal(fixture: &Fixture) -> String {
    load(fixture).err().expect("an error").message().to_owned()
}

fn numbers(name: &str, values: &[i32]) -> Tensor {
    let count = i64::try_from(values.len()).expect("small");
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Tensor::new(name, DataType::Int32, [1, count], data)
}

/// A step: `flags` has `r` for READY, `s` for START, `e` for END.
fn step(values: &[i32], flags: &str, more: Vec<Tensor>) -> PreparedRequest {
    let flag = |name, letter| numbers(name, &[i32::from(flags.contains(letter))]);
    let mut inputs = vec![numbers("INPUT", values)];
    inputs.extend([flag("START", 's'), flag("READY", 'r'), flag("END", 'e')]);
    inputs.extend(more);
    request("m", 1, inputs)
}

fn ints(tensor: &Tensor) -> Vec<i32> {
    let words = tensor.host().expect("host memory").as_chunks().0;
    words.iter().map(|word| i32::from_le_bytes(*word)).collect()
}

fn output(response: &Result<InferResponse>) -> Option<Vec<i32>> {
    response.as_ref().expect("success").output("OUTPUT").map(ints)
}

fn outputs(instance: &mut dyn ModelInstance, batch: Vec<PreparedRequest>) -> Vec<Option<Vec<i32>>> {
    run_batch(instance, batch).iter().map(output).collect()
}

#[test]
fn sequence_sums_each_row_and_skips_rows_that_are_not_ready() {
    let mut instance = instance(&config("sequence", &["START", "READY"], VECTORS));
    let first = vec![step(&[1, 2], "rs", vec![]), step(&[10], "rs", vec![])];
    assert_eq!(outputs(&mut *instance, first), [Some(vec![3, 3]), Some(vec![10])]);
    let second = vec![step(&[99], "", vec![]), step(&[5], "r", vec![])];
    assert_eq!(outputs(&mut *instance, second), [None, Some(vec![15])]);
    let third = vec![step(&[4], "r", vec![]), step(&[-7], "rs", vec![])];
    assert_eq!(outputs(&mut *instance, third), [Some(vec![7]), Some(vec![-7])]);
    let last = vec![step(&[i32::MAX], "r", vec![])];
    assert_eq!(outputs(&mut *instance, last), [Some(vec![7_i32.wrapping_add(i32::MAX)])]);
}

#[test]
fn sequence_refuses_unsupported_configurations() {
    let controls = "'START' and 'READY' must be configured as the control inputs";
    assert_eq!(refusal(&config("sequence", &["START"], VECTORS)), controls);
    assert_eq!(refusal(&config("sequence", &["START", "END"], VECTORS)), controls);
    let plain = Fixture::new(model_config(&format!("backend: 'sequence' {VECTORS}")), "unused");
    assert_eq!(refusal(&plain), controls);
    let of = |tensors: &str| refusal(&config("sequence", &["START", "READY"], tensors));
    let vector = "output { name: 'OUTPUT' data_type: TYPE_INT32 dims: [ -1 ] }";
    let cases = [
        (
            VECTORS.replace("-1 ] }\n", "-1, 2 ] }\n"),
            "model must have one input 'INPUT' with vector shape, any length",
        ),
        (VECTORS.replacen("INT32", "FP32", 1), "model input must have TYPE_INT32 data-type"),
        (VECTORS.replace("'INPUT'", "'IN'"), "model input must be named 'INPUT'"),
        (
            format!("{VECTORS} {}", vector.replace("OUTPUT", "MORE")),
            "model must have one output 'OUTPUT' with vector shape, any length",
        ),
        (
            VECTORS.replace("dims: [ -1 ] }\n", "dims: [ 3 ] }\n"),
            "model must have output 'OUTPUT' with shape matching 'INPUT'",
        ),
        (VECTORS.replace("'OUTPUT'", "'OUT'"), "model output must be named 'OUTPUT'"),
    ];
    for (tensors, text) in cases {
        assert_eq!(of(&tensors), text, "{tensors}");
    }
}

#[test]
fn sequence_refuses_several_steps_in_one_batch() {
    let mut instance = instance(&config("sequence", &["START", "READY"], VECTORS));
    let several = request("m", 2, step(&[1], "rs", vec![]).into_request().inputs);
    let error = run_batch(&mut *instance, vec![several]).remove(0).expect_err("two rows");
    assert_eq!(error.message(), "unable to execute more than one timestep at a time");
}

fn id(number: u64) -> Vec<Tensor> {
    vec![Tensor::new("CORRID", DataType::Uint64, [1, 1], number.to_le_bytes().to_vec())]
}

fn text_id(text: &str) -> Vec<Tensor> {
    let mut data = u32::try_from(text.len()).expect("short").to_le_bytes().to_vec();
    data.extend_from_slice(text.as_bytes());
    vec![Tensor::new("CORRID", DataType::Bytes, [1, 1], data)]
}

const DYNA: [&str; 4] = ["START", "END", "READY", "CORRID"];

#[test]
fn dyna_sequence_sums_by_correlation_id_and_adds_the_id_at_the_end() {
    let mut instance = instance(&config("dyna_sequence", &DYNA, VECTORS));
    let first = vec![step(&[1], "rs", id(100)), step(&[10], "rs", id(7)), step(&[5], "", id(0))];
    assert_eq!(outputs(&mut *instance, first), [Some(vec![1]), Some(vec![10]), None]);
    // Now in other rows.
    let second = vec![step(&[2], "r", id(7)), step(&[3], "re", id(100))];
    assert_eq!(outputs(&mut *instance, second), [Some(vec![12]), Some(vec![104])]);
    // It was forgotten.
    assert_eq!(outputs(&mut *instance, vec![step(&[1], "r", id(100))]), [Some(vec![1])]);
    let wide = vec![step(&[1], "rse", id((1 << 32) + 5))];
    assert_eq!(outputs(&mut *instance, wide), [Some(vec![6])]);
}

#[test]
fn dyna_sequence_accepts_numbers_as_text() {
    let names = ["START", "END", "READY", "CORRID_TEXT"];
    let mut instance = instance(&config("dyna_sequence", &names, VECTORS));
    assert_eq!(outputs(&mut *instance, vec![step(&[1], "rs", text_id("42"))]), [Some(vec![1])]);
    assert_eq!(outputs(&mut *instance, vec![step(&[1], "re", text_id("42"))]), [Some(vec![44])]);
    let word = run_batch(&mut *instance, vec![step(&[1], "rs", text_id("a word"))]).remove(0);
    let text = "correlation id 'a word' is not a number, as this model needs";
    assert_eq!(word.expect_err("no number").message(), text);
}

#[test]
fn dyna_sequence_refuses_two_steps_of_a_sequence_and_unknown_controls() {
    let fixture = config("dyna_sequence", &DYNA, VECTORS);
    let twice = vec![step(&[1], "rs", id(1)), step(&[1], "r", id(1))];
    let answers = run_batch(&mut *instance(&fixture), twice);
    assert_eq!(output(&answers[0]), Some(vec![1]));
    let error = answers[1].as_ref().expect_err("twice");
    assert!(error.message().starts_with("Execute() called with batch containing"), "{error}");
    let text = "'START', 'END, 'READY' and 'CORRID' must be configured as the control inputs";
    assert_eq!(refusal(&config("dyna_sequence", &DYNA[..3], VECTORS)), text);
    let narrow = controls(&DYNA).replace("UINT64", "INT32");
    let narrow = format!(
        "backend: 'dyna_sequence' max_batch_size: 4 sequence_batching {{ {narrow} }} {VECTORS}"
    );
    let text = "model CORRID control input must have TYPE_UINT64 or TYPE_STRING data-type";
    assert_eq!(refusal(&Fixture::new(model_config(&narrow), "unused")), text);
}

#[test]
fn iterative_sequence_requests_one_execution_per_response() {
    let decoupled = "model_transaction_policy { decoupled: true }
                     parameters { key: 'execute_delay_ms' value { string_value: '0' } }";
    let text = format!("backend: 'iterative_sequence' max_batch_size: 1 {decoupled} {VECTORS}");
    let mut instance = instance(&Fixture::new(model_config(&text), "unused"));
    let (responder, mut responses) = stream();
    let request = request("m", 1, vec![numbers("INPUT", &[3])]);
    let mut waiting = Some(PendingRequest::new(request, RequestContext::new(), responder));
    let mut executions = 0;
    while let Some(pending) = waiting.take() {
        let mut batch = Batch::new("m".into(), 1, vec![pending]);
        instance.execute(&mut batch);
        executions += 1;
        waiting = batch.take_executed_again().pop().map(|(_, pending)| pending);
    }
    assert_eq!(executions, 3);
    let mut seen = Vec::new();
    while let Ok(Response { result, is_final }) = responses.try_recv() {
        seen.push((output(&result.expect("a body")).expect("an output"), is_final));
    }
    assert_eq!(seen, [(vec![2], false), (vec![1], false), (vec![0], true)]);
}

#[test]
fn iterative_sequence_refuses_models_that_are_not_decoupled() {
    let text = format!("backend: 'iterative_sequence' {VECTORS}");
    let text = refusal(&Fixture::new(model_config(&text), "unused"));
    assert!(text.contains("needs model_transaction_policy { decoupled: true }"), "{text}");
}

/// Executes a step with the state, and leaves in it what the step gave.
fn keep(
    instance: &mut dyn ModelInstance,
    states: &mut SequenceStates,
    request: PreparedRequest,
) -> Result<InferResponse> {
    let mut pending = pending(request).0;
    pending.request.add_inputs(states.inputs().cloned());
    pending.states = states.clone();
    let mut batch = Batch::new("m".into(), 1, vec![pending]);
    instance.execute(&mut batch);
    *states = batch.take_states(0);
    match batch.into_outcomes().next().expect("one").1 {
        Outcome::Answered(result) => result,
        other => panic!("not answered: {other:?}"),
    }
}

fn state(value: Tensor) -> SequenceStates {
    SequenceStates::new(vec![SequenceState {
        output: "OUTPUT_STATE".into(),
        is_returned: true,
        value,
    }])
}

fn implicit(more: &str) -> Box<dyn ModelInstance> {
    let controls = controls(&DYNA[..3]);
    let text = format!(
        "backend: 'implicit_state' sequence_batching {{ {controls} {more} }}
         input {{ name: 'INPUT' data_type: TYPE_INT32 dims: [ 1 ] }}
         input {{ name: 'TEST_CASE' data_type: TYPE_INT32 dims: [ 1 ] }}
         output {{ name: 'OUTPUT' data_type: TYPE_INT32 dims: [ 1 ] }}"
    );
    instance(&Fixture::new(model_config(&text), "unused"))
}

fn case(number: i32, value: i32, flags: &str) -> PreparedRequest {
    step(&[value], flags, vec![numbers("TEST_CASE", &[number])])
}

const SHARED: &str =
    "state { input_name: 'INPUT_STATE' output_name: 'OUTPUT_STATE' data_type: TYPE_INT32
                      dims: [ 1 ] use_same_buffer_for_input_output: true }";

#[test]
fn implicit_state_names_a_missing_state() {
    let mut instance = implicit(SHARED);
    let mut none = SequenceStates::default();
    let error = keep(&mut *instance, &mut none, case(0, 1, "rs")).expect_err("no state");
    let text =
        "unable to add state 'undefined_state'. State configuration is missing for model 'm'.";
    assert_eq!(error.message(), text);
    let mut one = state(numbers("INPUT_STATE", &[0]));
    let error = keep(&mut *instance, &mut one, case(0, 1, "rs")).expect_err("another state");
    assert_eq!(error.message(), "state 'undefined_state' is not a valid state name.");
}

#[test]
fn implicit_state_keeps_a_state_that_is_not_updated() {
    let mut instance = implicit(SHARED);
    let mut states = state(numbers("INPUT_STATE", &[4]));
    for flags in ["rs", "r", "re"] {
        let response = keep(&mut *instance, &mut states, case(1, 3, flags));
        assert_eq!(output(&response), Some(vec![7]));
    }
}

#[test]
fn implicit_state_reuses_a_single_buffer_in_each_step() {
    let mut instance = implicit(SHARED);
    let mut states = state(numbers("INPUT_STATE", &[4]));
    for flags in ["rs", "r", "re"] {
        keep(&mut *instance, &mut states, case(2, 0, flags)).expect("the same memory");
    }
    let mut copying = implicit(&SHARED.replace("use_same_buffer_for_input_output: true", ""));
    keep(&mut *copying, &mut states, case(2, 0, "rs")).expect("the first");
    let error = keep(&mut *copying, &mut states, case(2, 0, "r")).expect_err("other memory");
    assert_eq!(error.message(), "Input and output state are using different buffers.");
}

#[test]
fn implicit_state_keeps_its_content_when_it_grows() {
    const BLOCK: usize = 1 << 20;
    let mut instance = implicit(SHARED);
    let shape = Shape::from([1024, 1024]);
    let mut states = state(Tensor::new("INPUT_STATE", DataType::Int8, shape, vec![0; BLOCK]));
    for (steps, flags) in [(0_u8, "rs"), (1, "r"), (2, "re")] {
        let response = keep(&mut *instance, &mut states, case(3, 0, flags)).expect("success");
        let output = response.output("OUTPUT_STATE").expect("it is there");
        let data = output.host().expect("host memory");
        assert_eq!(data.len(), (usize::from(steps) + 1) * BLOCK);
        let is_kept = |(block, bytes): (u8, &[u8])| bytes.iter().all(|&byte| byte == block);
        assert!((0..).zip(data.chunks(BLOCK)).all(is_kept));
    }
}
