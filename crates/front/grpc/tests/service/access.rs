//! Restricted protocols.

use galatea_frontend::RestrictedApis;
use galatea_grpc::GrpcOptions;
use galatea_proto::{health::HealthCheckRequest, inference as pb};
use tonic::{Code, Request, codegen::tokio_stream};

use crate::support::*;

fn restricted(rules: &[&str]) -> GrpcOptions {
    let mut apis = RestrictedApis::default();
    for rule in rules {
        apis.restrict(rule, "protocol", "triton-grpc-protocol-").expect("a rule");
    }
    GrpcOptions { restricted_protocols: apis, ..GrpcOptions::default() }
}

fn keyed<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("triton-grpc-protocol-key", "secret".parse().expect("a value"));
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_restricted_call_is_refused_on_every_path() {
    let f = Fixture::with_options(&restricted(&["inference,health:key=secret"]));
    let mut client = f.client().await;
    let mut health = HealthClient::new(f.channel().await);
    let request = || vector("identity_fp32", "r", &[1.0]);
    let mut refused = Vec::new();
    refused.push(client.model_infer(request()).await.expect_err("no key"));
    let large = vector("identity_fp32", "r", &vec![1.0; 1_000_000]);
    refused.push(client.model_infer(large).await.expect_err("no key"));
    refused.push(client.server_live(pb::ServerLiveRequest {}).await.expect_err("no key"));
    refused.push(health.check(HealthCheckRequest::default()).await.expect_err("no key"));
    refused.push(health.watch(HealthCheckRequest::default()).await.expect_err("no key"));
    // The client of this stream never ends it.
    let endless = tokio_stream::pending::<pb::ModelInferRequest>();
    refused.push(client.model_stream_infer(endless).await.expect_err("no key"));
    for status in refused {
        let text = "This protocol is restricted, expecting header 'triton-grpc-protocol-key'";
        assert_eq!((status.code(), status.message()), (Code::Unavailable, text));
    }
    client.model_infer(keyed(request())).await.expect("has the key");
    health.check(keyed(HealthCheckRequest::default())).await.expect("has the key");
    client.server_metadata(pb::ServerMetadataRequest {}).await.expect("is open to all");
}
