//! Options of the services: HTTP, gRPC, SageMaker, Vertex AI.

use std::time::Duration;

use galatea_command_line::{Kind, Occurrence, set};
use galatea_grpc::ResponseCompression;

use super::{
    super::{
        access,
        error::{FlagError, Stored},
        serve_flags::ServeFlags,
        setting,
    },
    row::{OWN_THREADS, PORT, PORT_IF_ON, Row, at_least},
};

pub const HTTP: &[Row] = &[
    Row::new(
        "allow-http",
        Kind::Bool,
        "Serve HTTP. Default is true, and false where the environment has AIP_MODE=PREDICTION.",
    )
    .stores(|o, v| v.put(&mut o.http.is_allowed)),
    Row::new("http-address", Kind::Text, "Address to serve HTTP at.")
        .default("0.0.0.0")
        .stores(|o, v| v.put(&mut o.http.address)),
    Row::new("http-port", PORT_IF_ON, "Port to serve HTTP at; 0 takes a free one.")
        .default("8000")
        .stores(|o, v| v.put(&mut o.http.port)),
    Row::new(
        "reuse-http-port",
        Kind::Bool,
        "Let several servers listen at the same HTTP port; the system spreads connections \
         over them.",
    )
    .default("false")
    .stores(|o, v| v.put(&mut o.http.reuses_port)),
    Row::new(
        "http-header-forward-pattern",
        Kind::Text,
        "HTTP headers whose names match this expression, anywhere and in any case, become \
         parameters of an inference request.",
    )
    .stores(set!(|o, v| o.http_options.header_forwarding = access::header_forwarding(v)?)),
    Row::new(
        "http-thread-count",
        at_least(1),
        "Most threads that serve HTTP; no more are started than there are cores.",
    )
    .default("8")
    .stores(|o, v| v.put(&mut o.http_options.thread_count)),
    Row::new(
        "http-max-input-size",
        at_least(1),
        "Longest JSON of an HTTP request, in bytes, also of each tensor decoded from it and of \
         what a compressed body holds. Binary tensors count to --memory-budget alone.",
    )
    .default("67108864")
    .stores(|o, v| v.put(&mut o.http_options.max_input_size)),
    Row::new(
        "http-restricted-api",
        Kind::Form("<string>:<string>=<string>"),
        "HTTP calls that need a header: <apis>:<header>=<value>, with APIs of health, metadata, \
         inference, shared-memory, model-config, model-repository, statistics, trace and logging, \
         separated by commas. May be repeated.",
    )
    .stores(access::http_restricted_api),
    Row::new(
        "https-cert",
        Kind::Text,
        "Serve HTTP over TLS: file with the server's certificate and those that lead to its authority (PEM). Read again \
         when it changes.",
    )
    .stores(|o, v| v.put(&mut o.http_tls.certificates)),
    Row::new("https-key", Kind::Text, "File with the key of that certificate (PEM).")
        .stores(|o, v| v.put(&mut o.http_tls.key)),
    Row::new(
        "https-root-cert",
        Kind::Text,
        "HTTP clients must show a certificate of an authority in this file (PEM).",
    )
    .stores(|o, v| v.put(&mut o.http_tls.client_roots)),
];

