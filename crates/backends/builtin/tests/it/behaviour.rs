//! What the built-in backends do beyond the conformance kit.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use galatea_backend::{
    Model,
    testing::{
        Fixture, instance_spec, load_context, model_config, prepared, request, run_batch, sample,
        tensors,
    },
};
use galatea_backend_builtin::{ALL, find};
use galatea_types::{
    DataType, InferRequest, InferResponse, ParameterValue, PreparedRequest, Result, Shape, Tensor,
};

fn fixture(backend: &str, parameters: &[(&str, &str)]) -> Fixture {
    let mut text = format!("backend: '{backend}' max_batch_size: 8\n");
    text += &tensors("input", ["INPUT0", "INPUT1"], DataType::Fp32, &[-1]);
    text += &tensors("output", ["OUTPUT1", "OUTPUT0"], DataType::Fp32, &[-1]);
    for (key, value) in parameters {
        text += &format!("parameters {{ key: '{key}' value {{ string_value: '{value}' }} }}\n");
    }
    let config = model_config(&text);
    Fixture::new(config, "unused")
}

fn load(backend: &str, parameters: &[(&str, &str)]) -> Result<Box<dyn Model>> {
    let found = find(backend).expect("it is registered");
    found.load(load_context(&fixture(backend, parameters)))
}

fn new_request() -> PreparedRequest {
    let tensor = |name, from| sample([1, 4], from, 1).tensor(name, DataType::Fp32);
    request("m", 1, vec![tensor("INPUT0", 0), tensor("INPUT1", 50)])
}

fn with_failure(what: &str) -> PreparedRequest {
    let fail = ("fail".to_owned(), ParameterValue::String(what.to_owned()));
    prepared(InferRequest { parameters: vec![fail], ..new_request().into_request() }, 1)
}

#[test]
fn backends_are_registered_under_their_own_names() {
    for backend in ALL {
        assert_eq!(find(backend.name()).expect("it is registered").name(), backend.name());
    }
}

#[test]
fn identity_selects_its_behaviour_by_model_name_and_copies_nothing() {
    let model = load("identity", &[]).expect("it loads");
    let mut instance = model.new_instance(&instance_spec("m", 0)).expect("an instance");
    let request = new_request();
    let response = run_batch(&mut *instance, vec![request.clone()]).remove(0).expect("success");
    for (input, output) in [("INPUT0", "OUTPUT0"), ("INPUT1", "OUTPUT1")] {
        let input = request.input(input).expect("it is there");
        let output = response.output(output).expect("it is there");
        assert_eq!(
            (input.host().expect("host memory").as_ptr(), &input.shape),
            (output.host().expect("host memory").as_ptr(), &output.shape)
        );
    }
}

fn tensors_of(reshape: &str, dims: &str, seen: &str) -> Fixture {
    let config = model_config(&format!(
        "backend: 'identity' max_batch_size: 4
         input {{ name: 'INPUT0' data_type: TYPE_FP32 dims: [ {dims} ] reshape {{ shape: [ {reshape} ] }} optional: true }}
         output {{ name: 'OUTPUT0' data_type: TYPE_FP32 dims: [ {seen} ] }}
         input {{ name: 'INPUT1' data_type: TYPE_STRING dims: [ -1, 2 ] optional: true }}
         output {{ name: 'OUTPUT1' data_type: TYPE_STRING dims: [ -1, 2 ] }}"
    ));
    Fixture::new(config, "unused")
}

fn answer_of(fixture: &Fixture, inputs: Vec<Tensor>) -> InferResponse {
    let backend = find("identity").expect("it is registered");
    let model = backend.load(load_context(fixture)).expect("it loads");
    let mut instance = model.new_instance(&instance_spec("m", 0)).expect("an instance");
    run_batch(&mut *instance, vec![request("m", 3, inputs)]).remove(0).expect("success")
}

#[test]
fn identity_returns_the_reshaped_input() {
    let fixture = tensors_of("2, 2", "4", "2, 2");
    let input = sample([3, 4], 0, 1).tensor("INPUT0", DataType::Fp32);
    let response = answer_of(&fixture, vec![input.clone()]);
    let output = response.output("OUTPUT0").expect("it is there");
    assert_eq!(output.shape, Shape::from([3, 2, 2]));
    assert_eq!(output.host().expect("host"), input.host().expect("host"));
    let wrong = tensors_of("2, 2", "4", "4");
    let backend = find("identity").expect("it is registered");
    let error = backend.load(load_context(&wrong)).err().expect("an error");
    let text = "expected input and output shape to match, got [2,2] and [4] for 'OUTPUT0'";
    assert_eq!(error.message(), text);
}

