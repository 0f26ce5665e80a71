//! The front ends of cloud platforms.

use galatea_frontend::{FrontEnd, RestrictedApis};
use galatea_http::{
    CloudFrontEnd, CloudInference, HttpOptions, PathPattern, SageMakerModels, serve_cloud,
};

use crate::{
    Fixture, any_port,
    client::{Client, HEADER_LENGTH, fp32},
};

const SAGEMAKER: &str = "application/vnd.sagemaker-triton.binary+json;json-header-size=";
const REDIRECT: &str = "X-Vertex-Ai-Triton-Redirect";

fn start(fixture: &Fixture, platform: CloudFrontEnd, options: &HttpOptions) -> (FrontEnd, Client) {
    let server = serve_cloud(any_port(), &fixture.engine, options, platform).expect("serves");
    let client = Client::connect(server.local_addr().expect("TCP"));
    (server, client)
}

fn sagemaker(inference: CloudInference) -> CloudFrontEnd {
    CloudFrontEnd::SageMaker {
        pings_liveness: false,
        model: "identity_fp32".to_owned(),
        inference,
        models: SageMakerModels::below("/nonexistent"),
    }
}

fn vertex_ai() -> CloudFrontEnd {
    CloudFrontEnd::VertexAi {
        predict_route: PathPattern::new("/predict").expect("a path"),
        health_route: PathPattern::new("/health").expect("a path"),
        model: "identity_fp32".to_owned(),
    }
}

