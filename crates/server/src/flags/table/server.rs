//! Options of the server itself: log, metrics, traces, and deprecated ones.

use std::time::Duration;

use galatea_telemetry::logger::LogFormat;

use galatea_command_line::Kind;

use super::{
    super::setting,
    row::{PORT, Row, at_least},
};

pub const GENERAL: &[Row] = &[Row::help("Print this text.")];

pub const SERVER: &[Row] = &[
    Row::new("id", Kind::Text, "Name of this server, as its metadata has it.")
        .default("triton")
        .stores(|o, v| v.put(&mut o.engine.server_id)),
    Row::new(
        "exit-timeout-secs",
        at_least(0),
        "How long a server asked to stop waits for requests in flight, in seconds. After \
         that it ends without them.",
    )
    .default("30")
    .stores(|o, v| {
        o.engine.exit_timeout = Duration::from_secs(v.integer()?);
        Ok(())
    }),
];

pub const LOGGING: &[Row] = &[
    Row::new(
        "log-verbose",
        at_least(0),
        "Level of detail beyond info: 0 is none, 1 shows what is decided, 2 and more every \
         step.",
    )
    .default("0")
    .stores(|o, v| v.put(&mut o.log.verbose_level)),
    Row::new("log-info", Kind::Bool, "Log what happens.")
        .default("true")
        .stores(|o, v| v.put(&mut o.log.has_info)),
    Row::new("log-warning", Kind::Bool, "Log what may be wrong.")
        .default("true")
        .stores(|o, v| v.put(&mut o.log.has_warning)),
    Row::new("log-error", Kind::Bool, "Log what went wrong.")
        .default("true")
        .stores(|o, v| v.put(&mut o.log.has_error)),
    Row::new(
        "log-format",
        Kind::Choice(&["default", "ISO8601"]),
        "How lines begin: \"default\" is LMMDD hh:mm:ss.ssssss, \"ISO8601\" is \
         YYYY-MM-DDThh:mm:ssZ L.",
    )
    .default("default")
    .stores(|o, v| {
        o.log.format = if v.is("ISO8601") { LogFormat::Iso8601 } else { LogFormat::Default };
        Ok(())
    }),
    Row::new("log-file", Kind::Text, "Append the log to this file instead of printing it.")
        .stores(|o, v| v.put(&mut o.log.file)),
];

pub const METRICS: &[Row] = &[
    Row::new("allow-metrics", Kind::Bool, "Serve Prometheus metrics.")
        .default("true")
        .stores(|o, v| v.put(&mut o.metrics.is_allowed)),
    Row::new("allow-gpu-metrics", Kind::Bool, "Report GPU figures among the metrics.")
        .default("true")
        .stores(|o, v| v.put(&mut o.allows_gpu_metrics)),
    Row::new("allow-cpu-metrics", Kind::Bool, "Report CPU and memory figures among the metrics.")
        .default("true")
        .stores(|o, v| v.put(&mut o.engine.metrics.has_cpu_metrics)),
    Row::new(
        "metrics-address",
        Kind::Text,
        "Address to serve metrics at. Without it, the one of --http-address.",
    )
    .stores(|o, v| v.put(&mut o.metrics_address)),
    Row::new("metrics-port", PORT, "Port to serve metrics at; 0 takes a free one.")
        .default("8002")
        .stores(|o, v| v.put(&mut o.metrics.port)),
    Row::new(
        "metrics-interval-ms",
        Kind::Number,
        "CPU figures older than this many milliseconds are read again, GPU figures this \
         often.",
    )
    .default("2000")
    .stores(|o, v| {
        o.engine.metrics.interval = milliseconds(v.number()?);
        Ok(())
    }),
    Row::new(
        "metrics-config",
        Kind::Form("<string>=<string>"),
        "What is reported: counter_latencies=false leaves out the cumulative durations. May \
         be repeated.",
    )
    .stores(setting::metrics_config),
];

pub const TRACING: &[Row] = &[Row::new(
    "trace-config",
    Kind::Form("<string>,<string>=<string>"),
    "Trace settings, global (<setting>=<value>) or of a mode \
         (<mode>,<setting>=<value>). Only level=OFF is supported yet; with it the other \
         settings are accepted and rest.",
)
.stores(setting::trace_config)];

const TRACING_RESTS: &str = "tracing is off";

pub const DEPRECATED: &[Row] = &[
    Row::new(
        "strict-model-config",
        Kind::Bool,
        "Use --disable-auto-complete-config instead of true; false is the default.",
    )
    .default("false")
    .stores(|o, v| {
        o.engine.auto_completes_config &= !v.bool()?;
        Ok(())
    })
    .deprecated(
        "'--strict-model-config' has been deprecated! Please use \
         '--disable-auto-complete-config' instead.",
    ),
    Row::new("response-cache-byte-size", at_least(0), "Use --cache-config instead.")
        .default("0")
        .deprecated(
            "'--response-cache-byte-size' has been deprecated! Please use '--cache-config' \
         instead.",
        )
        .not_yet("there is no response cache"),
    Row::new("trace-file", Kind::Text, "Use --trace-config triton,file=<path> instead.")
        .deprecated(
            "'--trace-file' has been deprecated and will be removed in future releases. Please \
         use '--trace-config triton,file=<filepath> instead.",
        )
        .no_effect(TRACING_RESTS),
    Row::new(
        "trace-level",
        Kind::Choice(&["OFF", "TIMESTAMPS", "TENSORS"]),
        "Use --trace-config level=<level> instead.",
    )
    .default("OFF")
    .deprecated(
        "'--trace-level' has been deprecated and will be removed in future releases. Please \
         use '--trace-config level=<OFF|TIMESTAMPS|TENSORS> instead.",
    )
    .not_yet("requests cannot be traced"),
    Row::new("trace-rate", at_least(0), "Use --trace-config rate=<rate> instead.")
        .default("1000")
        .deprecated(
            "'--trace-rate' has been deprecated and will be removed in future releases. Please \
         use '--trace-config rate=<rate value> instead.",
        )
        .no_effect(TRACING_RESTS),
    Row::new("trace-count", at_least(-1), "Use --trace-config count=<count> instead.")
        .default("-1")
        .deprecated(
            "'--trace-count' has been deprecated and will be removed in future releases. Please \
         use '--trace-config count=<count value> instead.",
        )
        .no_effect(TRACING_RESTS),
    Row::new(
        "trace-log-frequency",
        at_least(0),
        "Use --trace-config triton,log-frequency=<n> instead.",
    )
    .default("0")
    .deprecated(
        "'--trace-log-frequency' has been deprecated and will be removed in future \
         releases. Please use '--trace-config triton,log-frequency=<log frequency value> \
         instead.",
    )
    .no_effect(TRACING_RESTS),
];

/// As long as a duration can be, where it would be longer.
fn milliseconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number / 1000.0).unwrap_or(Duration::MAX)
}
