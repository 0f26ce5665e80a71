//! Malformed requests through a real connection: each gets its status and a message that names the thing,
//! and the server serves on.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use crate::support::*;
use bytes::Bytes;
use galatea_proto::inference::{
    self as pb, ModelInferRequest, infer_parameter::ParameterChoice,
    model_repository_parameter::ParameterChoice as LoadChoice,
};
use http_body::Frame;
use prost::Message as _;
use tonic::{Code, Status, body::Body, codegen::Service as _};

fn invalid(text: &str) -> (Code, String) {
    (Code::InvalidArgument, text.to_owned())
}

fn with_id(text: &str) -> (Code, String) {
    invalid(&format!("[request id: <id_unknown>] {text}"))
}

fn outcome<T>(result: Result<T, Status>) -> (Code, String) {
    match result {
        Ok(_) => (Code::Ok, String::new()),
        Err(status) => (status.code(), status.message().to_owned()),
    }
}

fn good() -> ModelInferRequest {
    vector("identity_fp32", "", &[1.0, 2.0])
}

fn changed(change: impl FnOnce(&mut ModelInferRequest)) -> ModelInferRequest {
    let mut request = good();
    change(&mut request);
    request
}

fn simple(shapes: [&[i64]; 2]) -> ModelInferRequest {
    let size = |shape: &[i64]| vec![0u8; shape.iter().product::<i64>() as usize * 4].into();
    ModelInferRequest {
        model_name: "simple".into(),
        inputs: vec![input("INPUT0", "INT32", shapes[0]), input("INPUT1", "INT32", shapes[1])],
        raw_input_contents: shapes.map(size).into(),
        ..Default::default()
    }
}

const MISSING: &str = "expected 2 inputs but got 1 inputs for model 'simple'. Got input(s) ['INPUT0'], but \
missing required input(s) ['INPUT1']. Please provide all required input(s).";
const TIED: &str = "expected 1 inputs but got 0 inputs for model 'identity_fp32'. Got input(s) [], but \
missing required input(s) ['INPUT0']. Please provide all required input(s).";

