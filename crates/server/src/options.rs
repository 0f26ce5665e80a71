//! What `serve` was asked to do, checked: the second stage after [`Parsed`].

mod endpoint;
mod setting;

use std::{collections::BTreeMap, num::NonZero, path::PathBuf, thread, time::Duration};

use galatea_engine::{ControlMode, EngineOptions, GpuOptions};
use galatea_grpc::GrpcOptions;
use galatea_http::HttpOptions;
use galatea_runtimes::Environment;
use galatea_telemetry::{
    logger::{LogFormat, LogSettings},
    metrics::MetricsOptions,
};

pub use self::endpoint::Endpoint;
use crate::flags::{FlagError, Parsed, Support, rows};

/// Everything a server needs to know to start.
#[derive(Debug)]
pub struct ServeOptions {
    pub log: LogSettings,
    pub engine: EngineOptions,
    pub exits_on_error: bool,
    /// `None`: not served.
    pub http: Option<Endpoint>,
    pub grpc: Option<Endpoint>,
    pub metrics: Option<Endpoint>,
    pub http_options: HttpOptions,
    pub grpc_options: GrpcOptions,
    pub runtimes: RuntimeOptions,
    /// Whether the GPUs are watched.
    pub has_gpu_metrics: bool,
    /// Said in the log at start: deprecated flags, and flags without effect.
    pub notes: Vec<Note>,
    /// The options in force, as the table at start shows them.
    pub rows: Vec<(String, String)>,
}

/// Where native runtime libraries come from.
#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    pub may_download: bool,
    pub onnxruntime_lib: Option<PathBuf>,
    /// Folder of a libtorch.
    pub libtorch: Option<PathBuf>,
    /// Only where one was given: its default is the place of another server's libraries.
    pub backend_directory: Option<PathBuf>,
    /// Names libraries and folders where no flag does.
    pub environment: Environment,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Note {
    Warning(String),
    Info(String),
}

impl ServeOptions {
    pub fn from_flags(flags: &Parsed, environment: &Environment) -> Result<Self, FlagError> {
        check_rules(flags)?;
        let (http, grpc, metrics) = endpoint::from_flags(flags)?;
        Ok(Self {
            log: log_settings(flags, environment),
            engine: engine_options(flags, environment)?,
            exits_on_error: flags.bool("exit-on-error"),
            http,
            grpc,
            metrics,
            http_options: HttpOptions {
                thread_count: flags.integer("http-thread-count"),
                max_input_size: flags.integer("http-max-input-size"),
            },
            grpc_options: GrpcOptions {
                thread_count: grpc_threads(flags),
                keepalive_time: Duration::from_millis(flags.integer("grpc-keepalive-time")),
                keepalive_timeout: Duration::from_millis(flags.integer("grpc-keepalive-timeout")),
                ..GrpcOptions::default()
            },
            runtimes: runtime_options(flags, environment),
            has_gpu_metrics: has_gpu_metrics(flags, environment),
            notes: notes(flags, environment),
            rows: rows(flags),
        })
    }
}

/// No more threads than cores: the rest would only take turns.
fn grpc_threads(flags: &Parsed) -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    flags.integer::<usize>("grpc-infer-thread-count").min(cores)
}

/// What several flags say together.
fn check_rules(flags: &Parsed) -> Result<(), FlagError> {
    let rule = |text: &str| Err(FlagError::Rule(text.to_owned()));
    if flags.is_given("load-model") && control_mode(flags)? != ControlMode::Explicit {
        return rule(
            "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.",
        );
    }
    let models: Vec<&str> = flags.all("load-model").collect();
    if models.len() > 1 && models.contains(&"*") {
        return rule("Wildcard model name '*' must be the ONLY startup model if specified at all.");
    }
    if !flags.is_given("model-repository") {
        return rule("creating server: Invalid argument - --model-repository must be specified");
    }
    if flags.text("repoagent-directory").is_empty() {
        return rule("creating server: Invalid argument - --repoagent-directory can not be empty");
    }
    check_tracing(flags)
}

fn check_tracing(flags: &Parsed) -> Result<(), FlagError> {
    for text in flags.all("trace-config") {
        let setting = setting::Setting::parse("trace-config", text)?;
        if setting.key == "level" && !setting.value.eq_ignore_ascii_case("off") {
            let what = "requests cannot be traced; level=OFF is the only level";
            return Err(FlagError::Unsupported { name: "trace-config", what });
        }
    }
    Ok(())
}

fn control_mode(flags: &Parsed) -> Result<ControlMode, FlagError> {
    match flags.text("model-control-mode").to_ascii_lowercase().as_str() {
        "explicit" => Ok(ControlMode::Explicit),
        "poll" => Err(FlagError::Unsupported {
            name: "model-control-mode=poll",
            what: "use --model-control-mode=explicit and the load and unload calls",
        }),
        _ => Ok(ControlMode::None),
    }
}