#[test]
fn identity_returns_zeros_for_an_omitted_optional_input() {
    let fixture = tensors_of("2, 2", "4", "2, 2");
    let texts = Tensor::new("INPUT1", DataType::Bytes, [3, 1, 2], vec![0; 4 * 6]);
    let response = answer_of(&fixture, vec![texts]);
    let output = response.output("OUTPUT0").expect("it is there");
    let zeros = [0; 4 * 12];
    assert_eq!(
        (&output.shape, output.host().expect("host")),
        (&Shape::from([3, 2, 2]), &zeros[..])
    );
    let input = sample([3, 4], 0, 1).tensor("INPUT0", DataType::Fp32);
    let response = answer_of(&fixture, vec![input]);
    let output = response.output("OUTPUT1").expect("it is there");
    let zeros = [0; 4 * 6];
    assert_eq!(
        (&output.shape, output.host().expect("host")),
        (&Shape::from([3, 1, 2]), &zeros[..])
    );
}

#[test]
fn identity_adds_tritons_test_parameters() {
    let fixture = tensors_of("2, 2", "4", "2, 2");
    let parameters = answer_of(&fixture, Vec::new()).parameters;
    let wanted = [
        ("param0", ParameterValue::String("an example string parameter".to_owned())),
        ("param1", ParameterValue::Int(42)),
        ("param2", ParameterValue::Bool(false)),
        ("param3", ParameterValue::Double(123.123)),
    ];
    assert_eq!(parameters, wanted.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the model takes as long as it is told to")]
fn identity_delay_grows_with_the_instance_number() {
    let parameters = [("execute_delay_ms", "2"), ("instance_wise_delay_multiplier", "5")];
    let model = load("identity", &parameters).expect("it loads");
    for (index, delay) in [(0, 2), (1, 2 * 5), (3, 2 * 5 * 3)] {
        let delay = Duration::from_millis(delay);
        let mut instance = model.new_instance(&instance_spec("m", index)).expect("an instance");
        let started = Instant::now();
        run_batch(&mut *instance, vec![new_request()]).remove(0).expect("success");
        assert!(started.elapsed() >= delay, "instance {index}");
    }
}

#[test]
fn non_numeric_parameters_are_refused_by_name() {
    for name in ["execute_delay_ms", "creation_delay_sec", "instance_wise_delay_multiplier"] {
        let error = load("identity", &[(name, "soon")]).err().expect("an error");
        assert!(error.message().contains(name) && error.message().contains("soon"), "{error}");
    }
}

#[test]
fn failing_fails_at_the_configured_point() {
    assert!(load("failing", &[("fail", "load")]).is_err());
    assert!(load("failing", &[("fail", "sometimes")]).is_err());
    let model = load("failing", &[("fail", "creation")]).expect("it loads");
    assert!(model.new_instance(&instance_spec("m", 0)).is_err());
    let model = load("failing", &[("fail", "execute")]).expect("it loads");
    let mut instance = model.new_instance(&instance_spec("m", 0)).expect("an instance");
    assert!(run_batch(&mut *instance, vec![new_request()]).remove(0).is_err());
}

#[test]
fn failing_fails_or_panics_when_a_request_asks_for_it() {
    let model = load("failing", &[]).expect("it loads");
    let mut instance = model.new_instance(&instance_spec("m", 0)).expect("an instance");
    let answers = run_batch(&mut *instance, vec![new_request(), with_failure("execute")]);
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false]);
    let panicking = AssertUnwindSafe(|| run_batch(&mut *instance, vec![with_failure("panic")]));
    assert!(catch_unwind(panicking).is_err());
}

#[test]
fn identity_counts_the_bytes_of_its_inputs() {
    let context = load_context(&fixture("identity", &[]));
    let metrics = context.server.metrics.clone();
    let backend = find("identity").expect("it is registered");
    let model = backend.load(context).expect("it loads");
    let mut instance = model.new_instance(&instance_spec("m", 0)).expect("an instance");
    run_batch(&mut *instance, vec![new_request(), new_request()]);
    let mut text = String::new();
    metrics.render_into(&mut text);
    // Two requests of two tensors of four FP32.
    assert!(text.contains("input_byte_size_counter{model=\"m\",version=\"1\"} 64"), "{text}");
}