fn inference_cases() -> Vec<(ModelInferRequest, (Code, String))> {
    let not_found = |text: &str| (Code::NotFound, text.to_owned());
    vec![
        (
            changed(|r| r.model_name = "nope".into()),
            not_found("Request for unknown model: 'nope' is not found"),
        ),
        (
            changed(|r| r.model_name.clear()),
            not_found("Request for unknown model: '' is not found"),
        ),
        (
            changed(|r| r.model_version = "7".into()),
            not_found("Request for unknown model: 'identity_fp32' version 7 is not found"),
        ),
        (
            changed(|r| r.model_version = "0".into()),
            not_found("Request for unknown model: 'identity_fp32' version 0 is not found"),
        ),
        (
            changed(|r| r.model_version = "x".into()),
            invalid(
                "failed to get model version from specified version string 'x' (details: stol), version should be an integral value > 0",
            ),
        ),
        (
            changed(|r| r.model_version = "-1".into()),
            invalid(
                "invalid model version specified '-1' , version should be an integral value > 0",
            ),
        ),
        (
            changed(|r| r.raw_input_contents[0] = Bytes::from_static(b"abc")),
            with_id(
                "input byte size mismatch for input 'INPUT0' for model 'identity_fp32'. Expected 8, got 3",
            ),
        ),
        (
            changed(|r| r.raw_input_contents[0].clear()),
            with_id(
                "input byte size mismatch for input 'INPUT0' for model 'identity_fp32'. Expected 8, got 0",
            ),
        ),
        (
            changed(|r| r.raw_input_contents.clear()),
            invalid(
                "unable to find data for input tensor 'INPUT0' for model 'identity_fp32' in request.",
            ),
        ),
        (
            changed(|r| {
                r.inputs.clear();
                r.raw_input_contents.clear()
            }),
            with_id(TIED),
        ),
        (changed(|r| r.inputs.clear()), with_id(TIED)),
        (
            changed(|r| r.inputs[0].name = "ZZ".into()),
            invalid(
                "unexpected inference input 'ZZ' for model 'identity_fp32' (its inputs: 'INPUT0')",
            ),
        ),
        (
            changed(|r| r.inputs[0].datatype = "INT32".into()),
            with_id(
                "inference input 'INPUT0' data-type is 'INT32', but model 'identity_fp32' expects 'FP32'",
            ),
        ),
        (
            changed(|r| r.inputs[0].datatype = "TYPE_FP32".into()),
            with_id(
                "inference input 'INPUT0' data-type is '<invalid>', but model 'identity_fp32' expects 'FP32'",
            ),
        ),
        (
            changed(|r| r.inputs[0].shape = vec![3]),
            with_id(
                "input byte size mismatch for input 'INPUT0' for model 'identity_fp32'. Expected 12, got 8",
            ),
        ),
        (
            changed(|r| r.inputs[0].shape = vec![]),
            with_id(
                "unexpected shape for input 'INPUT0' for model 'identity_fp32'. Expected [-1], got []. ",
            ),
        ),
        (
            changed(|r| r.inputs[0].shape = vec![1, 2]),
            with_id(
                "unexpected shape for input 'INPUT0' for model 'identity_fp32'. Expected [-1], got [1,2]. \
                 The model takes no batch dimension, its max_batch_size is 0: send [2].",
            ),
        ),
        (
            changed(|r| r.inputs[0].shape = vec![-1]),
            with_id(
                "All input dimensions should be specified for input 'INPUT0' for model 'identity_fp32', got [-1]",
            ),
        ),
        (
            simple([&[9, 16], &[9, 16]]),
            with_id("inference request batch-size must be <= 8 for 'simple'"),
        ),
        (
            changed(|r| {
                *r = simple([&[1, 16], &[1, 16]]);
                r.inputs.pop();
            }),
            with_id(MISSING),
        ),
        (
            with_output(good(), "NOPE", &[]),
            invalid(
                "unexpected inference output 'NOPE' for model 'identity_fp32' (its outputs: 'OUTPUT0')",
            ),
        ),
        (
            with_output(good(), "OUTPUT0", &[("classification", ParameterChoice::BoolParam(true))]),
            invalid("invalid value type for 'classification' parameter, expected int64_param"),
        ),
        (
            with_parameter(good(), "priority", ParameterChoice::Int64Param(-1)),
            invalid("invalid value for 'priority', expected value >= 0."),
        ),
        (
            with_parameter(good(), "timeout", ParameterChoice::BoolParam(true)),
            invalid("invalid value type for 'timeout' parameter, expected int64_param."),
        ),
        (
            changed(|r| r.inputs.push(r.inputs[0].clone())),
            with_id("input 'INPUT0' already exists in request"),
        ),
        (
            with_output(good(), "OUTPUT0", &[("classification", ParameterChoice::Int64Param(-1))]),
            invalid("invalid value for 'classification' parameter, expected >= 0"),
        ),
        (
            with_parameter(
                vector("failing", "", &[1.0]),
                "fail",
                ParameterChoice::StringParam("execute".into()),
            ),
            (Code::Internal, "model 'failing' was told to fail".into()),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_inference_requests_are_refused() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let cases = inference_cases();
    assert!(cases.len() >= 25);
    for (request, expected) in cases {
        assert_eq!(outcome(client.model_infer(request).await), expected);
    }
    // Numbers that no buffer can have: the text is ours, as Triton's arithmetic overflows here.
    for shape in [vec![i64::MAX], vec![-2], vec![i64::MIN], vec![i64::MAX, i64::MAX], vec![0]] {
        let request = changed(|r| r.inputs[0].shape = shape);
        assert_eq!(outcome(client.model_infer(request).await).0, Code::InvalidArgument);
    }
    client.model_infer(good()).await.expect("the server serves on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_model_calls_are_refused() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let version = "failed to get model version from specified version string 'x' (details: stol), version should be an integral value > 0";
    let named = |name: &str, version: &str| (name.to_owned(), version.to_owned());
    let unknown = (Code::NotFound, "Request for unknown model: 'nope' is not found".to_owned());
    for ((name, v), expected) in [
        (named("nope", ""), unknown.clone()),
        (named("nope", "x"), invalid(version)),
        (
            named("simple", "9"),
            (Code::NotFound, "Request for unknown model: 'simple' version 9 is not found".into()),
        ),
    ] {
        let request = pb::ModelMetadataRequest { name: name.clone(), version: v.clone() };
        assert_eq!(outcome(client.model_metadata(request).await), expected);
        let request = pb::ModelConfigRequest { name, version: v };
        assert_eq!(outcome(client.model_config(request).await), expected);
    }
    let request = pb::ModelReadyRequest { name: "simple".into(), version: "x".into() };
    assert_eq!(outcome(client.model_ready(request).await), invalid(version));
    for (name, v, expected) in [
        ("nope", "", invalid("requested model 'nope' is not available")),
        ("simple", "9", invalid("requested model version is not available for model 'simple'")),
        ("simple", "x", invalid(version)),
        ("", "3", (Code::Ok, String::new())),
    ] {
        let request = pb::ModelStatisticsRequest { name: name.into(), version: v.into() };
        assert_eq!(outcome(client.model_statistics(request).await), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_repository_calls_are_refused() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let elsewhere =
        (Code::Unimplemented, "'repository_name' specification is not supported".to_owned());
    let request = pb::RepositoryIndexRequest { repository_name: "r".into(), ready: false };
    assert_eq!(outcome(client.repository_index(request).await), elsewhere);
    let request =
        pb::RepositoryModelLoadRequest { repository_name: "r".into(), ..Default::default() };
    assert_eq!(outcome(client.repository_model_load(request).await), elsewhere);
    let request =
        pb::RepositoryModelUnloadRequest { repository_name: "r".into(), ..Default::default() };
    assert_eq!(outcome(client.repository_model_unload(request).await), elsewhere);

    for (key, choice, text) in [
        (
            "config",
            LoadChoice::Int64Param(3),
            "invalid value type for load parameter 'config', expected string_param.",
        ),
        (
            "config",
            LoadChoice::BytesParam("{}".into()),
            "invalid value type for load parameter 'config', expected string_param.",
        ),
        (
            "file:1/x",
            LoadChoice::StringParam("s".into()),
            "invalid value type for load parameter 'file:1/x', expected bytes_param.",
        ),
        ("zz", LoadChoice::StringParam("s".into()), "unrecognized load parameter 'zz'."),
        (
            "unload_dependents",
            LoadChoice::BoolParam(true),
            "unrecognized load parameter 'unload_dependents'.",
        ),
    ] {
        let request = pb::RepositoryModelLoadRequest {
            model_name: "later".into(),
            parameters: [(key.to_owned(), repository_parameter(choice))].into(),
            ..Default::default()
        };
        assert_eq!(outcome(client.repository_model_load(request).await), invalid(text));
    }
    let request = pb::RepositoryModelUnloadRequest {
        model_name: "later".into(),
        parameters: [(
            "unload_dependents".to_owned(),
            repository_parameter(LoadChoice::Int64Param(1)),
        )]
        .into(),
        ..Default::default()
    };
    let expected =
        invalid("invalid value type for 'unload_dependents' parameter, expected bool_param.");
    assert_eq!(outcome(client.repository_model_unload(request).await), expected);
    let request =
        pb::RepositoryModelLoadRequest { model_name: "nope".into(), ..Default::default() };
    let (code, text) = outcome(client.repository_model_load(request).await);
    assert_eq!(code, Code::Internal);
    assert!(
        text.starts_with("failed to load 'nope', failed to poll from model repository"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn regions_are_registered_only_with_the_flag() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let request = pb::SystemSharedMemoryStatusRequest::default();
    assert!(
        client
            .system_shared_memory_status(request)
            .await
            .expect("none")
            .into_inner()
            .regions
            .is_empty()
    );
    let request = pb::CudaSharedMemoryStatusRequest::default();
    assert!(
        client
            .cuda_shared_memory_status(request)
            .await
            .expect("none")
            .into_inner()
            .regions
            .is_empty()
    );
    let request = pb::SystemSharedMemoryStatusRequest { name: "r".into() };
    let expected = (Code::NotFound, "Unable to find system shared memory region: 'r'".to_owned());
    assert_eq!(outcome(client.system_shared_memory_status(request).await), expected);
    let disabled = "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.";
    let expected = (Code::Unimplemented, disabled.to_owned());
    let request = pb::SystemSharedMemoryRegisterRequest::default();
    assert_eq!(outcome(client.system_shared_memory_register(request).await), expected);
    let request = pb::SystemSharedMemoryUnregisterRequest::default();
    assert_eq!(outcome(client.system_shared_memory_unregister(request).await), expected);
    let request = pb::CudaSharedMemoryRegisterRequest::default();
    assert_eq!(outcome(client.cuda_shared_memory_register(request).await), expected);
    let request = pb::CudaSharedMemoryUnregisterRequest::default();
    assert_eq!(outcome(client.cuda_shared_memory_unregister(request).await), expected);
}

/// A body of exactly these bytes.
struct Raw(Option<Bytes>);

impl http_body::Body for Raw {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Sends `body` as it is and reads the status out of the answer's headers, where an error stands.
async fn call_raw(f: &Fixture, path: &str, body: Vec<u8>) -> (Code, String) {
    let mut channel = f.channel().await;
    let request = http::Request::post(format!("http://{}{path}", f.address()))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(Raw(Some(body.into()))))
        .expect("a request");
    std::future::poll_fn(|cx| channel.poll_ready(cx)).await.expect("ready");
    let response = channel.call(request).await.expect("a response");
    let status = Status::from_header_map(response.headers()).expect("an error in the headers");
    (status.code(), status.message().to_owned())
}

fn framed(flag: u8, length: u32, message: &[u8]) -> Vec<u8> {
    [&[flag][..], &length.to_be_bytes(), message].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn broken_frames_are_refused() {
    let f = Fixture::start();
    let infer = "/inference.GRPCInferenceService/ModelInfer";
    let message = good().encode_to_vec();
    let length = message.len() as u32;
    let short = "the request ends before its message does";
    let long = "the request holds more than one message";
    let bad = "Unable to parse request (byte 0: no field begins here, or it is cut off)";
    let cut = "Unable to parse request (raw_input_contents, byte 34: the field is longer than what follows)";
    let no_text =
        "Unable to parse request (model_name, byte 2: the field takes UTF-8 text, and this is not)";
    for (body, code, text) in [
        (framed(0, 3, &[0xff; 3]), Code::Internal, bad),
        (framed(0, length - 1, &message[..message.len() - 1]), Code::Internal, cut),
        (framed(0, 4, &[0x0a, 2, 0xff, 0xfe]), Code::Internal, no_text),
        (Vec::new(), Code::Internal, short),
        (vec![0, 0], Code::Internal, short),
        (framed(0, length + 1, &message), Code::Internal, short),
        (framed(0, length - 1, &message), Code::Internal, long),
        (
            framed(1, length, &message),
            Code::Internal,
            "a message is flagged as compressed, but grpc-encoding does not say how",
        ),
        (
            framed(2, length, &message),
            Code::Internal,
            "the flag before a message is 2, and neither 0 nor 1",
        ),
        (
            framed(0, u32::MAX, &message),
            Code::ResourceExhausted,
            "Received message larger than max (4294967295 vs. 67108864). Use --grpc-max-message-size to increase the \
             limit.",
        ),
    ] {
        assert_eq!(call_raw(&f, infer, body).await, (code, text.to_owned()));
    }
    let (code, _) =
        call_raw(&f, "/inference.GRPCInferenceService/ModelReady", framed(0, 3, &[0xff; 3])).await;
    assert_eq!(code, Code::Internal);
    f.client().await.model_infer(good()).await.expect("the server serves on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn unknown_methods_and_services_are_refused() {
    let f = Fixture::start();
    for path in [
        "/inference.GRPCInferenceService/Nope",
        "/grpc.reflection.v1.ServerReflection/Nope",
        "/x/Y",
        "/",
    ] {
        let expected = (Code::Unimplemented, String::new());
        assert_eq!(call_raw(&f, path, framed(0, 0, &[])).await, expected, "{path}");
    }
}