pub const GRPC: &[Row] = &[
    Row::new(
        "allow-grpc",
        Kind::Bool,
        "Serve gRPC. Default is true, and false where the environment has AIP_MODE=PREDICTION.",
    )
    .stores(|o, v| v.put(&mut o.grpc.is_allowed)),
    Row::new("grpc-address", Kind::Text, "Address to serve gRPC at.")
        .default("0.0.0.0")
        .stores(|o, v| v.put(&mut o.grpc.address)),
    Row::new("grpc-port", PORT_IF_ON, "Port to serve gRPC at; 0 takes a free one.")
        .default("8001")
        .stores(|o, v| v.put(&mut o.grpc.port)),
    Row::new(
        "reuse-grpc-port",
        Kind::Bool,
        "Let several servers listen at the same gRPC port; the system spreads connections \
         over them.",
    )
    .default("false")
    .stores(|o, v| v.put(&mut o.grpc.reuses_port)),
    Row::new(
        "grpc-header-forward-pattern",
        Kind::Text,
        "gRPC metadata whose names match this expression, anywhere and in any case, become \
         parameters of the requests of an inference call.",
    )
    .stores(set!(|o, v| o.grpc_options.header_forwarding = access::header_forwarding(v)?)),
    Row::new(
        "grpc-infer-thread-count",
        Kind::Integer { min: 2, max: 128 },
        "Most threads that serve gRPC; no more are started than there are cores.",
    )
    .default("2")
    .stores(|o, v| v.put(&mut o.grpc_options.thread_count)),
    Row::new("grpc-max-message-size", at_least(1), "Longest gRPC message taken, in bytes.")
        .default("67108864")
        .stores(|o, v| v.put(&mut o.grpc_options.max_message_size)),
    Row::new("grpc-infer-allocation-pool-size", at_least(0), "Requests kept allocated for reuse.")
        .default("8")
        .no_effect("requests are not pooled"),
    Row::new("grpc-infer-cq-count", at_least(1), "Queues of gRPC events.")
        .default("1")
        .no_effect("the threads of --grpc-infer-thread-count share no queue of events"),
    Row::new("grpc-max-response-pool-size", at_least(1), "Responses kept allocated for reuse.")
        .default("2147483647")
        .no_effect("responses are not pooled"),
    Row::new(
        "grpc-use-ssl",
        Kind::Bool,
        "Encrypt gRPC connections (TLS), with the certificate and key of --grpc-server-cert and --grpc-server-key.",
    )
    .default("false")
    .stores(|o, v| v.put(&mut o.grpc_tls.is_on)),
    Row::new(
        "grpc-use-ssl-mutual",
        Kind::Bool,
        "Clients must show a certificate of an authority in --grpc-root-cert. Given at all, it \
         switches --grpc-use-ssl on. Default is false.",
    )
        .stores(|o, v| {
        o.grpc_tls.is_on = true;
        v.put(&mut o.grpc_tls.is_mutual)
    }),
    Row::new(
        "grpc-server-cert",
        Kind::Text,
        "File with the server's certificate and those that lead to its authority (PEM). Read again when it changes.",
    )
    .stores(|o, v| v.put(&mut o.grpc_tls.certificates)),
    Row::new("grpc-server-key", Kind::Text, "File with the key of that certificate (PEM).")
        .stores(|o, v| v.put(&mut o.grpc_tls.key)),
    Row::new(
        "grpc-root-cert",
        Kind::Text,
        "File with the authorities of clients' certificates (PEM), for --grpc-use-ssl-mutual.",
    )
    .stores(|o, v| v.put(&mut o.grpc_tls.client_roots)),
    Row::new(
        "grpc-infer-response-compression-level",
        Kind::Choice(&["none", "low", "medium", "high"]),
        "How much inference responses are compressed.",
    )
    .default("none")
    .stores(response_compression),
    Row::new(
        "grpc-keepalive-time",
        at_least(1),
        "A connection without traffic is probed after this many milliseconds.",
    )
    .default("7200000")
    .stores(set!(|o, v| o.grpc_options.keepalive_time = Duration::from_millis(v.integer()?))),
    Row::new(
        "grpc-keepalive-timeout",
        at_least(1),
        "A probed connection that does not answer within this many milliseconds is closed.",
    )
    .default("20000")
    .stores(set!(|o, v| o.grpc_options.keepalive_timeout = Duration::from_millis(v.integer()?))),
    Row::new(
        "grpc-keepalive-permit-without-calls",
        Kind::Bool,
        "Bear as many pings on a connection without calls as on others; else one in two hours.",
    )
    .default("false")
    .stores(|o, v| v.put(&mut o.grpc_options.pings.are_usual_without_calls)),
    Row::new(
        "grpc-http2-max-pings-without-data",
        at_least(0),
        "Most pings sent without data between.",
    )
    .default("2")
    .no_effect("probes are sent at --grpc-keepalive-time and not otherwise"),
    Row::new(
        "grpc-http2-min-recv-ping-interval-without-data",
        at_least(0),
        "Pings that come faster than this many milliseconds, with nothing sent between, are bad ones.",
    )
    .default("300000")
    .stores(set!(|o, v| o.grpc_options.pings.min_interval = Duration::from_millis(v.integer()?))),
    Row::new(
        "grpc-http2-max-ping-strikes",
        at_least(0),
        "Bad pings that a connection is not closed for; 0: any number.",
    )
    .default("2")
    .stores(|o, v| v.put(&mut o.grpc_options.pings.max_strikes)),
    Row::new(
        "grpc-max-connection-age",
        at_least(0),
        "After about this many milliseconds a connection takes no new calls, and its client opens \
         another. 0: it lives as long as the client wants.",
    )
    .stores(set!(|o, v| o.grpc_options.max_connection_age = milliseconds(v)?)),
    Row::new(
        "grpc-max-connection-age-grace",
        at_least(0),
        "How long calls on a connection past its age may go on, in milliseconds. 0: as long as they \
         take.",
    )
    .stores(set!(|o, v| o.grpc_options.max_connection_age_grace = milliseconds(v)?)),
    Row::new(
        "grpc-restricted-protocol",
        Kind::Form("<string>:<string>=<string>"),
        "gRPC calls that need metadata: <protocols>:<key>=<value>, with protocols of health, \
         metadata, inference, shared-memory, model-config, model-repository, statistics, trace and \
         logging, separated by commas. Clients send the value as triton-grpc-protocol-<key>. May be \
         repeated.",
    )
    .stores(access::grpc_restricted_protocol),
    Row::new("allow-client-shm", Kind::Bool, "Let clients register shared memory regions.")
        .default("false")
        .missing("regions cannot be registered; the calls for it answer with an error"),
];