fn engine_options(flags: &Parsed, environment: &Environment) -> Result<EngineOptions, FlagError> {
    Ok(EngineOptions {
        server_id: flags.text("id").to_owned(),
        repositories: flags.all("model-repository").map(PathBuf::from).collect(),
        control_mode: control_mode(flags)?,
        startup_models: flags.all("load-model").map(str::to_owned).collect(),
        has_strict_readiness: flags.bool("strict-readiness"),
        auto_completes_config: !flags.switch("disable-auto-complete-config"),
        load_thread_count: flags.integer("model-load-thread-count"),
        backend_config: backend_config(flags)?,
        exit_timeout: Duration::from_secs(flags.integer("exit-timeout-secs")),
        metrics: metrics_options(flags)?,
        gpus: GpuOptions {
            min_compute_capability: flags.number("min-supported-compute-capability"),
            ..GpuOptions::default()
        },
        hold_until_queued: environment
            .text("TRITONSERVER_DELAY_SCHEDULER")
            .and_then(|count| count.parse().ok())
            .unwrap_or(0),
    })
}

fn backend_config(flags: &Parsed) -> Result<BTreeMap<String, BTreeMap<String, String>>, FlagError> {
    let mut config: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for text in flags.all("backend-config") {
        let setting = setting::Setting::parse("backend-config", text)?;
        let Some(backend) = setting.owner else {
            return Err(setting::malformed("backend-config", text));
        };
        config
            .entry(backend.to_owned())
            .or_default()
            .insert(setting.key.into(), setting.value.into());
    }
    Ok(config)
}

fn metrics_options(flags: &Parsed) -> Result<MetricsOptions, FlagError> {
    let mut options = MetricsOptions {
        has_cpu_metrics: flags.bool("allow-cpu-metrics"),
        has_counter_latencies: true,
        interval: Duration::try_from_secs_f64(flags.number("metrics-interval-ms") / 1000.0)
            .unwrap_or(Duration::MAX),
        pinned_memory_pool_bytes: flags.integer("pinned-memory-pool-byte-size"),
    };
    for text in flags.all("metrics-config") {
        let setting = setting::Setting::parse("metrics-config", text)?;
        match (setting.key, setting.bool()) {
            ("counter_latencies", Some(wanted)) => options.has_counter_latencies = wanted,
            ("summary_latencies" | "histogram_latencies", Some(false)) => {}
            ("counter_latencies" | "summary_latencies" | "histogram_latencies", None) => {
                let reason =
                    format!("invalid value for bool option: {} (use true or false)", setting.value);
                return Err(FlagError::BadValue { name: "metrics-config", reason });
            }
            _ => {
                let what = "only counter_latencies can be set";
                return Err(FlagError::Unsupported { name: "metrics-config", what });
            }
        }
    }
    Ok(options)
}

fn has_gpu_metrics(flags: &Parsed, environment: &Environment) -> bool {
    flags.bool("allow-metrics")
        && flags.bool("allow-gpu-metrics")
        && !environment.is_set("TRITON_SERVER_CPU_ONLY")
}

fn log_settings(flags: &Parsed, environment: &Environment) -> LogSettings {
    let is_iso = flags.text("log-format").eq_ignore_ascii_case("ISO8601");
    LogSettings {
        has_info: flags.bool("log-info"),
        has_warning: flags.bool("log-warning"),
        has_error: flags.bool("log-error"),
        verbose_level: flags.integer("log-verbose"),
        format: if is_iso { LogFormat::Iso8601 } else { LogFormat::Default },
        file: Some(flags.text("log-file")).filter(|file| !file.is_empty()).map(PathBuf::from),
        has_escaping: environment.text("TRITON_SERVER_ESCAPE_LOG_MESSAGES").as_deref() != Some("0"),
    }
}

fn runtime_options(flags: &Parsed, environment: &Environment) -> RuntimeOptions {
    let path = |flag| Some(flags.text(flag)).filter(|p| !p.is_empty()).map(PathBuf::from);
    RuntimeOptions {
        may_download: !flags.text("runtime-downloads").eq_ignore_ascii_case("never"),
        onnxruntime_lib: path("onnxruntime-lib"),
        libtorch: path("libtorch"),
        backend_directory: flags.last("backend-directory").map(PathBuf::from),
        environment: environment.clone(),
    }
}

fn notes(flags: &Parsed, environment: &Environment) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for (flag, value) in flags.given() {
        if let Some(warning) = flag.deprecation {
            notes.push(Note::Warning(warning.to_owned()));
        }
        match flag.support {
            Support::NoEffect(why) if value != flag.default => {
                notes.push(Note::Info(format!("--{}={value} has no effect: {why}", flag.name)));
            }
            _ => {}
        }
    }
    if environment.text("AIP_MODE").as_deref() == Some("PREDICTION") {
        let text = "AIP_MODE=PREDICTION is set, but there is no Vertex AI endpoint yet";
        notes.push(Note::Warning(text.to_owned()));
    }
    notes
}

#[cfg(test)]
mod tests;
