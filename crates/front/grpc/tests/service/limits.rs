//! What a client may make the server hold, and for how long.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use galatea_frontend::{ConnectionLimits, ConnectionSettings};
use galatea_grpc::GrpcOptions;
use galatea_proto::inference::{self as pb, model_repository_parameter::ParameterChoice};
use galatea_types::MemoryBudget;
use http_body::Frame;
use prost::Message as _;
use tonic::{Code, Status, body::Body, codegen::Service as _};

use crate::{decoupled::ask, streams::open, support::*};

/// A stream may have this many requests without responses.
const MAX_OUTSTANDING: usize = 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_is_read_ahead_up_to_a_limit() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let mut call = open(&mut client, false).await;
    let total = 3 * MAX_OUTSTANDING;
    for i in 0..total {
        call.send(ask(&i.to_string()));
    }
    let mut senders: Vec<_> = (0..MAX_OUTSTANDING).map(|_| f.sender()).collect();
    // Other calls on the connection, so that the stream would have been read further meanwhile.
    for _ in 0..20 {
        client.model_infer(vector("identity_fp32", "", &[1.0])).await.expect("goes on serving");
    }
    assert!(f.senders.try_recv().is_err(), "more requests were read than may be outstanding");
    for taken in 0..total {
        drop(senders.pop().expect("was read"));
        let reply = call.reply().await;
        assert!(reply.error.contains("gave up a request"), "{reply:?}");
        if taken + MAX_OUTSTANDING < total {
            senders.push(f.sender());
        }
    }
    call.end().await;
}

/// Ordinary requests are answered in order and each needs nothing but itself: more of them than are read ahead, written
/// before the first reply is read, are all answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn more_requests_than_the_read_ahead_limit_do_not_block_a_stream() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let mut call = open(&mut client, false).await;
    let total = 5 * MAX_OUTSTANDING;
    for i in 0..total {
        call.send(vector("identity_fp32", &i.to_string(), &[1.0]));
    }
    for i in 0..total {
        assert_eq!(call.reply().await.id, i.to_string());
    }
    call.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn requests_over_the_memory_budget_are_refused_and_release_their_memory() {
    let memory = MemoryBudget::new(1 << 20);
    let options = GrpcOptions { memory: memory.clone(), ..GrpcOptions::default() };
    let f = Fixture::with_options(&options);
    let mut client = f.client().await;
    let large = || vector("identity_fp32", "", &vec![1.0; 400_000]);
    let error = client.model_infer(large()).await.expect_err("too much");
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert!(error.message().contains("--memory-budget"), "{error}");
    client.model_infer(vector("identity_fp32", "", &[1.0; 1000])).await.expect("has room");
    let mut call = open(&mut client, false).await;
    call.send(vector("gated", "in hand", &[1.0]));
    call.send(large());
    assert_eq!(call.reply().await.id, "in hand", "what is in hand goes on");
    let error = call.next().await.expect_err("too much");
    assert_eq!(error.code(), Code::ResourceExhausted);
    drop(call);
    // Small numbers grow when they are decoded, and are asked for before.
    let mut small = vector("identity_fp32", "", &[]);
    small.raw_input_contents.clear();
    small.inputs[0].datatype = "INT64".into();
    let contents =
        pb::InferTensorContents { int64_contents: vec![1; 200_000], ..Default::default() };
    small.inputs[0].contents = Some(contents);
    let error = client.model_infer(small).await.expect_err("too much");
    assert_eq!(error.code(), Code::ResourceExhausted);
    eventually("everything is given back", || memory.used() == 0);
}

/// Sends some bytes and then nothing, for ever.
struct Half(Option<Bytes>);

impl http_body::Body for Half {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None => Poll::Pending,
        }
    }
}

fn impatient() -> Arc<ConnectionLimits> {
    let settings = ConnectionSettings {
        progress_timeout: Duration::from_millis(200),
        ..ConnectionSettings::default()
    };
    ConnectionLimits::new(settings, MemoryBudget::unlimited())
}

