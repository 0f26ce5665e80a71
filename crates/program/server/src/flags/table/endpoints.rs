//! Options of the services: HTTP, gRPC, SageMaker, Vertex AI.

use std::time::Duration;

use galatea_command_line::{Kind, Occurrence, options, set};
use galatea_grpc::ResponseCompression;
use galatea_http::MetricsScope;

use super::{
    super::{
        access,
        error::{FlagError, StoreResult},
        serve_flags::ServeFlags,
        setting,
    },
    row::{OWN_THREADS, PORT, PORT_IF_ON, Row, at_least},
};

pub const HTTP: &[Row] = options! {
    /// Serve HTTP. Default is true, or false if the environment has AIP_MODE=PREDICTION.
    "allow-http" => Row::of(Kind::Bool).fills(|o| &mut o.http.is_allowed),
    /// Address to serve HTTP at; unix:<path> is a Unix socket instead of a port.
    "http-address" => Row::of(Kind::Text).default("0.0.0.0").fills(|o| &mut o.http.address),
    /// Port to serve HTTP at; 0 takes a free one.
    "http-port" => Row::of(PORT_IF_ON).default("8000").fills(|o| &mut o.http.port),
    /// Let several servers listen at the same HTTP port; the system spreads connections over them.
    "reuse-http-port" => Row::of(Kind::Bool).default("false").fills(|o| &mut o.http.reuses_port),
    /// HTTP headers whose names match this expression, anywhere and in any case, become parameters of an inference
    /// request.
    "http-header-forward-pattern" => Row::of(Kind::Text)
        .stores(set!(|o, v| o.serve.http_options.header_forwarding = access::header_forwarding(v)?)),
    /// Most threads that serve HTTP. The server starts no more than there are cores.
    "http-thread-count" => Row::of(at_least(1))
        .default("8").fills(|o| &mut o.serve.http_options.thread_count),
    /// Most bytes of the JSON of an HTTP request, of each tensor decoded from it, and of a body after decompression.
    /// For binary tensors only --memory-budget counts.
    "http-max-input-size" => Row::of(at_least(1))
        .default("67108864").fills(|o| &mut o.serve.http_options.max_input_size),
    /// Serve the metrics at /metrics of the HTTP port too, for pickers that read them where they send requests: all, or with server
    /// only those without figures of models.
    "http-metrics" => Row::of(Kind::Choice(&["false", "true", "server"]))
        .default("false")
        .stores(metrics_beside_inference),
    /// Answers to inference requests that carry a load report (ORCA): those to requests with the header or metadata
    /// endpoint-load-metrics-format, or all.
    "send-load-reports" => Row::of(Kind::Choice(&["asked", "always"]))
        .default("asked")
        .stores(load_reports),
    /// HTTP calls that need a header: <apis>:<header>=<value>, with APIs of health, metadata, inference,
    /// shared-memory, model-config, model-repository, statistics, trace and logging, separated by commas. May be
    /// repeated.
    "http-restricted-api" => Row::of(Kind::Form("<string>:<string>=<string>"))
        .stores(access::http_restricted_api),
    /// Serve HTTP over TLS: file (PEM) with the server's certificate, followed by the intermediate certificates. The
    /// server reads it again when it changes.
    "https-cert" => Row::of(Kind::Text).fills(|o| &mut o.http_tls.certificates),
    /// File with the key of that certificate (PEM).
    "https-key" => Row::of(Kind::Text).fills(|o| &mut o.http_tls.key),
    /// File (PEM) with the authorities of clients' certificates. Every HTTP client must show a certificate of one of
    /// them.
    "https-root-cert" => Row::of(Kind::Text).fills(|o| &mut o.http_tls.client_roots),
};

