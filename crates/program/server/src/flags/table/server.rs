//! Options of the server itself: log, metrics, traces, and deprecated ones.

use std::time::Duration;

use galatea_command_line::{Kind, Occurrence, options, set};
use galatea_telemetry::{access_log::AccessTarget, logger::LogFormat};

use super::{
    super::{error::StoreResult, serve_flags::ServeFlags, setting, trace},
    row::{ANY, PORT_IF_ON, Row, at_least},
};

pub const GENERAL: &[Row] = &[Row::help("Print this text.")];

pub const SERVER: &[Row] = options! {
    /// Name of this server in its metadata.
    "id" => Row::of(Kind::Text).default("triton").fills(|o| &mut o.serve.engine.server_id),
    /// Seconds that a server asked to stop waits for requests in flight. After that it exits without answering them.
    "exit-timeout-secs" => Row::of(ANY)
        .default("30")
        .stores(set!(|o, v| o.serve.engine.exit_timeout = Duration::from_secs(v.raised_to(0)?))),
};

pub const SHUTDOWN: &[Row] = options! {
    /// Seconds that a server asked to stop keeps serving while /v2/health/ready answers 503, so that load balancers
    /// notice before it refuses requests. A second signal ends this time. --exit-timeout-secs begins after it.
    "drain-delay-secs" => Row::of(at_least(0))
        .default("0").stores(set!(|o, v| o.serve.drain_delay = Duration::from_secs(v.integer()?))),
    /// Unix socket for upgrades without a lost request. A server that finds another one there loads its models, takes the
    /// listening sockets of the other one, and that one answers what it has and ends.
    "takeover" => Row::of(Kind::Text).fills(|o| &mut o.serve.takeover),
};

pub const CONSOLE: &[Row] = options! {
    /// Serve a page at / of the HTTP port with the models, their figures and failed requests. Default is true.
    "console" => Row::of(Kind::Bool).fills(|o| &mut o.has_console),
};

pub const LOGGING: &[Row] = options! {
    /// Level of detail beyond info: 0 is none; 1 logs each request, its batch and its response; 2 also the result of
    /// its check; 3 and more also its inputs; true is 1, false is 0.
    "log-verbose" => Row::of(Kind::Form("integer")).default("0").stores(verbose_level),
    /// Log information.
    "log-info" => Row::of(Kind::Bool).default("true").fills(|o| &mut o.serve.log.has_info),
    /// Log warnings.
    "log-warning" => Row::of(Kind::Bool).default("true").fills(|o| &mut o.serve.log.has_warning),
    /// Log errors.
    "log-error" => Row::of(Kind::Bool).default("true").fills(|o| &mut o.serve.log.has_error),
    /// Format of lines. They begin in "default" with LMMDD hh:mm:ss.ssssss, "ISO8601" is YYYY-MM-DDThh:mm:ssZ L. With
    /// "json" each line is a JSON object, and so is each line that a model prints.
    "log-format" => Row::of(Kind::Choice(&["default", "ISO8601", "json"]))
        .default("default").stores(log_format),
    /// Append the log to this file instead of printing it.
    "log-file" => Row::of(Kind::Text).fills(|o| &mut o.serve.log.file),
};

pub const ACCESS_LOG: &[Row] = options! {
    /// Write a line about every request to stdout, or append it to this file. SIGHUP opens the file again. Lines are
    /// JSON if --log-format is json.
    "access-log" => Row::of(Kind::OptionalText("file")).stores(access_log),
};

pub const METRICS: &[Row] = options! {
    /// Serve Prometheus metrics.
    "allow-metrics" => Row::of(Kind::Bool).default("true").fills(|o| &mut o.metrics.is_allowed),
    /// Report GPU figures among the metrics.
    "allow-gpu-metrics" => Row::of(Kind::Bool)
        .default("true").fills(|o| &mut o.serve.has_gpu_metrics),
    /// Report CPU and memory figures among the metrics.
    "allow-cpu-metrics" => Row::of(Kind::Bool)
        .default("true").fills(|o| &mut o.serve.engine.metrics.has_cpu_metrics),
    /// Address to serve metrics at; unix:<path> is a Unix socket instead of a port. Default: that of --http-address, or
    /// 127.0.0.1 if that is a Unix socket.
    "metrics-address" => Row::of(Kind::Text).fills(|o| &mut o.metrics_address),
    /// Serve metrics over TLS too, with the certificate and rules of the --https-... options.
    "metrics-https" => Row::of(Kind::Bool).default("false").fills(|o| &mut o.serve.tls.metrics),
    /// Port to serve metrics at; 0 takes a free one.
    "metrics-port" => Row::of(PORT_IF_ON).default("8002").fills(|o| &mut o.metrics.port),
    /// Milliseconds after which the server reads CPU figures again, and between two reads of GPU figures.
    "metrics-interval-ms" => Row::of(Kind::Number)
        .default("2000")
        .stores(set!(|o, v| o.serve.engine.metrics.interval = milliseconds(v.number()?))),
    /// Selection of metrics. counter_latencies=false leaves out the cumulative durations. histogram_latencies=true adds
    /// histograms of durations and batch sizes. summary_latencies=true adds quantiles of the last minute: those of
    /// summary_quantiles=<quantile>:<error>,... May be repeated.
    "metrics-config" => Row::of(Kind::Form("<string>=<string>")).stores(setting::metrics_config),
};