#[test]
fn sagemaker_serves_one_model() {
    let fixture = Fixture::start();
    let options = HttpOptions::default();
    let (_server, mut client) = start(&fixture, sagemaker(CloudInference::Infer), &options);
    assert_eq!(client.get("/ping").status, 200);
    assert_eq!(client.post("/ping", "").status, 405);
    let reply = client.post("/invocations", fp32("[1]", 1));
    assert_eq!((reply.status, reply.header("Content-Type")), (200, Some("application/json")));
    assert_eq!(client.get("/invocations").status, 405);
    for path in ["/v2", "/v2/models/identity_fp32/infer", "/other", "/models/a/b"] {
        client.post(path, "{}").check(400, "text/plain", "");
    }
    let (_server, mut client) = start(&fixture, sagemaker(CloudInference::Generate), &options);
    assert!(client.post("/invocations", r#"{"INPUT0":1}"#).text().contains(r#""OUTPUT0":1.0"#));
    let events = sagemaker(CloudInference::GenerateStream);
    let (_server, mut client) = start(&fixture, events, &options);
    assert!(client.post("/invocations", r#"{"INPUT0":1}"#).text().starts_with("data: {"));
}

#[test]
fn the_media_type_carries_the_json_length_in_both_directions() {
    let fixture = Fixture::start();
    let options = HttpOptions::default();
    let (_server, mut client) = start(&fixture, sagemaker(CloudInference::Infer), &options);
    let json = r#"{"inputs":[{"name":"INPUT0","shape":[1],"datatype":"FP32","parameters":{"binary_data_size":4}}],"parameters":{"binary_data_output":true}}"#;
    let body = [json.as_bytes(), &1f32.to_le_bytes()].concat();
    let mut ask = |media_type: &str| {
        let headers = [("Content-Type", media_type), ("Accept-Encoding", "gzip")];
        client.request("POST", "/invocations", &headers, &body)
    };
    let reply = ask(&format!("{SAGEMAKER}{}", json.len()));
    assert_eq!((reply.status, reply.header(HEADER_LENGTH)), (200, None), "{}", reply.text());
    let length = reply.header("Content-Type").and_then(|t| t.strip_prefix(SAGEMAKER));
    let length: usize = length.and_then(|n| n.parse().ok()).expect("a length");
    assert_eq!(&reply.body[length..], 1f32.to_le_bytes());
    for (media_type, text) in [
        (format!("{SAGEMAKER}9999"), "inference header size should be in range (0, "),
        (format!("{SAGEMAKER}x"), "Unable to parse inference header size, got: x"),
        (format!("x{SAGEMAKER}1"), "expect MIME type for binary data starts with '"),
    ] {
        let reply = ask(&media_type);
        assert_eq!(reply.status, 400);
        assert!(reply.text().contains(text), "{}", reply.text());
    }
}

#[test]
fn vertex_ai_redirects_only_to_read_routes() {
    let fixture = Fixture::start();
    let (_server, mut client) = start(&fixture, vertex_ai(), &HttpOptions::default());
    assert_eq!(client.get("/health").status, 200);
    assert_eq!(client.post("/predict", fp32("[1]", 1)).status, 200);
    assert_eq!(client.post("/v2/models/identity_fp32/infer", fp32("[1]", 1)).status, 400);
    let mut redirected = |to: &str, body: &str| {
        client.request("POST", "/predict", &[(REDIRECT, to)], body.as_bytes())
    };
    let reply = redirected("v2/models/simple/config", "");
    assert!(reply.text().contains(r#""name":"simple""#), "{}", reply.text());
    assert_eq!(redirected("v2/models/identity_fp32/infer", &fp32("[1]", 1)).status, 200);
    assert!(redirected("metrics", "").text().contains("nv_inference_count"));
    assert!(redirected("v2/repository/index", "").text().contains("READY"));
    for (to, status) in [
        ("v2/health/ready", 200),
        ("v2", 200),
        ("v2/repository/models/simple/load", 403),
        ("v2/repository/models/simple/unload", 403),
        ("v2/repository/r/models/simple/unload", 403),
        ("v2/systemsharedmemory/region/r/register", 403),
        ("v2/cudasharedmemory/unregister", 403),
        ("v2/systemsharedmemory/status", 200),
        ("v2/logging", 400),
        ("/v2", 400),
        ("predict", 400),
        ("", 400),
    ] {
        assert_eq!(redirected(to, "").status, status, "{to}");
    }
    let reply = client.request("GET", "/predict", &[(REDIRECT, "v2")], b"");
    assert_eq!(reply.status, 405);
}

#[test]
fn vertex_ai_answers_binary_tensors_like_the_v2_routes() {
    let fixture = Fixture::start();
    let (_server, mut client) = start(&fixture, vertex_ai(), &HttpOptions::default());
    let body = fp32("[1]", 1).replacen('{', r#"{"parameters":{"binary_data_output":true},"#, 1);
    let headers = [("Accept-Encoding", "gzip")];
    let reply = client.request("POST", "/predict", &headers, body.as_bytes());
    assert_eq!(reply.header("Content-Type"), Some("application/octet-stream"));
    let length: usize = reply.header(HEADER_LENGTH).and_then(|n| n.parse().ok()).expect("a length");
    assert_eq!(&reply.body[length..], 1f32.to_le_bytes());
}

#[test]
fn restrictions_apply_to_cloud_routes_too() {
    let fixture = Fixture::start();
    let mut restricted_apis = RestrictedApis::default();
    restricted_apis.restrict("inference,model-config:key=secret", "api", "").expect("a rule");
    let options = HttpOptions { restricted_apis, ..Default::default() };
    let (_one, mut sagemaker) = start(&fixture, sagemaker(CloudInference::Infer), &options);
    assert_eq!(sagemaker.post("/invocations", fp32("[1]", 1)).status, 403);
    let (_two, mut vertex_ai) = start(&fixture, vertex_ai(), &options);
    let config = [(REDIRECT, "v2/models/simple/config")];
    assert_eq!(vertex_ai.request("POST", "/predict", &config, b"").status, 403);
    assert_eq!(vertex_ai.post("/predict", fp32("[1]", 1)).status, 403);
    let with_key = [config[0], ("key", "secret")];
    assert_eq!(vertex_ai.request("POST", "/predict", &with_key, b"").status, 200);
}
