use super::{Flag, Kind, PORT, at_least};

pub const GENERAL: &[Flag] = &[Flag::new("help", Kind::Switch, "", "Print this text.")];

pub const SERVER: &[Flag] = &[
    Flag::new("id", Kind::Text, "triton", "Name of this server, told in its metadata.")
    .told_as("server_id"),
    Flag::new(
        "exit-timeout-secs",
        at_least(0),
        "30",
        "How long a server told to stop waits for requests in flight, in seconds. After that it ends \
         without them.",
    )
    .told_as("exit_timeout"),
];

pub const LOGGING: &[Flag] = &[
    Flag::new(
        "log-verbose",
        at_least(0),
        "0",
        "Level of detail beyond info: 0 is none, 1 shows what is decided, 2 and more every step.",
    ),
    Flag::new("log-info", Kind::Bool, "true", "Log what happens."),
    Flag::new("log-warning", Kind::Bool, "true", "Log what may be wrong."),
    Flag::new("log-error", Kind::Bool, "true", "Log what went wrong."),
    Flag::new(
        "log-format",
        Kind::Choice(&["default", "ISO8601"]),
        "default",
        "How lines begin: \"default\" is LMMDD hh:mm:ss.ssssss, \"ISO8601\" is YYYY-MM-DDThh:mm:ssZ L.",
    ),
    Flag::new("log-file", Kind::Text, "", "Append the log to this file instead of printing it."),
];

pub const METRICS: &[Flag] = &[
    Flag::new("allow-metrics", Kind::Bool, "true", "Serve Prometheus metrics."),
    Flag::new("allow-gpu-metrics", Kind::Bool, "true", "Tell GPU figures among the metrics."),
    Flag::new(
        "allow-cpu-metrics",
        Kind::Bool,
        "true",
        "Tell CPU and memory figures among the metrics.",
    ),
    Flag::new(
        "metrics-address",
        Kind::Text,
        "",
        "Address to serve metrics at. Without it, the one of --http-address.",
    ),
    Flag::new("metrics-port", PORT, "8002", "Port to serve metrics at; 0 takes a free one."),
    Flag::new(
        "metrics-interval-ms",
        Kind::Number,
        "2000",
        "CPU figures older than this many milliseconds are taken anew, GPU figures this often.",
    ),
    Flag::new(
        "metrics-config",
        Kind::Setting("<string>=<string>"),
        "",
        "What is told: counter_latencies=false leaves out the cumulative durations. May be repeated.",
    ),
];

pub const TRACING: &[Flag] = &[Flag::new(
    "trace-config",
    Kind::Setting("<string>,<string>=<string>"),
    "",
    "Trace settings, global (<setting>=<value>) or of a mode (<mode>,<setting>=<value>). Only level=OFF is \
     supported yet; with it the other settings are accepted and rest.",
)];

const TRACING_RESTS: &str = "tracing is off";

pub const DEPRECATED: &[Flag] = &[
    Flag::new(
        "strict-model-config",
        Kind::Bool,
        "false",
        "Use --disable-auto-complete-config instead of true; false is the default.",
    )
    .alias_of("disable-auto-complete-config")
    .deprecated(
        "'--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead.",
    ),
    Flag::new("response-cache-byte-size", at_least(0), "0", "Use --cache-config instead.")
        .deprecated("'--response-cache-byte-size' has been deprecated! Please use '--cache-config' instead.")
        .not_yet("there is no response cache"),
    Flag::new("trace-file", Kind::Text, "", "Use --trace-config triton,file=<path> instead.")
        .deprecated("'--trace-file' has been deprecated and will be removed in future releases. Please use '--trace-config triton,file=<filepath> instead.")
        .no_effect(TRACING_RESTS),
    Flag::new("trace-level", Kind::Choice(&["OFF", "TIMESTAMPS", "TENSORS"]), "OFF", "Use --trace-config level=<level> instead.")
        .deprecated("'--trace-level' has been deprecated and will be removed in future releases. Please use '--trace-config level=<OFF|TIMESTAMPS|TENSORS> instead.")
        .not_yet("requests cannot be traced"),
    Flag::new("trace-rate", at_least(0), "1000", "Use --trace-config rate=<rate> instead.")
        .deprecated("'--trace-rate' has been deprecated and will be removed in future releases. Please use '--trace-config rate=<rate value> instead.")
        .no_effect(TRACING_RESTS),
    Flag::new("trace-count", at_least(-1), "-1", "Use --trace-config count=<count> instead.")
        .deprecated("'--trace-count' has been deprecated and will be removed in future releases. Please use '--trace-config count=<count value> instead.")
        .no_effect(TRACING_RESTS),
    Flag::new("trace-log-frequency", at_least(0), "0", "Use --trace-config triton,log-frequency=<n> instead.")
        .deprecated("'--trace-log-frequency' has been deprecated and will be removed in future releases. Please use '--trace-config triton,log-frequency=<log frequency value> instead.")
        .no_effect(TRACING_RESTS),
];