pub const TRACING: &[Row] = options! {
    /// Trace settings: level=OFF, TIMESTAMPS or TENSORS, rate=<n> to trace every nth request, count=<n> to trace that
    /// many, triton,file=<path> for the file of the traces, triton,log-frequency=<n> for a numbered file after every n
    /// traces. mode=opentelemetry sends spans to opentelemetry,url=<address> instead; opentelemetry,protocol=http/json,
    /// http/protobuf or grpc, resource=<name>=<value>, bsp_max_queue_size=<spans>, bsp_schedule_delay=<milliseconds>,
    /// bsp_max_export_batch_size=<spans>. May be repeated; levels add up.
    "trace-config" => Row::of(Kind::Form("<string>,<string>=<string>")).stores(trace::config),
    /// Trace the requests that Python models send to other models even if they do not pass trace=request.trace().
    "trace-model-calls" => Row::of(Kind::Bool)
        .default("false").fills(|o| &mut o.serve.trace.traces_all_calls),
};

/// Triton's text about an option that is a setting of `--trace-config` now.
macro_rules! superseded {
    ($option:literal, $setting:literal) => {
        concat!(
            "'", $option, "' has been deprecated and will be removed in future releases. Please use '--trace-config ",
            $setting, " instead."
        )
    };
}

pub const DEPRECATED: &[Row] = options! {
    /// Use --disable-auto-complete-config instead of true; false is the default.
    "strict-model-config" => Row::of(Kind::Bool)
        .default("false")
        .stores(set!(|o, v| o.serve.engine.auto_completes_config = !v.bool()?))
        .deprecated(
            "'--strict-model-config' has been deprecated! Please use \
             '--disable-auto-complete-config' instead.",
        ),
    /// Use --cache-config instead.
    "response-cache-byte-size" => Row::of(Kind::Form("integer")).stores(setting::response_cache),
    /// Use --trace-config triton,file=<path> instead.
    "trace-file" => Row::of(Kind::Text)
        .stores(set!(|o, v| o.trace.deprecated.file = Some(v.text.clone())))
        .deprecated(superseded!("--trace-file", "triton,file=<filepath>")),
    /// Use --trace-config level=<level> instead. OFF or FALSE; TRUE, ON, MIN, MAX and TIMESTAMPS, which mean the
    /// same; TENSORS. Default is OFF.
    "trace-level" => Row::of(Kind::Form("string"))
        .stores(trace::level)
        .deprecated(superseded!("--trace-level", "level=<OFF|TIMESTAMPS|TENSORS>")),
    /// Use --trace-config rate=<rate> instead.
    "trace-rate" => Row::of(ANY)
        .default("1000")
        .stores(set!(|o, v| o.trace.deprecated.rate = Some(v.integer()?)))
        .deprecated(superseded!("--trace-rate", "rate=<rate value>")),
    /// Use --trace-config count=<count> instead.
    "trace-count" => Row::of(ANY)
        .default("-1")
        .stores(set!(|o, v| o.trace.deprecated.count = Some(v.integer()?)))
        .deprecated(superseded!("--trace-count", "count=<count value>")),
    /// Use --trace-config triton,log-frequency=<n> instead.
    "trace-log-frequency" => Row::of(ANY)
        .default("0")
        .stores(set!(|o, v| o.trace.deprecated.log_frequency = Some(v.integer()?)))
        .deprecated(superseded!("--trace-log-frequency", "triton,log-frequency=<log frequency value>")),
};

/// Converts milliseconds; numbers that are too large give the longest duration.
fn milliseconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number / 1000.0).unwrap_or(Duration::MAX)
}

fn verbose_level(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    flags.serve.log.verbose_level = match given.text.to_ascii_lowercase().as_str() {
        "true" => 1,
        "false" => 0,
        _ => given.raised_to(0)?,
    };
    Ok(())
}

fn log_format(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    let named = LogFormat::ALL.into_iter().find(|format| given.is(format.name()));
    flags.serve.log.format = named.unwrap_or_default();
    Ok(())
}

fn access_log(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    flags.serve.access_log = Some(match given.text.as_str() {
        "" => AccessTarget::Stdout,
        path => AccessTarget::File(path.into()),
    });
    Ok(())
}