async fn status_of_half(f: &Fixture, path: &str, half: &[u8]) -> Status {
    let mut channel = f.channel().await;
    let request = http::Request::post(format!("http://{}{path}", f.address()))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(Half(Some(Bytes::copy_from_slice(half)))))
        .expect("a request");
    std::future::poll_fn(|cx| channel.poll_ready(cx)).await.expect("ready");
    let mut response = channel.call(request).await.expect("a response");
    if let Some(status) = Status::from_header_map(response.headers()) {
        return status;
    }
    let frame =
        std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(response.body_mut()), cx));
    let frame = frame.await.expect("not the end").expect("no error");
    let trailers = frame.into_trailers().expect("no message");
    Status::from_header_map(&trailers).expect("a status")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_half_sent_message_ends_its_call() {
    let options = GrpcOptions { limits: impatient(), ..GrpcOptions::default() };
    let f = Fixture::with_options(&options);
    for method in ["ModelInfer", "ModelStreamInfer", "ModelReady", "RepositoryModelLoad"] {
        let path = format!("/inference.GRPCInferenceService/{method}");
        for half in [&[0, 0, 0][..], &[0, 0, 0, 1, 0, 10, 20, 30]] {
            let status = status_of_half(&f, &path, half).await;
            assert_eq!(status.code(), Code::DeadlineExceeded, "{method}: {status}");
            let text = "the client sent fewer than 256 bytes a second in 200ms of its request";
            assert_eq!(status.message(), text);
        }
    }
    eventually("nothing is in flight", || {
        f.server.as_ref().expect("running").requests_in_flight() == 0
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_may_be_silent_between_messages() {
    let options = GrpcOptions { limits: impatient(), ..GrpcOptions::default() };
    let f = Fixture::with_options(&options);
    let mut client = f.client().await;
    let mut call = open(&mut client, false).await;
    for _ in 0..2 {
        call.send(vector("identity_fp32", "a", &[1.0]));
        assert_eq!(call.reply().await.id, "a");
        // Longer than a message may take, as another stream shows.
        let status =
            status_of_half(&f, "/inference.GRPCInferenceService/ModelInfer", &[0, 0, 0]).await;
        assert_eq!(status.code(), Code::DeadlineExceeded);
    }
    call.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn calls_that_carry_only_names_have_a_small_message_limit() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let name = "m".repeat(100_000);
    let request = pb::ModelReadyRequest { name, version: String::new() };
    let length = request.encoded_len();
    let error = client.model_ready(request).await.expect_err("too long");
    let text = format!("Received message larger than max ({length} vs. 65536)");
    assert_eq!((error.code(), error.message()), (Code::ResourceExhausted, text.as_str()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_load_with_too_many_files_is_refused() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let file = |i| {
        let content = ParameterChoice::BytesParam(Bytes::new());
        (format!("file:{i}"), repository_parameter(content))
    };
    let request = pb::RepositoryModelLoadRequest {
        model_name: "later".into(),
        parameters: (0..5000).map(file).collect(),
        ..Default::default()
    };
    let error = client.repository_model_load(request).await.expect_err("too many");
    let text = "a load takes 4096 parameters at most, and this one has 5000";
    assert_eq!((error.code(), error.message()), (Code::InvalidArgument, text));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_request_with_too_many_inputs_is_refused_early() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let mut request = vector("identity_fp32", "", &[1.0]);
    request.inputs = (0..100_000).map(|i| input(&i.to_string(), "FP32", &[1])).collect();
    let error = client.model_infer(request.clone()).await.expect_err("too many");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().starts_with("a request of "), "{error}");
    request.inputs.truncate(1000);
    let error = client.model_infer(request).await.expect_err("too many");
    let text = "[request id: <id_unknown>] expected 1 inputs but got 1000 inputs for model 'identity_fp32'";
    assert_eq!((error.code(), error.message()), (Code::InvalidArgument, text));
}

/// A connection may have this many open calls.
const MAX_CALLS_PER_CONNECTION: usize = 1000;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_connection_has_at_most_a_thousand_open_calls() {
    let f = Fixture::start();
    let client = f.client().await;
    f.gate.set(true);
    let mut calls = tokio::task::JoinSet::new();
    for i in 0..MAX_CALLS_PER_CONNECTION + 200 {
        let mut client = client.clone();
        calls.spawn(async move {
            client.model_infer(vector("gated", &i.to_string(), &[1.0])).await.map(drop)
        });
    }
    let open = || f.server.as_ref().expect("running").requests_in_flight();
    eventually("as many as may be are open", || open() == MAX_CALLS_PER_CONNECTION);
    // Calls on another connection, so that the first one would have gone on meanwhile.
    let mut other = f.client().await;
    for _ in 0..20 {
        other.model_infer(vector("identity_fp32", "", &[1.0])).await.expect("goes on serving");
    }
    assert_eq!(open(), MAX_CALLS_PER_CONNECTION);
    f.gate.set(false);
    while let Some(call) = calls.join_next().await {
        call.expect("no panic").expect("those that waited are answered too");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_unread_response_resets_only_its_call() {
    let options = GrpcOptions { limits: impatient(), ..GrpcOptions::default() };
    let f = Fixture::with_options(&options);
    // Windows of 64 KiB.
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{}", f.address()))
        .expect("a uri")
        .initial_stream_window_size(65_535);
    let channel = channel.connect().await.expect("connects");
    let mut unread = channel.clone();
    let message = vector("identity_fp32", "", &vec![1.0; 1 << 20]).encode_to_vec();
    let body = [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat();
    let uri = format!("http://{}/inference.GRPCInferenceService/ModelInfer", f.address());
    let request = http::Request::post(uri)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(http_body_util::Full::from(body)))
        .expect("a request");
    std::future::poll_fn(|cx| unread.poll_ready(cx)).await.expect("ready");
    let response = unread.call(request).await.expect("headers");
    let mut client = Client::new(channel);
    let open = || f.server.as_ref().expect("running").requests_in_flight();
    assert_eq!(open(), 1);
    while open() > 0 {
        client.model_infer(vector("identity_fp32", "", &[1.0])).await.expect("goes on serving");
    }
    drop(response);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn metadata_is_limited() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let with_value = |length: usize| {
        let mut request = tonic::Request::new(vector("identity_fp32", "", &[1.0]));
        let value = "v".repeat(length).parse().expect("metadata");
        request.metadata_mut().insert("x-long", value);
        request
    };
    client.model_infer(with_value(8 << 10)).await.expect("short enough");
    client.model_infer(with_value(32 << 10)).await.expect_err("too long");
    f.client().await.model_infer(with_value(0)).await.expect("goes on serving");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn classifications_over_the_memory_budget_are_refused() {
    let memory = MemoryBudget::new(4 << 20);
    let options = GrpcOptions { memory: memory.clone(), ..GrpcOptions::default() };
    let f = Fixture::with_options(&options);
    let mut client = f.client().await;
    let asked = |count| {
        let classes = pb::infer_parameter::ParameterChoice::Int64Param(count);
        let request = vector("identity_fp32", "", &vec![1.0; 200_000]);
        with_output(request, "OUTPUT0", &[("classification", classes)])
    };
    let error = client.model_infer(asked(200_000)).await.expect_err("12 MB of classes");
    assert_eq!(error.code(), Code::ResourceExhausted);
    client.model_infer(asked(10)).await.expect("a few");
    let mut call = open(&mut client, false).await;
    call.send(asked(200_000));
    assert!(call.reply().await.error.contains("--memory-budget"));
    call.send(asked(10));
    assert_eq!(call.reply().await.error, "");
    call.end().await;
    eventually("everything is given back", || memory.used() == 0);
}

/// Ten messages exceed the budget together: some are accepted, the others refused, and none waits for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_messages_over_the_budget_are_refused_without_waiting() {
    let memory = MemoryBudget::new(16 << 20);
    let options = GrpcOptions { memory: memory.clone(), ..GrpcOptions::default() };
    let f = Fixture::with_options(&options);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let mut client = f.client().await;
        calls.spawn(async move {
            client.model_infer(vector("identity_fp32", "", &vec![1.0; 1_500_000])).await.map(drop)
        });
    }
    while let Some(call) = calls.join_next().await {
        if let Err(status) = call.expect("no panic") {
            assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        }
    }
    eventually("everything is given back", || memory.used() == 0);
}
