use super::{Flag, Kind, OWN_THREADS, PORT, at_least};

const SSL: &str = "connections are not encrypted; put a proxy that speaks TLS in front";
const ONLY_WITH_SSL: &str = "it concerns --grpc-use-ssl only";
const NO_STRIKES: &str = "pings of clients are answered and never counted against them";
const NO_RESTRICTION: &str = "every client may call everything; do not expose the port";
const NO_FORWARDING: &str = "headers are not handed on to models";
const NO_SAGEMAKER: &str = "there is no SageMaker endpoint";
const NO_VERTEX: &str = "there is no Vertex AI endpoint";

pub const HTTP: &[Flag] = &[
    Flag::new("allow-http", Kind::Bool, "true", "Serve HTTP."),
    Flag::new("http-address", Kind::Text, "0.0.0.0", "Address to serve HTTP at."),
    Flag::new("http-port", PORT, "8000", "Port to serve HTTP at; 0 takes a free one."),
    Flag::new(
        "reuse-http-port",
        Kind::Bool,
        "false",
        "Let several servers listen at the same HTTP port; the system spreads connections over them.",
    ),
    Flag::new(
        "http-header-forward-pattern",
        Kind::Text,
        "",
        "HTTP headers whose names match this expression become parameters of the request.",
    )
    .not_yet(NO_FORWARDING),
    Flag::new(
        "http-thread-count",
        at_least(1),
        "8",
        "Most threads that serve HTTP; no more are started than there are cores.",
    ),
    Flag::new(
        "http-max-input-size",
        at_least(1),
        "67108864",
        "Longest HTTP request body taken, in bytes.",
    ),
    Flag::new(
        "http-restricted-api",
        Kind::Setting("<string>:<string>=<string>"),
        "",
        "HTTP calls that need a header: <apis>:<header>=<value>. May be repeated.",
    )
    .not_yet(NO_RESTRICTION),
];

pub const GRPC: &[Flag] = &[
    Flag::new("allow-grpc", Kind::Bool, "true", "Serve gRPC."),
    Flag::new("grpc-address", Kind::Text, "0.0.0.0", "Address to serve gRPC at."),
    Flag::new("grpc-port", PORT, "8001", "Port to serve gRPC at; 0 takes a free one."),
    Flag::new(
        "reuse-grpc-port",
        Kind::Bool,
        "false",
        "Let several servers listen at the same gRPC port; the system spreads connections over them.",
    ),
    Flag::new(
        "grpc-header-forward-pattern",
        Kind::Text,
        "",
        "gRPC metadata whose names match this expression become parameters of the request.",
    )
    .not_yet(NO_FORWARDING),
    Flag::new(
        "grpc-infer-thread-count",
        Kind::Integer { min: 2, max: 128 },
        "2",
        "Most threads that serve gRPC; no more are started than there are cores.",
    ),
    Flag::new(
        "grpc-infer-allocation-pool-size",
        at_least(0),
        "8",
        "Requests kept allocated for reuse.",
    )
    .no_effect("requests are not pooled"),
    Flag::new(
        "grpc-max-response-pool-size",
        at_least(1),
        "2147483647",
        "Responses kept allocated for reuse.",
    )
    .no_effect("responses are not pooled"),
    Flag::new("grpc-use-ssl", Kind::Bool, "false", "Encrypt gRPC connections.").not_yet(SSL),
    Flag::new("grpc-use-ssl-mutual", Kind::Bool, "false", "Ask clients for a certificate.")
        .not_yet(SSL),
    Flag::new("grpc-server-cert", Kind::Text, "", "File with the server's certificate (PEM).")
        .no_effect(ONLY_WITH_SSL),
    Flag::new("grpc-server-key", Kind::Text, "", "File with the server's key (PEM).")
        .no_effect(ONLY_WITH_SSL),
    Flag::new("grpc-root-cert", Kind::Text, "", "File with the root certificate (PEM).")
        .no_effect(ONLY_WITH_SSL),
    Flag::new(
        "grpc-infer-response-compression-level",
        Kind::Choice(&["none", "low", "medium", "high"]),
        "none",
        "How much inference responses are compressed.",
    )
    .not_yet("responses are sent as they are"),
    Flag::new(
        "grpc-keepalive-time",
        at_least(1),
        "7200000",
        "A connection without traffic is probed after this many milliseconds.",
    ),
    Flag::new(
        "grpc-keepalive-timeout",
        at_least(1),
        "20000",
        "A probed connection that does not answer within this many milliseconds is closed.",
    ),
    Flag::new(
        "grpc-keepalive-permit-without-calls",
        Kind::Bool,
        "false",
        "Allow pings on connections without calls.",
    )
    .no_effect(NO_STRIKES),
    Flag::new(
        "grpc-http2-max-pings-without-data",
        at_least(0),
        "2",
        "Most pings sent without data between.",
    )
    .no_effect("probes are sent at --grpc-keepalive-time and not otherwise"),
    Flag::new(
        "grpc-http2-min-recv-ping-interval-without-data",
        at_least(0),
        "300000",
        "Pings that come faster than this many milliseconds are bad ones.",
    )
    .no_effect(NO_STRIKES),
    Flag::new(
        "grpc-http2-max-ping-strikes",
        at_least(0),
        "2",
        "Bad pings that close a connection.",
    )
    .no_effect(NO_STRIKES),
    Flag::new(
        "grpc-max-connection-age",
        at_least(0),
        "",
        "Longest life of a connection, in milliseconds.",
    )
    .not_yet("connections live as long as the client wants"),
    Flag::new(
        "grpc-max-connection-age-grace",
        at_least(0),
        "",
        "How long calls on a connection past its age may go on, in milliseconds.",
    )
    .no_effect("it concerns --grpc-max-connection-age only"),
    Flag::new(
        "grpc-restricted-protocol",
        Kind::Setting("<string>:<string>=<string>"),
        "",
        "gRPC calls that need a header: <protocols>:<header>=<value>. May be repeated.",
    )
    .not_yet(NO_RESTRICTION),
    Flag::new(
        "allow-client-shm",
        Kind::Bool,
        "false",
        "Let clients register shared memory regions.",
    )
    .not_yet("tensors travel in requests only"),
];

pub const SAGEMAKER: &[Flag] = &[
    Flag::new("allow-sagemaker", Kind::Bool, "false", "Serve SageMaker requests.")
        .not_yet(NO_SAGEMAKER),
    Flag::new("sagemaker-port", PORT, "8080", "Port of the SageMaker endpoint.")
        .not_yet(NO_SAGEMAKER),
    Flag::new(
        "sagemaker-safe-port-range",
        Kind::Setting("<integer>-<integer>"),
        "",
        "Ports the other endpoints may use beside SageMaker.",
    )
    .not_yet(NO_SAGEMAKER),
    Flag::new("sagemaker-thread-count", at_least(1), "8", "Threads that serve SageMaker requests.")
        .no_effect(OWN_THREADS),
];

pub const VERTEX: &[Flag] = &[
    Flag::new("allow-vertex-ai", Kind::Bool, "false", "Serve Vertex AI requests.")
        .not_yet(NO_VERTEX),
    Flag::new("vertex-ai-port", PORT, "8080", "Port of the Vertex AI endpoint.").not_yet(NO_VERTEX),
    Flag::new("vertex-ai-thread-count", at_least(1), "8", "Threads that serve Vertex AI requests.")
        .no_effect(OWN_THREADS),
    Flag::new("vertex-ai-default-model", Kind::Text, "", "Model of requests that name none.")
        .not_yet(NO_VERTEX),
];
