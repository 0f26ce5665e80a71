//! ModelInfer and the calls about models and the server, through a real client.

use crate::support::*;
use galatea_grpc::GrpcOptions;
use galatea_proto::{
    health::{HealthCheckRequest, health_check_response::ServingStatus},
    inference::{self as pb, InferTensorContents, infer_parameter::ParameterChoice},
};
use prost::Message as _;
use tonic::Code;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_and_server_metadata_are_answered() {
    let f = Fixture::start();
    let mut client = f.client().await;
    assert!(client.server_live(pb::ServerLiveRequest {}).await.expect("live").into_inner().live);
    assert!(
        client.server_ready(pb::ServerReadyRequest {}).await.expect("ready").into_inner().ready
    );
    let metadata =
        client.server_metadata(pb::ServerMetadataRequest {}).await.expect("metadata").into_inner();
    assert_eq!((metadata.name.as_str(), metadata.version.as_str()), ("triton", "2.74.0"));
    assert_eq!(metadata.implementation, concat!("galatea ", env!("CARGO_PKG_VERSION")));
    assert_eq!(metadata.extensions, f.engine.extensions());
    let mut health = HealthClient::new(f.channel().await);
    for service in ["", "simple"] {
        let request = HealthCheckRequest { service: service.into() };
        let answer = health.check(request).await.expect("health").into_inner();
        assert_eq!(answer.status, i32::from(ServingStatus::Serving));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn model_metadata_and_configuration_are_answered() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let request = pb::ModelMetadataRequest { name: "simple".into(), version: "1".into() };
    let metadata = client.model_metadata(request).await.expect("metadata").into_inner();
    assert_eq!((metadata.name.as_str(), &metadata.versions[..]), ("simple", &["1".to_owned()][..]));
    assert_eq!(metadata.platform, "add_sub");
    assert_eq!(metadata.inputs.len(), 2);
    let output = &metadata.outputs[1];
    assert_eq!(
        (output.name.as_str(), output.datatype.as_str(), &output.shape[..]),
        ("OUTPUT1", "INT32", &[-1, 16][..])
    );

    let request = pb::ModelConfigRequest { name: "simple".into(), version: String::new() };
    let config =
        client.model_config(request).await.expect("config").into_inner().config.expect("there");
    assert_eq!((config.name.as_str(), config.max_batch_size), ("simple", 8));

    let mut ready = async |name: &str, version: &str| {
        let request = pb::ModelReadyRequest { name: name.into(), version: version.into() };
        client.model_ready(request).await.expect("an answer").into_inner().ready
    };
    assert!(ready("simple", "").await && ready("simple", "1").await);
    assert!(!ready("simple", "9").await && !ready("nope", "").await && !ready("later", "").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn raw_inputs_give_raw_outputs() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let numbers: Vec<u8> = (0..16i32).flat_map(i32::to_le_bytes).collect();
    let ones: Vec<u8> = [1i32; 16].iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut request = pb::ModelInferRequest {
        model_name: "simple".into(),
        id: "a7".into(),
        inputs: vec![input("INPUT0", "INT32", &[1, 16]), input("INPUT1", "INT32", &[1, 16])],
        raw_input_contents: vec![numbers.into(), ones.into()],
        ..Default::default()
    };
    let answer = client.model_infer(request.clone()).await.expect("an answer").into_inner();
    assert_eq!(
        (answer.model_name.as_str(), answer.model_version.as_str(), answer.id.as_str()),
        ("simple", "1", "a7")
    );
    let names: Vec<&str> = answer.outputs.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["OUTPUT0", "OUTPUT1"]);
    let sums: Vec<u8> = (1..17i32).flat_map(i32::to_le_bytes).collect();
    assert_eq!(answer.raw_output_contents[0][..], sums);
    assert!(answer.parameters.is_empty());

    request = with_output(request, "OUTPUT1", &[]);
    let answer = client.model_infer(request).await.expect("an answer").into_inner();
    assert_eq!(answer.outputs.len(), 1);
    assert_eq!(answer.raw_output_contents[0][..4], (-1i32).to_le_bytes());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn large_tensors_round_trip() {
    let f = Fixture::start();
    let mut client = f.client().await;
    for count in [0, 1, 4_000, 5_000, 100_000, 3_000_000] {
        let values: Vec<f32> = (0..count).map(|i| i as f32).collect();
        let request = vector("identity_fp32", "", &values);
        let expected = request.raw_input_contents[0].clone();
        let answer = client.model_infer(request).await.expect("an answer").into_inner();
        assert!(answer.raw_output_contents[0] == expected, "{count} values");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn classification_and_strings_are_answered() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let mut request = vector("labelled", "", &[1.0, 5.0, 3.0, 2.0, 9.0, 8.0, 7.0, 6.0]);
    request.inputs[0].shape = vec![2, 4];
    let request =
        with_output(request, "OUTPUT0", &[("classification", ParameterChoice::Int64Param(2))]);
    let answer = client.model_infer(request).await.expect("an answer").into_inner();
    assert_eq!(
        (answer.outputs[0].datatype.as_str(), &answer.outputs[0].shape[..]),
        ("BYTES", &[2, 2][..])
    );
    let expected = b"\x0e\0\0\x005.000000:1:dog\x0f\0\0\x003.000000:2:bird\
                     \x0e\0\0\x009.000000:0:cat\x0e\0\0\x008.000000:1:dog";
    assert_eq!(&answer.raw_output_contents[0][..], expected);

    let mut request = pb::ModelInferRequest {
        model_name: "identity_bytes".into(),
        inputs: vec![input("INPUT0", "BYTES", &[2])],
        ..Default::default()
    };
    let words = vec!["ab".into(), "".into()];
    request.inputs[0].contents =
        Some(InferTensorContents { bytes_contents: words, ..Default::default() });
    let answer = client.model_infer(request.clone()).await.expect("an answer").into_inner();
    assert_eq!(&answer.raw_output_contents[0][..], b"\x02\0\0\0ab\0\0\0\0");

    // Triton dies of this one.
    let request =
        with_output(request, "OUTPUT0", &[("classification", ParameterChoice::Int64Param(2))]);
    let error = client.model_infer(request).await.expect_err("no order among words");
    assert_eq!(
        error.message(),
        "class result not available for output due to unsupported type 'BYTES'"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn statistics_count_successful_requests() {
    let f = Fixture::start();
    let mut client = f.client().await;
    for _ in 0..3 {
        client.model_infer(vector("identity_fp32", "", &[1.0])).await.expect("an answer");
    }
    let request = pb::ModelStatisticsRequest { name: "identity_fp32".into(), version: "1".into() };
    let answer = client.model_statistics(request).await.expect("statistics").into_inner();
    let stats = &answer.model_stats[0];
    assert_eq!((stats.name.as_str(), stats.version.as_str()), ("identity_fp32", "1"));
    assert_eq!((stats.inference_count, stats.execution_count), (3, 3));
    assert!(stats.last_inference > 1_600_000_000_000);
    let durations = stats.inference_stats.as_ref().expect("always there");
    for (what, duration, count) in [
        ("success", &durations.success, 3),
        ("fail", &durations.fail, 0),
        ("queue", &durations.queue, 3),
        ("compute_input", &durations.compute_input, 3),
        ("compute_infer", &durations.compute_infer, 3),
        ("compute_output", &durations.compute_output, 3),
        ("cache_hit", &durations.cache_hit, 0),
        ("cache_miss", &durations.cache_miss, 0),
    ] {
        assert_eq!(duration.as_ref().map(|d| d.count), Some(count), "{what}");
    }
    assert_eq!(stats.batch_stats.len(), 1);
    assert_eq!(stats.batch_stats[0].batch_size, 1);
    assert_eq!(stats.batch_stats[0].compute_infer.as_ref().map(|d| d.count), Some(3));

    let all = client.model_statistics(pb::ModelStatisticsRequest::default()).await.expect("all");
    assert_eq!(all.into_inner().model_stats.len(), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn many_concurrent_calls_share_one_connection() {
    let f = Fixture::start();
    let client = f.client().await;
    let mut calls = tokio::task::JoinSet::new();
    for i in 0..300u16 {
        let mut client = client.clone();
        calls.spawn(async move {
            let request = vector("identity_fp32", &i.to_string(), &[f32::from(i)]);
            (i, client.model_infer(request).await.expect("an answer").into_inner())
        });
    }
    let mut count = 0;
    while let Some(call) = calls.join_next().await {
        let (i, answer) = call.expect("no panic");
        assert_eq!(
            (answer.id, &answer.raw_output_contents[0]),
            (i.to_string(), &floats(&[f32::from(i)]))
        );
        count += 1;
    }
    assert_eq!(count, 300);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_message_over_the_limit_is_refused_in_both_directions() {
    let options =
        GrpcOptions { max_message_size: 1000, max_response_size: 1000, ..GrpcOptions::default() };
    let f = Fixture::with_options(&options);
    let mut client = f.client().await;
    let error =
        client.model_infer(vector("identity_fp32", "", &[0.0; 500])).await.expect_err("too long");
    assert_eq!(error.code(), Code::ResourceExhausted);
    let text = "Received message larger than max (2038 vs. 1000). Use --grpc-max-message-size to increase the \
                limit.";
    assert_eq!(error.message(), text);
    // The answer names the version too, so it is a little longer than the longest request.
    let mut request = vector("identity_fp32", "", &[0.0; 100]);
    while request.encoded_len() < 1000 {
        request.id.push('i');
    }
    let error = client.model_infer(request).await.expect_err("too long");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().starts_with("Response has byte size 10"), "{error}");
    assert!(error.message().ends_with(" which exceeds gRPC's byte size limit 1000."), "{error}");
    client.model_infer(vector("identity_fp32", "", &[0.0; 10])).await.expect("goes on serving");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_panic_fails_only_its_request() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let panics = || {
        let choice = ParameterChoice::StringParam("panic".into());
        with_parameter(vector("failing", "", &[1.0]), "fail", choice)
    };
    let error = client.model_infer(panics()).await.expect_err("the model panics");
    assert_eq!(error.code(), Code::Internal);
    client.model_infer(vector("failing", "", &[1.0])).await.expect("the next one is answered");
}
