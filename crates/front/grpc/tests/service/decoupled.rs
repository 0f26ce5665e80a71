//! ModelStreamInfer with a decoupled model, whose part the tests play.

use bytes::Bytes;
use galatea_backend::ResponseSender;
use galatea_grpc::GrpcOptions;
use galatea_proto::inference::{ModelInferRequest, infer_parameter::ParameterChoice};
use galatea_types::{DataType, Error, ParameterValue, Tensor};
use tokio::sync::mpsc;
use tonic::{Code, Request};

use crate::{
    streams::{Call, Requests, StreamReply, open},
    support::*,
};

pub fn ask(id: &str) -> ModelInferRequest {
    let mut request = vector("decoupled", id, &[1.0, 2.0, 3.0, 4.0]);
    request.inputs[0].shape = vec![1, 4];
    request
}

fn wanting_empty_final(id: &str) -> ModelInferRequest {
    with_parameter(ask(id), "triton_enable_empty_final_response", ParameterChoice::BoolParam(true))
}

fn outputs(value: f32) -> Vec<Tensor> {
    let values = floats(&[value; 4]);
    vec![Tensor::new("OUTPUT0", DataType::Fp32, [1, 4], galatea_types::Buffer::from(values))]
}

fn send_value(sender: &mut ResponseSender, value: f32) {
    sender.send(Ok((outputs(value), vec![])));
}

fn fail(sender: &mut ResponseSender, text: &str) {
    sender.send(Err(Error::not_found(text)));
}

/// An answer of the model.
fn expected(id: &str, value: f32, is_final: bool) -> StreamReply {
    StreamReply {
        id: id.into(),
        model: "decoupled".into(),
        version: "1".into(),
        is_final: Some(is_final),
        outputs: vec![floats(&[value; 4])],
        ..StreamReply::default()
    }
}

/// Without outputs: the version is the client's own word, which was none.
fn bare(id: &str, error: &str, is_final: bool) -> StreamReply {
    let outputs: Vec<Bytes> = vec![];
    StreamReply {
        error: error.into(),
        version: String::new(),
        outputs,
        ..expected(id, 0.0, is_final)
    }
}

