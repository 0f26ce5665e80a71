//! Cancelling, loading beside inference, a Unix socket, and the end of the server.

use std::{os::unix::net::UnixListener, time::Duration};

use galatea_grpc::{GrpcOptions, serve};
use galatea_proto::{
    health::{HealthCheckRequest, health_check_response::ServingStatus},
    inference as pb,
};
use tonic::{Code, Request, transport::Endpoint};

use crate::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_dropped_call_cancels_its_request() {
    let f = Fixture::start();
    let mut client = f.client().await;
    f.gate.set(true);
    let call = tokio::spawn(async move { client.model_infer(vector("gated", "c", &[1.0])).await });
    let (id, cancellation) = f.arrival();
    assert_eq!((id.as_str(), cancellation.is_cancelled()), ("c", false));
    call.abort();
    eventually("the request is cancelled", || cancellation.is_cancelled());
    f.gate.set(false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deadline_cancels_its_request() {
    let f = Fixture::start();
    let mut client = f.client().await;
    f.gate.set(true);
    let mut request = Request::new(vector("gated", "d", &[1.0]));
    request.set_timeout(Duration::from_millis(200));
    let status = client.model_infer(request).await.expect_err("too late");
    assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status}");
    let (_, cancellation) = f.arrival();
    eventually("the request is cancelled", || cancellation.is_cancelled());
    f.gate.set(false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn models_are_loaded_and_unloaded_during_inference() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let index = async |client: &mut Client, ready| {
        let request = pb::RepositoryIndexRequest { repository_name: String::new(), ready };
        client.repository_index(request).await.expect("index").into_inner().models
    };
    let later = |models: &[pb::repository_index_response::ModelIndex]| {
        models
            .iter()
            .find(|m| m.name == "later")
            .map(|m| (m.version.clone(), m.state.clone(), m.reason.clone()))
    };
    let before = index(&mut client, false).await;
    assert_eq!((before.len(), later(&before)), (9, Some(Default::default())));
    assert_eq!(later(&index(&mut client, true).await), None);
    let request =
        pb::RepositoryModelLoadRequest { model_name: "later".into(), ..Default::default() };
    client.repository_model_load(request).await.expect("loads");
    client.model_infer(vector("later", "", &[1.0])).await.expect("serves");
    let now = later(&index(&mut client, true).await);
    assert_eq!(now, Some(("1".into(), "READY".into(), String::new())));
    let request =
        pb::RepositoryModelUnloadRequest { model_name: "later".into(), ..Default::default() };
    client.repository_model_unload(request).await.expect("unloads");
    let error = client.model_infer(vector("later", "", &[1.0])).await.expect_err("gone");
    assert_eq!(error.code(), Code::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_health_watcher_gets_changes_and_does_not_delay_the_exit() {
    let mut f = Fixture::start();
    let mut client = HealthClient::new(f.channel().await);
    let watch = client.watch(HealthCheckRequest::default()).await.expect("watches");
    let mut statuses = watch.into_inner();
    let mut next = async || {
        let status = statuses.message().await.map(|m| m.map(|m| m.status()));
        status.map_err(|e| (e.code(), e.message().to_owned()))
    };
    assert_eq!(next().await, Ok(Some(ServingStatus::Serving)));
    f.break_model("later");
    f.engine.load_model("later", Default::default()).expect_err("no such backend");
    assert_eq!(next().await, Ok(Some(ServingStatus::NotServing)));
    let server = f.server.take().expect("running");
    server.refuse_new_requests();
    let text = "GRPC server is shutting down and has stopped accepting new requests.";
    assert_eq!(next().await, Err((Code::Unavailable, text.to_owned())));
    client.watch(HealthCheckRequest::default()).await.expect_err("refused");
    assert_eq!(server.shut_down(Duration::from_secs(20)), 0);
}

/// The name may be a service, a model or neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_health_check_accepts_services_and_models() {
    let f = Fixture::start();
    let mut client = HealthClient::new(f.channel().await);
    let mut check = async |service: &str| {
        let answer = client.check(HealthCheckRequest { service: service.to_owned() }).await;
        answer.map(|answer| answer.into_inner().status()).map_err(|status| status.code())
    };
    for name in ["", "inference.GRPCInferenceService", "grpc.health.v1.Health", "identity_fp32"] {
        assert_eq!(check(name).await, Ok(ServingStatus::Serving), "{name}");
    }
    assert_eq!(check("nobody").await, Err(Code::NotFound));
    assert_eq!(check(&"long".repeat(2000)).await, Err(Code::InvalidArgument));
    let watch = HealthCheckRequest { service: "nobody".into() };
    let mut statuses = client.watch(watch).await.expect("watches").into_inner();
    let first = statuses.message().await.expect("told").expect("not the end");
    assert_eq!(first.status(), ServingStatus::ServiceUnknown);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn inference_works_over_a_unix_socket() {
    let f = Fixture::start();
    let folder = tempfile::tempdir().expect("temp dir");
    let path = folder.path().join("grpc");
    let listener = UnixListener::bind(&path).expect("binds");
    let _server = serve(listener, &f.engine, &GrpcOptions::default()).expect("serves");
    let endpoint = Endpoint::from_shared(format!("unix:{}", path.display())).expect("a uri");
    let mut client = Client::new(endpoint.connect().await.expect("connects"));
    let answer = client.model_infer(vector("identity_fp32", "u", &[1.0, 2.0])).await;
    assert_eq!(answer.expect("answered").into_inner().raw_output_contents, [floats(&[1.0, 2.0])]);
}

const SHUTTING_DOWN: &str = "GRPC server is shutting down and has stopped accepting new requests.";

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shutdown_finishes_calls_in_progress() {
    let mut f = Fixture::start();
    let mut client = f.client().await;
    f.gate.set(true);
    let call = tokio::spawn({
        let mut client = client.clone();
        async move { client.model_infer(vector("gated", "", &[1.0])).await }
    });
    f.arrival();
    let server = f.server.take().expect("running");
    server.refuse_new_requests();
    let status =
        client.model_infer(vector("identity_fp32", "", &[1.0])).await.expect_err("refused");
    assert_eq!((status.code(), status.message()), (Code::Unavailable, SHUTTING_DOWN));
    let status = client.server_live(pb::ServerLiveRequest {}).await.expect_err("refused");
    assert_eq!(status.message(), SHUTTING_DOWN);
    f.gate.set(false);
    call.await.expect("no panic").expect("the call in flight is answered");
    assert_eq!(server.shut_down(Duration::from_secs(20)), 0);
    assert!(client.server_live(pb::ServerLiveRequest {}).await.is_err(), "nobody listens any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shutdown_ends_at_its_deadline() {
    let mut f = Fixture::start();
    let mut client = f.client().await;
    f.gate.set(true);
    let call = tokio::spawn(async move { client.model_infer(vector("gated", "", &[1.0])).await });
    f.arrival();
    let server = f.server.take().expect("running");
    assert_eq!(server.shut_down(Duration::ZERO), 1);
    call.await.expect("no panic").expect_err("cut off");
    f.gate.set(false);
}