pub const GRPC: &[Row] = options! {
    /// Serve gRPC. Default is true, or false if the environment has AIP_MODE=PREDICTION.
    "allow-grpc" => Row::of(Kind::Bool).fills(|o| &mut o.grpc.is_allowed),
    /// Address to serve gRPC at; unix:<path> is a Unix socket instead of a port.
    "grpc-address" => Row::of(Kind::Text).default("0.0.0.0").fills(|o| &mut o.grpc.address),
    /// Port to serve gRPC at; 0 takes a free one.
    "grpc-port" => Row::of(PORT_IF_ON).default("8001").fills(|o| &mut o.grpc.port),
    /// Let several servers listen at the same gRPC port; the system spreads connections over them.
    "reuse-grpc-port" => Row::of(Kind::Bool).default("false").fills(|o| &mut o.grpc.reuses_port),
    /// gRPC metadata whose names match this expression, anywhere and in any case, become parameters of the requests
    /// of an inference call.
    "grpc-header-forward-pattern" => Row::of(Kind::Text)
        .stores(set!(|o, v| o.serve.grpc_options.header_forwarding = access::header_forwarding(v)?)),
    /// Most threads that serve gRPC. The server starts no more than there are cores.
    "grpc-infer-thread-count" => Row::of(Kind::Integer { min: 2, max: 128 })
        .default("2").fills(|o| &mut o.serve.grpc_options.thread_count),
    /// Most bytes of a gRPC message that a client may send.
    "grpc-max-message-size" => Row::of(at_least(1))
        .default("67108864").fills(|o| &mut o.serve.grpc_options.max_message_size),
    /// Requests kept allocated for reuse.
    "grpc-infer-allocation-pool-size" => Row::of(at_least(0))
        .default("8").no_effect("requests are not pooled"),
    /// Queues of gRPC events.
    "grpc-infer-cq-count" => Row::of(at_least(1))
        .default("1")
        .no_effect("the threads of --grpc-infer-thread-count share no queue of events"),
    /// Responses kept allocated for reuse.
    "grpc-max-response-pool-size" => Row::of(at_least(1))
        .default("2147483647").no_effect("responses are not pooled"),
    /// Encrypt gRPC connections (TLS), with the certificate and key of --grpc-server-cert and --grpc-server-key.
    "grpc-use-ssl" => Row::of(Kind::Bool).default("false").fills(|o| &mut o.grpc_tls.is_on),
    /// Require that clients show a certificate of an authority in --grpc-root-cert. This option switches --grpc-use-ssl
    /// on. Default is false.
    "grpc-use-ssl-mutual" => Row::of(Kind::Bool).stores(mutual_tls),
    /// File (PEM) with the server's certificate, followed by the intermediate certificates. The server reads it again
    /// when it changes.
    "grpc-server-cert" => Row::of(Kind::Text).fills(|o| &mut o.grpc_tls.certificates),
    /// File with the key of that certificate (PEM).
    "grpc-server-key" => Row::of(Kind::Text).fills(|o| &mut o.grpc_tls.key),
    /// File with the authorities of clients' certificates (PEM), for --grpc-use-ssl-mutual.
    "grpc-root-cert" => Row::of(Kind::Text).fills(|o| &mut o.grpc_tls.client_roots),
    /// Compression level of inference responses.
    "grpc-infer-response-compression-level" => Row::of(Kind::Choice(&["none", "low", "medium", "high"]))
        .default("none")
        .stores(response_compression),
    /// Milliseconds without traffic after which the server probes a connection.
    "grpc-keepalive-time" => Row::of(at_least(1))
        .default("7200000")
        .stores(set!(|o, v| o.serve.grpc_options.keepalive_time = Duration::from_millis(v.integer()?))),
    /// Milliseconds after which the server closes a connection that does not answer a probe.
    "grpc-keepalive-timeout" => Row::of(at_least(1))
        .default("20000")
        .stores(set!(|o, v| o.serve.grpc_options.keepalive_timeout = Duration::from_millis(v.integer()?))),
    /// Allow as many pings on a connection without calls as on others; otherwise one in two hours.
    "grpc-keepalive-permit-without-calls" => Row::of(Kind::Bool)
        .default("false").fills(|o| &mut o.serve.grpc_options.pings.are_usual_without_calls),
    /// Most pings that the server sends without data between them.
    "grpc-http2-max-pings-without-data" => Row::of(at_least(0))
        .default("2").no_effect("probes are sent at --grpc-keepalive-time and not otherwise"),
    /// Milliseconds that a client must wait between pings if the server sends nothing between them. Faster pings are
    /// bad pings.
    "grpc-http2-min-recv-ping-interval-without-data" => Row::of(at_least(0))
        .default("300000")
        .stores(set!(|o, v| o.serve.grpc_options.pings.min_interval = Duration::from_millis(v.integer()?))),
    /// Number of bad pings that the server tolerates before it closes the connection; 0: any number.
    "grpc-http2-max-ping-strikes" => Row::of(at_least(0))
        .default("2").fills(|o| &mut o.serve.grpc_options.pings.max_strikes),
    /// Milliseconds after which, approximately, a connection takes no new calls, so that its client opens another. 0:
    /// no limit.
    "grpc-max-connection-age" => Row::of(at_least(0))
        .stores(set!(|o, v| o.serve.grpc_options.max_connection_age = milliseconds(v)?)),
    /// Milliseconds that calls may continue on a connection past its age. 0: no limit.
    "grpc-max-connection-age-grace" => Row::of(at_least(0))
        .stores(set!(|o, v| o.serve.grpc_options.max_connection_age_grace = milliseconds(v)?)),
    /// gRPC calls that need metadata: <protocols>:<key>=<value>, with protocols of health, metadata, inference,
    /// shared-memory, model-config, model-repository, statistics, trace and logging, separated by commas. Clients
    /// send the value as triton-grpc-protocol-<key>. May be repeated.
    "grpc-restricted-protocol" => Row::of(Kind::Form("<string>:<string>=<string>"))
        .stores(access::grpc_restricted_protocol),
    /// Let clients register shared memory regions: files of /dev/shm that requests read inputs from and have outputs
    /// written to.
    "allow-client-shm" => Row::of(Kind::Bool)
        .default("false").fills(|o| &mut o.serve.engine.allows_client_regions),
};