async fn call(f: &Fixture, is_strict: bool) -> Call {
    open(&mut f.client().await, is_strict).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_response_has_a_final_marker() {
    let f = Fixture::start();
    let mut call = call(&f, false).await;
    call.send(ask("a"));
    let mut sender = f.sender();
    send_value(&mut sender, 1.0);
    assert_eq!(call.reply().await, expected("a", 1.0, false));
    send_value(&mut sender, 2.0);
    assert_eq!(call.reply().await, expected("a", 2.0, false));
    sender.finish(Some(Ok((outputs(3.0), vec![]))));
    assert_eq!(call.reply().await, expected("a", 3.0, true));
    call.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_empty_final_response_is_sent_only_on_request() {
    let f = Fixture::start();
    let mut call = call(&f, false).await;
    call.send(ask("quiet"));
    f.sender().finish(None);
    call.send(wanting_empty_final("asked"));
    f.sender().finish(None);
    assert_eq!(call.reply().await, bare("asked", "", true));
    call.send(wanting_empty_final("one"));
    let mut sender = f.sender();
    send_value(&mut sender, 1.0);
    sender.finish(None);
    assert_eq!(call.reply().await, expected("one", 1.0, false));
    assert_eq!(call.reply().await, bare("one", "", true));
    call.send(wanting_empty_final("full"));
    f.sender().finish(Some(Ok((outputs(2.0), vec![]))));
    assert_eq!(call.reply().await, expected("full", 2.0, true));
    call.send(ModelInferRequest { model_version: "1".into(), ..wanting_empty_final("v") });
    f.sender().finish(None);
    assert_eq!(call.reply().await, StreamReply { version: "1".into(), ..bare("v", "", true) });
    call.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_model_may_respond_after_an_error() {
    let f = Fixture::start();
    let mut call = call(&f, false).await;
    call.send(ask("e"));
    let mut sender = f.sender();
    fail(&mut sender, "half");
    send_value(&mut sender, 1.0);
    sender.finish(Some(Err(Error::internal("all"))));
    assert_eq!(call.reply().await, bare("e", "half", false));
    assert_eq!(call.reply().await, expected("e", 1.0, false));
    assert_eq!(call.reply().await, bare("e", "all", true));
    call.send(ask("gone"));
    drop(f.sender());
    let text = "model 'decoupled' gave up a request without a final response";
    assert_eq!(call.reply().await, bare("gone", text, true));
    call.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_strict_stream_ends_with_the_first_error_and_cancels_the_rest() {
    let f = Fixture::start();
    let mut call = call(&f, true).await;
    call.send(ModelInferRequest { raw_input_contents: vec![], ..ask("refused") });
    let refused = call.reply().await;
    assert_eq!((refused.id.as_str(), refused.is_final), ("refused", None));
    assert!(refused.error.starts_with("unable to find data"), "{refused:?}");
    call.send(ask("other"));
    let other = f.sender();
    call.send(ask("fails"));
    let mut fails = f.sender();
    send_value(&mut fails, 1.0);
    assert_eq!(call.reply().await, expected("fails", 1.0, false));
    fail(&mut fails, "enough");
    let status = call.next().await.expect_err("ends with a status");
    assert_eq!((status.code(), status.message()), (Code::NotFound, "enough"));
    eventually("both are cancelled", || other.is_cancelled() && fails.is_cancelled());
    // A model that goes on all the same harms nobody.
    send_value(&mut fails, 2.0);
    fails.finish(None);
    f.engine.model("decoupled", None).expect("still there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn decoupled_responses_may_overtake_others() {
    let f = Fixture::start();
    let mut call = call(&f, false).await;
    f.gate.set(true);
    call.send(vector("gated", "slow", &[1.0]));
    call.send(vector("identity_fp32", "quick", &[1.0]));
    call.send(vector("nope", "unknown", &[1.0]));
    call.send(ask("first"));
    call.send(ModelInferRequest { raw_input_contents: vec!["a".into()], ..ask("refused") });
    call.send(ask("second"));
    let refused = call.reply().await;
    assert_eq!((refused.id.as_str(), refused.is_final), ("refused", None));
    let (mut first, mut second) = (f.sender(), f.sender());
    for value in [1.0, 2.0] {
        send_value(&mut second, value);
        assert_eq!(call.reply().await, expected("second", value, false));
        send_value(&mut first, value);
        assert_eq!(call.reply().await, expected("first", value, false));
    }
    f.gate.set(false);
    for (id, is_refused) in [("slow", false), ("quick", false), ("unknown", true)] {
        let reply = call.reply().await;
        assert_eq!((reply.id.as_str(), reply.is_final.is_none()), (id, is_refused));
    }
    first.finish(Some(Ok((outputs(3.0), vec![]))));
    assert_eq!(call.reply().await, expected("first", 3.0, true));
    second.finish(None);
    call.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn responses_from_other_threads_keep_their_order() {
    let f = Fixture::start();
    let mut call = call(&f, false).await;
    for id in 0..4 {
        call.send(ask(&id.to_string()));
    }
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let mut sender = f.sender();
            std::thread::spawn(move || {
                (0..250_i16).for_each(|n| send_value(&mut sender, f32::from(n)));
                sender.finish(Some(Ok((outputs(250.0), vec![]))));
            })
        })
        .collect();
    let mut next = [0_i16; 4];
    for _ in 0..4 * 251 {
        let reply = call.reply().await;
        let id: usize = reply.id.parse().expect("a number");
        let value = next[id];
        assert_eq!(reply, expected(&id.to_string(), f32::from(value), value == 250));
        next[id] += 1;
    }
    for thread in threads {
        thread.join().expect("no panic");
    }
    call.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_response_has_classification_and_parameters() {
    let f = Fixture::start();
    let mut call = call(&f, false).await;
    let wanted = [("classification", ParameterChoice::Int64Param(1))];
    call.send(with_output(ask("c"), "OUTPUT0", &wanted));
    let mut sender = f.sender();
    for best in 0..2 {
        let mut values = [0.0; 4];
        values[best] = 0.5;
        let values = galatea_types::Buffer::from(floats(&values));
        let output = Tensor::new("OUTPUT0", DataType::Fp32, [1, 4], values);
        let parameter = ("step".to_owned(), ParameterValue::Int(best as i64));
        sender.send(Ok((vec![output], vec![parameter])));
        let reply = call.next().await.expect("no status").expect("a reply");
        let response = reply.infer_response.clone().expect("a response");
        let step = response.parameters["step"].parameter_choice.clone();
        assert_eq!(step, Some(ParameterChoice::Int64Param(best as i64)));
        assert_eq!(response.outputs[0].datatype, "BYTES");
        let text = ["0.500000:0:cat", "0.500000:1:dog"][best];
        assert_eq!(response.raw_output_contents[0][4..], *text.as_bytes());
    }
    sender.finish(None);
    call.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_that_disconnects_cancels_all_its_requests() {
    let f = Fixture::start();
    let call = call(&f, false).await;
    call.send(ask("1"));
    call.send(ask("2"));
    let mut senders = [f.sender(), f.sender()];
    send_value(&mut senders[0], 1.0);
    assert!(senders.iter().all(|s| !s.is_cancelled()));
    drop(call);
    eventually("both are cancelled", || senders.iter().all(ResponseSender::is_cancelled));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_deadline_of_the_stream_cancels_all_its_requests() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let (requests, receiver) = mpsc::unbounded_channel();
    for id in ["1", "2"] {
        requests.send(ask(id)).expect("open");
    }
    let mut request = Request::new(Requests(receiver));
    // Written by hand, so that it is the server that keeps it and not the client's own clock.
    request.metadata_mut().insert("grpc-timeout", "1S".parse().expect("metadata"));
    let mut replies = client.model_stream_infer(request).await.expect("opens").into_inner();
    let senders = [f.sender(), f.sender()];
    let status = replies.message().await.expect_err("ends with a status");
    assert_eq!((status.code(), status.message()), (Code::DeadlineExceeded, "Deadline Exceeded"));
    eventually("both are cancelled", || senders.iter().all(ResponseSender::is_cancelled));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_that_does_not_read_is_disconnected_before_memory_is_full() {
    const LIMIT: usize = 4 << 20;
    let options = GrpcOptions { max_unread: LIMIT, ..GrpcOptions::default() };
    let f = Fixture::with_options(&options);
    let mut call = call(&f, false).await;
    call.send(ask("flood"));
    let mut sender = f.sender();
    let shape = [1 << 10, 4];
    let values = galatea_types::Buffer::from(vec![0_u8; 16 << 10]);
    let mut sent = 0_usize;
    while !sender.is_cancelled() {
        let output = Tensor::new("OUTPUT0", DataType::Fp32, shape, values.clone());
        sender.send(Ok((vec![output], vec![])));
        sent += 1;
        assert!(sent < 10_000, "the backlog grows without bound");
    }
    let status = loop {
        match call.next().await {
            Ok(reply) => assert!(reply.is_some(), "must not end well"),
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(sent * (17 << 10) > LIMIT, "cut off after {sent} answers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn model_infer_refuses_decoupled_models() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let status = client.model_infer(ask("1")).await.expect_err("one answer only");
    let text = "ModelInfer RPC doesn't support models with decoupled transaction policy";
    assert_eq!((status.code(), status.message()), (Code::Unimplemented, text));
}
