//! What the decoupled backends answer, and when they stop.

use std::sync::{
    Arc, Mutex,
    mpsc::{self, Receiver, Sender},
};

use crate::registered::{instance, load};
use galatea_backend::{
    Batch, ModelInstance, PendingRequest, RequestEnd, RequestObserver,
    testing::{Fixture, changed, model_config, prepared, request, run_stream, stream},
};
use galatea_config::RawModelConfig;
use galatea_telemetry::{ResponseOutcome, ResponseRecord};
use galatea_types::{
    Cancellation, Code, DataType, InferResponse, PreparedRequest, RequestContext, Response, Result,
    Tensor,
};

fn bytes(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn tensor(name: &str, data_type: DataType, words: &[i32]) -> Tensor {
    let size = i64::try_from(words.len()).expect("small");
    Tensor::new(name, data_type, [size], bytes(words))
}

fn repeat_fixture() -> Fixture {
    let config = model_config(
        "backend: 'repeat' model_transaction_policy { decoupled: true }
         input [ { name: 'IN' data_type: TYPE_INT32 dims: -1 },
                 { name: 'DELAY' data_type: TYPE_UINT32 dims: -1 },
                 { name: 'WAIT' data_type: TYPE_UINT32 dims: 1 } ]
         output [ { name: 'OUT' data_type: TYPE_INT32 dims: 1 },
                  { name: 'IDX' data_type: TYPE_UINT32 dims: 1 } ]",
    );
    Fixture::new(config, "unused")
}

fn square_fixture(parameters: &[(&str, &str)]) -> Fixture {
    let mut text = "backend: 'square' model_transaction_policy { decoupled: true }
         input { name: 'IN' data_type: TYPE_INT32 dims: 1 }
         output { name: 'OUT' data_type: TYPE_INT32 dims: 1 }\n"
        .to_owned();
    for (key, value) in parameters {
        text += &format!("parameters {{ key: '{key}' value {{ string_value: '{value}' }} }}\n");
    }
    Fixture::new(model_config(&text), "unused")
}

fn repeat_request(values: &[i32], delays: &[i32]) -> PreparedRequest {
    request(
        "m",
        1,
        vec![
            tensor("IN", DataType::Int32, values),
            tensor("DELAY", DataType::Uint32, delays),
            tensor("WAIT", DataType::Uint32, &[0]),
        ],
    )
}

fn square_request(number: i32) -> PreparedRequest {
    request("m", 1, vec![tensor("IN", DataType::Int32, &[number])])
}

fn run(instance: &mut dyn ModelInstance, request: PreparedRequest) -> Receiver<Response> {
    run_stream(instance, request, Cancellation::default())
}

/// All responses with a body, after a check that the end has none.
fn collect(stream: &Receiver<Response>) -> Vec<Result<InferResponse>> {
    let mut results = Vec::new();
    for response in stream {
        if response.is_final {
            assert!(response.result.is_none(), "the end is reported on its own");
        }
        results.extend(response.result);
    }
    results
}

#[test]
fn repeat_returns_each_element_with_its_index() {
    let mut instance = instance(&repeat_fixture());
    let stream = run(&mut *instance, repeat_request(&[7, -3], &[0, 1]));
    let responses = collect(&stream);
    let words: Vec<_> = responses
        .iter()
        .map(|r| r.as_ref().expect("success"))
        .map(|r| {
            ["OUT", "IDX"].map(|name| {
                r.output(name).expect("it is there").host().expect("host memory").to_vec()
            })
        })
        .collect();
    assert_eq!(words, [[bytes(&[7]), bytes(&[0])], [bytes(&[-3]), bytes(&[1])]]);
}

#[test]
fn repeat_returns_only_requested_outputs() {
    let mut instance = instance(&repeat_fixture());
    let mut request = repeat_request(&[7], &[0]).into_request();
    request.outputs = vec!["IDX".into()];
    let responses = collect(&run(&mut *instance, prepared(request, 1)));
    let response = responses[0].as_ref().expect("success");
    assert_eq!(response.outputs.iter().map(|t| &*t.name).collect::<Vec<_>>(), ["IDX"]);
}

#[test]
fn repeat_refuses_a_wrong_number_of_delays() {
    let mut instance = instance(&repeat_fixture());
    let stream = run(&mut *instance, repeat_request(&[1, 2], &[0]));
    let last = stream.recv().expect("an answer");
    let error = last.result.expect("a body").expect_err("an error");
    assert!(last.is_final);
    assert_eq!(error.message(), "expected IN and DELAY shape to match, got [2] and [1]");
}

#[test]
fn a_cancelled_stream_ends_with_the_error_cancelled() {
    let mut instance = instance(&repeat_fixture());
    let request = repeat_request(&[1, 2], &[0, 3_600_000]);
    let cancellation = Cancellation::default();
    let stream = run_stream(&mut *instance, request, cancellation.clone());
    assert!(!stream.recv().expect("a response").is_final);
    cancellation.cancel();
    let last = stream.recv().expect("the end");
    let error = last.result.expect("a body").expect_err("an error");
    assert_eq!((last.is_final, error.code()), (true, Code::Cancelled));
}

#[test]
fn square_sends_as_many_responses_as_its_input_says() {
    for number in [0, 1, 4, -5] {
        let mut instance = instance(&square_fixture(&[]));
        let responses = collect(&run(&mut *instance, square_request(number)));
        assert_eq!(responses.len(), usize::try_from(number).unwrap_or(0));
        for response in responses {
            let response = response.expect("success");
            let out = response.output("OUT").expect("it is there");
            assert_eq!(
                (out.host().expect("host memory"), &out.shape[..]),
                (&*bytes(&[number]), &[1][..])
            );
        }
    }
}

#[test]
fn square_can_fail_or_omit_its_last_response() {
    let parameters = [
        ("CUSTOM_FAIL_COUNT", "2"),
        ("CUSTOM_EMPTY_COUNT", "1"),
        ("CUSTOM_INFER_DELAY_NS", "1000"),
        ("CUSTOM_OUTPUT_DELAY_NS", "no number"),
    ];
    for (number, expected) in [(4, "sff"), (6, "sssff"), (3, "ff"), (1, "")] {
        let mut instance = instance(&square_fixture(&parameters));
        let responses = collect(&run(&mut *instance, square_request(number)));
        let kinds: String = responses
            .iter()
            .map(|r| match r {
                Ok(_) => 's',
                Err(e) => {
                    assert_eq!((e.code(), e.message()), (Code::Unknown, "simulated failure"));
                    'f'
                }
            })
            .collect();
        assert_eq!(kinds, expected, "of {number}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the model takes as long as it is told to")]
fn square_waits_for_the_cancel_delay_after_a_cancellation() {
    let parameters =
        [("CUSTOM_INFER_DELAY_NS", "3600000000000"), ("CUSTOM_CANCEL_DELAY_NS", "20000000")];
    let mut instance = instance(&square_fixture(&parameters));
    let request = square_request(2);
    let cancellation = Cancellation::default();
    let stream = run_stream(&mut *instance, request, cancellation.clone());
    let started = std::time::Instant::now();
    cancellation.cancel();
    let last = stream.recv().expect("the end");
    assert!(started.elapsed() >= std::time::Duration::from_millis(20));
    assert_eq!(last.result.expect("a body").expect_err("an error").code(), Code::Cancelled);
}

/// Sends on what is reported of responses.
struct Reported(Mutex<Sender<(usize, ResponseOutcome)>>);

impl RequestObserver for Reported {
    fn reported(&self, number: usize, record: &ResponseRecord) {
        let _ = self.0.lock().expect("no panic").send((number, record.outcome));
    }

    fn ended(&self, _: RequestEnd<'_>) {}
}

/// What an instance reports of the responses to one request. It is cancelled at once, if so.
fn reports(fixture: &Fixture, number: i32, is_cancelled: bool) -> Vec<(usize, ResponseOutcome)> {
    let (reports, reported) = mpsc::channel();
    let (responder, _stream) = stream();
    let context = RequestContext::new();
    let cancellation = context.cancellation.clone();
    let pending = PendingRequest::new(square_request(number), context, responder);
    let mut batch = Batch::new("m".into(), 1, vec![pending]);
    batch.observe(Arc::new(Reported(Mutex::new(reports))));
    let mut instance = instance(fixture);
    if is_cancelled {
        cancellation.cancel();
    }
    instance.execute(&mut batch);
    drop(batch);
    // Ends when the request has.
    reported.iter().collect()
}

#[test]
fn square_reports_every_response_to_statistics() {
    use ResponseOutcome::{Cancelled, Empty, Failure, Success};
    let fixture = square_fixture(&[("CUSTOM_FAIL_COUNT", "1"), ("CUSTOM_EMPTY_COUNT", "1")]);
    let expected = [(0, Success), (1, Success), (2, Failure), (3, Empty)];
    assert_eq!(reports(&fixture, 4, false), expected);
    assert_eq!(reports(&fixture, 0, false), []);
    let slow = square_fixture(&[("CUSTOM_INFER_DELAY_NS", "3600000000000")]);
    assert_eq!(reports(&slow, 2, true), [(0, Cancelled)]);
}

#[test]
fn a_dropped_instance_ends_delays_early() {
    for (fixture, request) in [
        (repeat_fixture(), repeat_request(&[1], &[3_600_000])),
        (square_fixture(&[("CUSTOM_INFER_DELAY_NS", "3600000000000")]), square_request(1)),
    ] {
        let mut instance = instance(&fixture);
        let stream = run(&mut *instance, request);
        drop(instance);
        let error = stream.recv().expect("the end").result.expect("a body").expect_err("an error");
        assert_eq!(error.code(), Code::Internal);
    }
}

#[test]
fn repeat_returns_one_element_when_not_decoupled() {
    let mut fixture = repeat_fixture();
    fixture.config = changed(&fixture.config, |c| c.model_transaction_policy = None);
    let mut instance = instance(&fixture);
    let answers = |values: &[i32]| {
        let delays = vec![0; values.len()];
        let stream = run(&mut *instance, repeat_request(values, &delays));
        stream.recv().expect("the end").result.expect("a body")
    };
    let [one, two, none] = [&[7][..], &[7, 8], &[]].map(answers);
    let outputs = one.expect("an answer").outputs;
    assert_eq!(outputs[0].host().expect("host memory"), 7_i32.to_le_bytes());
    assert_eq!(two.expect_err("two").message(), "expected a single response, got 3");
    assert_eq!(none.expect_err("none").message(), "received an unexpected null response");
}

type Spoil = fn(&mut RawModelConfig);

#[test]
fn wrong_configurations_are_refused() {
    let cases: [(Spoil, &str); 5] = [
        (|c| c.max_batch_size = 1, "max_batch_size == 0"),
        (|c| c.input.truncate(2), "expected 3 inputs, got 2"),
        (|c| c.output.swap(0, 1), "first output tensor name to be OUT, got IDX"),
        (|c| c.input[2].dims = vec![2], "expected WAIT shape to be [1], got [2]"),
        (|c| c.input[1].data_type = c.input[0].data_type, "DELAY datatype to be UINT32"),
    ];
    for (spoil, text) in cases {
        let mut fixture = repeat_fixture();
        fixture.config = changed(&fixture.config, spoil);
        let error = load(&fixture).err().expect("it is refused");
        assert!(error.message().contains(text), "{error}");
    }
}