pub const SAGEMAKER: &[Row] = options! {
    /// Serve SageMaker requests, for one model and for many, at the address of HTTP.
    "allow-sagemaker" => Row::of(Kind::Bool).default("false").fills(|o| &mut o.allows_sagemaker),
    /// Port of the SageMaker endpoint.
    "sagemaker-port" => Row::of(PORT).default("8080").fills(|o| &mut o.sagemaker_port),
    /// Ports the other endpoints may use beside SageMaker.
    "sagemaker-safe-port-range" => Row::of(Kind::Form("<integer>-<integer>"))
        .stores(setting::safe_port_range),
    /// Threads that serve SageMaker requests.
    "sagemaker-thread-count" => Row::of(at_least(1)).default("8").no_effect(OWN_THREADS),
};

pub const VERTEX: &[Row] = options! {
    /// Serve Vertex AI requests, at the address of HTTP. Default is true if the environment has AIP_MODE=PREDICTION.
    "allow-vertex-ai" => Row::of(Kind::Bool).fills(|o| &mut o.allows_vertex_ai),
    /// Port of the Vertex AI endpoint. Default: AIP_HTTP_PORT, or 8080.
    "vertex-ai-port" => Row::of(PORT).fills(|o| &mut o.vertex_ai_port),
    /// Threads that serve Vertex AI requests.
    "vertex-ai-thread-count" => Row::of(at_least(1)).default("8").no_effect(OWN_THREADS),
    /// Model for Vertex AI requests that name none. Default: the only model that is loaded.
    "vertex-ai-default-model" => Row::of(Kind::Text).fills(|o| &mut o.vertex_ai_default_model),
};

fn mutual_tls(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    flags.grpc_tls.is_on = true;
    given.put(&mut flags.grpc_tls.is_mutual)
}

fn metrics_beside_inference(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    flags.serve.http_options.metrics = match given.text.to_ascii_lowercase().as_str() {
        "true" => Some(MetricsScope::All),
        "server" => Some(MetricsScope::Server),
        _ => None,
    };
    Ok(())
}

fn load_reports(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    let is_always = given.text.eq_ignore_ascii_case("always");
    flags.serve.http_options.always_reports_load = is_always;
    flags.serve.grpc_options.always_reports_load = is_always;
    Ok(())
}

fn response_compression(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    let level = given.text.to_ascii_lowercase();
    flags.serve.grpc_options.response_compression = match level.as_str() {
        "low" => ResponseCompression::Low,
        "medium" => ResponseCompression::Medium,
        "high" => ResponseCompression::High,
        _ => ResponseCompression::None,
    };
    Ok(())
}

/// Reads milliseconds; 0 means no limit.
fn milliseconds(given: &Occurrence) -> Result<Option<Duration>, FlagError> {
    let millis: u64 = given.integer()?;
    Ok((millis > 0).then(|| Duration::from_millis(millis)))
}