pub const SAGEMAKER: &[Row] = &[
    Row::new(
        "allow-sagemaker",
        Kind::Bool,
        "Serve SageMaker requests, for one model and for many, at the address of HTTP.",
    )
    .default("false")
    .stores(|o, v| v.put(&mut o.allows_sagemaker)),
    Row::new("sagemaker-port", PORT, "Port of the SageMaker endpoint.")
        .default("8080")
        .stores(|o, v| v.put(&mut o.sagemaker_port)),
    Row::new(
        "sagemaker-safe-port-range",
        Kind::Form("<integer>-<integer>"),
        "Ports the other endpoints may use beside SageMaker.",
    )
    .stores(setting::safe_port_range),
    Row::new("sagemaker-thread-count", at_least(1), "Threads that serve SageMaker requests.")
        .default("8")
        .no_effect(OWN_THREADS),
];

pub const VERTEX: &[Row] = &[
    Row::new(
        "allow-vertex-ai",
        Kind::Bool,
        "Serve Vertex AI requests, at the address of HTTP. Without it, where the environment has \
         AIP_MODE=PREDICTION.",
    )
    .stores(|o, v| v.put(&mut o.allows_vertex_ai)),
    Row::new(
        "vertex-ai-port",
        PORT,
        "Port of the Vertex AI endpoint. Without it, that of AIP_HTTP_PORT or 8080.",
    )
    .stores(|o, v| v.put(&mut o.vertex_ai_port)),
    Row::new("vertex-ai-thread-count", at_least(1), "Threads that serve Vertex AI requests.")
        .default("8")
        .no_effect(OWN_THREADS),
    Row::new(
        "vertex-ai-default-model",
        Kind::Text,
        "Model of Vertex AI requests that name none; without it the only one that is loaded.",
    )
    .stores(|o, v| v.put(&mut o.vertex_ai_default_model)),
];

fn response_compression(flags: &mut ServeFlags, given: &Occurrence) -> Stored {
    let level = &mut flags.grpc_options.response_compression;
    *level = match () {
        () if given.is("low") => ResponseCompression::Low,
        () if given.is("medium") => ResponseCompression::Medium,
        () if given.is("high") => ResponseCompression::High,
        () => ResponseCompression::None,
    };
    Ok(())
}

/// 0 means without limit.
fn milliseconds(given: &Occurrence) -> Result<Option<Duration>, FlagError> {
    let millis: u64 = given.integer()?;
    Ok((millis > 0).then(|| Duration::from_millis(millis)))
}
