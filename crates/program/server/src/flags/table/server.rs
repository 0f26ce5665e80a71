//! Options of the server itself: log, metrics, traces, and deprecated ones.

use std::time::Duration;

use galatea_telemetry::{access_log::AccessTarget, logger::LogFormat};

use galatea_command_line::{Kind, set};

use super::{
    super::{setting, trace},
    row::{ANY, PORT_IF_ON, Row, at_least},
};

pub const GENERAL: &[Row] = &[Row::help("Print this text.")];

pub const SERVER: &[Row] = &[
    Row::new("id", Kind::Text, "Name of this server, as its metadata has it.")
        .default("triton")
        .stores(|o, v| v.put(&mut o.engine.server_id)),
    Row::new(
        "exit-timeout-secs",
        ANY,
        "How long a server asked to stop waits for requests in flight, in seconds. After \
         that it ends without them.",
    )
    .default("30")
    .stores(set!(|o, v| o.engine.exit_timeout = Duration::from_secs(v.raised_to(0)?))),
];

pub const SHUTDOWN: &[Row] = &[Row::new(
    "drain-delay-secs",
    at_least(0),
    "How long a server asked to stop serves on while /v2/health/ready answers 503, in seconds: \
     time for load balancers to notice before requests are refused. A second signal ends it. \
     --exit-timeout-secs counts from then on.",
)
.default("0")
.stores(set!(|o, v| o.drain_delay = Duration::from_secs(v.integer()?)))];

pub const CONSOLE: &[Row] = &[Row::new(
    "console",
    Kind::Bool,
    "Serve a page at / of the HTTP port that shows models, their figures and failed requests. \
     Default is true.",
)
.stores(|o, v| v.put(&mut o.has_console))];

pub const LOGGING: &[Row] = &[
    Row::new(
        "log-verbose",
        Kind::Form("integer"),
        "Level of detail beyond info: 0 is none, 1 shows each request, its batch and its answer, 2 also \
         what was found when it was checked, 3 and more also its inputs; true is 1, false is 0.",
    )
    .default("0")
    .stores(set!(|o, v| o.log.verbose_level = match v.text.to_ascii_lowercase().as_str() {
            "true" => 1,
            "false" => 0,
            _ => v.raised_to(0)?,
        })),
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
        Kind::Choice(&["default", "ISO8601", "json"]),
        "How lines begin: \"default\" is LMMDD hh:mm:ss.ssssss, \"ISO8601\" is \
         YYYY-MM-DDThh:mm:ssZ L. With \"json\" each line is a JSON object, and so is each line \
         that a model prints.",
    )
    .default("default")
    .stores(|o, v| {
        let named = LogFormat::ALL.into_iter().find(|format| v.is(format.name()));
        o.log.format = named.unwrap_or_default();
        Ok(())
    }),
    Row::new("log-file", Kind::Text, "Append the log to this file instead of printing it.")
        .stores(|o, v| v.put(&mut o.log.file)),
];

pub const ACCESS_LOG: &[Row] = &[Row::new(
    "access-log",
    Kind::OptionalText("file"),
    "Write a line about every request to stdout, or append it to this file, which is opened again \
     when SIGHUP comes. Lines are JSON where --log-format is json.",
)
.stores(set!(|o, v| o.access_log = Some(match v.text.as_str() {
    "" => AccessTarget::Stdout,
    path => AccessTarget::File(path.into()),
})))];

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
    Row::new(
        "metrics-https",
        Kind::Bool,
        "Serve metrics over TLS too, with the certificate and the rules of --https-cert and its like.",
    )
    .default("false")
    .stores(|o, v| v.put(&mut o.encrypts_metrics)),
    Row::new("metrics-port", PORT_IF_ON, "Port to serve metrics at; 0 takes a free one.")
        .default("8002")
        .stores(|o, v| v.put(&mut o.metrics.port)),
    Row::new(
        "metrics-interval-ms",
        Kind::Number,
        "CPU figures older than this many milliseconds are read again, GPU figures this \
         often.",
    )
    .default("2000")
    .stores(set!(|o, v| o.engine.metrics.interval = milliseconds(v.number()?))),
    Row::new(
        "metrics-config",
        Kind::Form("<string>=<string>"),
        "What is reported: counter_latencies=false leaves out the cumulative durations; \
         histogram_latencies=true adds histograms of durations and batch sizes, \
         summary_latencies=true quantiles of the last minute, those of \
         summary_quantiles=<quantile>:<error>,... May be repeated.",
    )
    .stores(setting::metrics_config),
];

pub const TRACING: &[Row] = &[Row::new(
    "trace-config",
    Kind::Form("<string>,<string>=<string>"),
    "Trace settings, global (<setting>=<value>) or of a mode \
         (<mode>,<setting>=<value>). Requests cannot be traced yet: a level other than OFF is \
         accepted with a warning.",
)
.stores(trace::config)];

const TRACING_RESTS: &str = "tracing is off";

pub const DEPRECATED: &[Row] = &[
    Row::new(
        "strict-model-config",
        Kind::Bool,
        "Use --disable-auto-complete-config instead of true; false is the default.",
    )
    .default("false")
    .stores(set!(|o, v| o.engine.auto_completes_config = !v.bool()?))
    .deprecated(
        "'--strict-model-config' has been deprecated! Please use \
         '--disable-auto-complete-config' instead.",
    ),
    Row::new("response-cache-byte-size", Kind::Form("integer"), "Use --cache-config instead.")
        .stores(setting::response_cache),
    Row::new("trace-file", Kind::Text, "Use --trace-config triton,file=<path> instead.")
        .deprecated(
            "'--trace-file' has been deprecated and will be removed in future releases. Please \
         use '--trace-config triton,file=<filepath> instead.",
        )
        .no_effect(TRACING_RESTS),
    Row::new(
        "trace-level",
        Kind::Form("string"),
        "Use --trace-config level=<level> instead. OFF or FALSE; TRUE, ON, MIN, MAX and TIMESTAMPS, \
         which mean the same; TENSORS. Default is OFF.",
    )
    .stores(trace::level)
    .deprecated(
        "'--trace-level' has been deprecated and will be removed in future releases. Please \
         use '--trace-config level=<OFF|TIMESTAMPS|TENSORS> instead.",
    ),
    Row::new("trace-rate", ANY, "Use --trace-config rate=<rate> instead.")
        .default("1000")
        .deprecated(
            "'--trace-rate' has been deprecated and will be removed in future releases. Please \
         use '--trace-config rate=<rate value> instead.",
        )
        .no_effect(TRACING_RESTS),
    Row::new("trace-count", ANY, "Use --trace-config count=<count> instead.")
        .default("-1")
        .deprecated(
            "'--trace-count' has been deprecated and will be removed in future releases. Please \
         use '--trace-config count=<count value> instead.",
        )
        .no_effect(TRACING_RESTS),
    Row::new(
        "trace-log-frequency",
        ANY,
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
