//! Everything besides inference: health, metadata, repository, statistics, metrics.

use galatea_engine::ControlMode;
use galatea_http::HttpOptions;

use crate::{Fixture, client::Client};

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

#[test]
fn health_and_metadata_are_answered() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    client.get("/v2/health/live").check(200, TEXT, "");
    client.get("/v2/health/ready").check(200, TEXT, "");
    client.get("/v2/models/simple/ready").check(200, TEXT, "");
    client.get("/v2/models/simple/versions/1/ready").check(200, TEXT, "");
    let not_ready = r#"{"error":"Model version not ready"}"#;
    client.get("/v2/models/nope/ready").check(400, TEXT, not_ready);
    client.get("/v2/models/simple/versions/3/ready").check(400, TEXT, not_ready);
    client.get("/v2/models/identity_fp32?x=1").check(
        200,
        JSON,
        r#"{"name":"identity_fp32","versions":["1"],"platform":"failing","inputs":[{"name":"INPUT0","datatype":"FP32","shape":[-1]}],"outputs":[{"name":"OUTPUT0","datatype":"FP32","shape":[-1]}]}"#,
    );
    let server = client.get("/v2");
    let (text, version) = (server.text(), env!("CARGO_PKG_VERSION"));
    assert!(text.starts_with(r#"{"name":"triton","version":"2.74.0","extensions":["#), "{text}");
    assert!(text.ends_with(&format!(r#"],"implementation":"galatea {version}"}}"#)), "{text}");
    assert_eq!(server.header("Server"), Some(&*format!("galatea/{version}")));
    let config = client.get("/v2/models/simple/config");
    assert!(config.text().starts_with(r#"{"name":"simple","platform":"","backend":"add_sub","#));
    assert!(config.text().contains(r#""max_batch_size":8"#));
}

#[test]
fn unknown_paths_are_not_found() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    for path in ["/", "/v2/", "/metrics", "/v2/models/simple/", "/v2/models/simple/versions/x"] {
        client.get(path).check(404, TEXT, r#"{"error":"Not Found"}"#);
    }
    let unknown =
        |what: &str| format!(r#"{{"error":"Request for unknown model: '{what} is not found"}}"#);
    client.get("/v2/models/nope").check(404, JSON, &unknown("nope'"));
    client.get("/v2/models/nope/config").check(404, JSON, &unknown("nope'"));
    client.get("/v2/models/simple/versions/2").check(404, JSON, &unknown("simple' version 2"));
    client.post("/v2/models/nope/infer", "{bad").check(404, TEXT, &unknown("nope'"));
    client.get("/v2/models/simple/versions/99999999999999999999").check(
        400,
        JSON,
        r#"{"error":"failed to get model version from specified version string '99999999999999999999' (details: stol), version should be an integral value > 0"}"#,
    );
    client.get("/v2/models/nope/stats").check(
        400,
        JSON,
        r#"{"error":"requested model 'nope' is not available"}"#,
    );
}

#[test]
fn wrong_methods_are_not_allowed() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let body = r#"{"error":"Method Not Allowed"}"#;
    for (method, path, content_type) in [
        ("POST", "/v2", JSON),
        ("OPTIONS", "/v2", JSON),
        ("POST", "/v2/health/live", TEXT),
        ("GET", "/v2/models/simple/infer", TEXT),
        ("PUT", "/v2/models/simple/infer", TEXT),
        ("GET", "/v2/repository/index", JSON),
        ("BREW", "/v2", JSON),
    ] {
        client.request(method, path, &[], b"").check(405, content_type, body);
    }
    assert_eq!(client.request("HEAD", "/v2", &[], b"").status, 405);
    client.get("/v2/health/live").check(200, TEXT, "");
}

#[test]
fn regions_are_registered_only_with_the_flag() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let disabled = r#"{"error":"Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."}"#;
    for kind in ["system", "cuda"] {
        for call in ["register", "region/r/register", "unregister", "region/r/unregister"] {
            let path = format!("/v2/{kind}sharedmemory/{call}");
            client.post(&path, "{").check(501, JSON, disabled);
        }
        client.get(&format!("/v2/{kind}sharedmemory/status")).check(200, JSON, "[]");
    }
    client.get("/v2/systemsharedmemory/region/r/status").check(
        404,
        JSON,
        r#"{"error":"Unable to find system shared memory region: 'r'"}"#,
    );
}

#[test]
fn trace_settings_are_read_and_changed() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let settings = |rate| {
        format!(
            r#"{{"trace_level":["OFF"],"trace_rate":"{rate}","trace_count":"-1","log_frequency":"0","trace_file":"","trace_mode":"triton"}}"#
        )
    };
    client.get("/v2/trace/setting").check(200, JSON, &settings("1000"));
    client.post("/v2/trace/setting", r#"{"trace_rate":"7"}"#).check(200, JSON, &settings("7"));
    let of_model = "/v2/models/simple/trace/setting";
    client.post(of_model, r#"{"trace_rate":"3"}"#).check(200, JSON, &settings("3"));
    client.get(of_model).check(200, JSON, &settings("3"));
    client.get("/v2/trace/setting").check(200, JSON, &settings("7"));
    client.post("/v2/trace/setting", r#"{"trace_level":["TIMESTAMPS"],"trace_rate":"1"}"#).check(
        400,
        JSON,
        r#"{"error":"Attempting to set invalid trace setting :trace file name is not given"}"#,
    );
    client.get("/v2/trace/setting").check(200, JSON, &settings("7"));
    client.get("/v2/models/none/trace/setting").check(
        400,
        JSON,
        r#"{"error":"Request for unknown model : none"}"#,
    );
}

#[test]
fn log_settings_are_read_and_changed() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let settings = |info, level, format| {
        format!(
            r#"{{"log_file":"","log_info":{info},"log_warning":true,"log_error":true,"log_verbose_level":{level},"log_format":"{format}"}}"#
        )
    };
    client.get("/v2/logging").check(200, JSON, &settings(true, 0, "default"));
    let change = r#"{"log_info":false,"log_verbose_level":1,"log_format":"ISO8601"}"#;
    client.post("/v2/logging", change).check(200, JSON, &settings(false, 1, "ISO8601"));
    // What comes before the mistake is changed.
    client.post("/v2/logging", r#"{"log_format":"plain","log_info":true}"#).check(
        503,
        JSON,
        r#"{"error":"invalid argument for --log_format, got: plain"}"#,
    );
    client.get("/v2/logging").check(200, JSON, &settings(true, 1, "ISO8601"));
    client.post("/v2/logging", r#"{"log_file":"/etc/passwd"}"#).check(
        501,
        JSON,
        r#"{"error":"log file location can not be updated through network protocol"}"#,
    );
}

#[test]
fn models_are_loaded_and_unloaded() {
    let fixture = Fixture::with(ControlMode::Explicit, HttpOptions::default());
    let mut client = Client::connect(fixture.address);
    let index = client.post("/v2/repository/index", "");
    assert!(index.text().starts_with(r#"[{"name":"identity_bytes"},{"name":"identity_fp32"},"#));
    client.post("/v2/repository/models/simple/load", "{}").check(200, JSON, "");
    client.post("/v2/repository/index", r#"{"ready":true}"#).check(
        200,
        JSON,
        r#"[{"name":"simple","version":"1","state":"READY"}]"#,
    );
    client.post("/v2/repository/models/simple/unload", "").check(200, JSON, "");
    client.get("/v2/models/simple/ready").check(
        400,
        TEXT,
        r#"{"error":"Model version not ready"}"#,
    );
    client.post("/v2/repository/models/nope/unload", "").check(200, JSON, "");
    assert_eq!(client.post("/v2/repository/models/nope/load", "").status, 500);
    client.post("/v2/repository/models/simple/load", r#"{"parameters":{"foo":"x"}}"#).check(
        500,
        JSON,
        r#"{"error":"unexpected error on creating Triton parameter"}"#,
    );
    client.post("/v2/repository/r/models/simple/load", "").check(
        501,
        JSON,
        r#"{"error":"'repository_name' specification is not supported"}"#,
    );
}

#[test]
fn the_metrics_port_serves_metrics_only() {
    let fixture = Fixture::start();
    let metrics = fixture.metrics();
    let mut client = Client::connect(metrics.local_addr().expect("TCP"));
    let prometheus = "text/plain; charset=utf-8";
    for path in ["/metrics", "/metrics/"] {
        let reply = client.get(path);
        assert_eq!((reply.status, reply.header("Content-Type")), (200, Some(prometheus)));
        assert!(reply.text().contains("nv_inference_request_success"), "{}", reply.text());
    }
    client.get("/foo").check(200, prometheus, "");
    client.post("/metrics", "").check(405, TEXT, r#"{"error":"Method Not Allowed"}"#);
}

/// The protocol has a body for it, which Triton leaves out and its clients do not read.
#[test]
fn health_is_returned_as_json_on_request() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    for (path, what) in [("/v2/health/live", "live"), ("/v2/health/ready", "ready")] {
        assert_eq!(client.get(path).body, b"");
        let body = format!("{{\"{what}\":true}}");
        for header in
            [("Accept", "text/html, application/json"), ("User-Agent", "python-httpx/0.28.1")]
        {
            client.request("GET", path, &[header], b"").check(200, "application/json", &body);
        }
        let reply = client.request("GET", path, &[("Accept", "application/json;q=0, */*")], b"");
        assert_eq!(reply.body, b"");
    }
}
