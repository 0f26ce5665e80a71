//! What `serve` was asked to do, checked: the second stage after [`ServeFlags`].

mod cloud;
mod endpoint;
mod response_cache;
mod rows;
mod tls;

use std::{num::NonZero, path::PathBuf, sync::Arc, thread, time::Duration};

use galatea_backend_python::{WorkerOptions, WorkerRules};
use galatea_command_line::Notice;
use galatea_engine::{
    ControlMode, EngineOptions, ExecutionRules, Hold, RateLimiter, ResourceSupply,
};
use galatea_frontend::{ClientLimitSettings, ConnectionSettings};
use galatea_grpc::GrpcOptions;
use galatea_http::HttpOptions;
use galatea_runtimes::Environment;
use galatea_telemetry::{access_log::AccessTarget, logger::LogSettings};
use galatea_types::MemoryBudget;

pub use self::{
    cloud::{CloudOptions, CloudPlatform},
    endpoint::Endpoint,
    response_cache::CacheSettings,
    tls::TlsOptions,
};
use crate::{
    flags::{FlagError, RuntimeOptions, ServeFlags},
    memory::MemorySize,
    serve::{guide::Guide, remote::RepositoryCacheOptions},
};

/// Everything a server needs to know to start.
#[derive(Debug)]
pub struct ServeOptions {
    pub log: LogSettings,
    /// Where the access log goes; `None`: there is none.
    pub access_log: Option<AccessTarget>,
    /// The file of who may do what; `None`: anybody may do anything.
    pub auth_policy: Option<PathBuf>,
    /// Without a policy, nobody may change what the server is.
    pub is_hardened: bool,
    /// Without the repositories, which are opened when the server starts.
    pub engine: EngineOptions,
    /// Model repositories, as they were given.
    pub repositories: Vec<PathBuf>,
    /// Repositories, folders of models and model files that were given without an option.
    pub paths: Vec<PathBuf>,
    /// Of those that are not on this machine.
    pub repository_cache: RepositoryCacheOptions,
    /// The variables of the process, with the credentials that such repositories are asked with.
    pub environment: Environment,
    pub exits_on_error: bool,
    /// `None`: no response is kept.
    pub response_cache: Option<CacheSettings>,
    /// Between two looks at the repositories, where they are polled.
    pub poll_interval: Option<Duration>,
    /// How long a server asked to stop serves on, no longer ready.
    pub drain_delay: Duration,
    /// `None`: not served.
    pub http: Option<Endpoint>,
    pub grpc: Option<Endpoint>,
    pub metrics: Option<Endpoint>,
    /// Front ends of cloud platforms.
    pub clouds: Vec<CloudOptions>,
    pub tls: TlsOptions,
    pub http_options: HttpOptions,
    pub grpc_options: GrpcOptions,
    /// What one client may have in hand.
    pub client_limits: ClientLimitSettings,
    /// Without the number of connections.
    pub connections: ConnectionSettings,
    /// `None`: as many as the limit of open file descriptors allows.
    pub max_connections: Option<usize>,
    pub runtimes: RuntimeOptions,
    /// What the processes of Python models may see and do.
    pub python: WorkerRules,
    pub memory_budget: MemorySize,
    /// Whether the GPUs are watched.
    pub has_gpu_metrics: bool,
    /// For the log at start: deprecated flags, and flags without effect.
    pub notes: Vec<Note>,
    /// The options in force, as the table at start shows them.
    pub rows: Vec<(String, String)>,
    /// What a command for people says in place of the log.
    pub guide: Option<Box<dyn Guide>>,
}

/// A line of the log about an option.
#[derive(Debug, PartialEq, Eq)]
pub enum Note {
    Warning(String),
    Info(String),
}

impl ServeOptions {
    pub fn from_flags(mut flags: ServeFlags, environment: &Environment) -> Result<Self, FlagError> {
        cloud::complete(&mut flags, environment);
        check_rules(&flags)?;
        let clouds = cloud::platforms(&flags, environment)?;
        let [http, grpc, metrics] = {
            let others: Vec<&Endpoint> = clouds.iter().map(|cloud| &cloud.endpoint).collect();
            endpoint::endpoints(&flags, &others)?
        };
        let mut notes = notes(&flags.notices, environment);
        let tls = TlsOptions::of(&flags, &mut notes)?;
        let python = python_workers(&mut flags);
        Ok(Self {
            tls,
            http,
            grpc,
            metrics,
            clouds,
            exits_on_error: flags.exits_on_error,
            response_cache: CacheSettings::of(&flags.cache, environment, &mut notes)?,
            poll_interval: (flags.engine.control_mode == ControlMode::Poll
                && flags.repository_poll_secs > 0)
                .then(|| Duration::from_secs(flags.repository_poll_secs)),
            drain_delay: flags.drain_delay,
            has_gpu_metrics: has_gpu_metrics(&flags, environment),
            notes,
            rows: rows::rows(&flags),
            guide: None,
            repositories: flags.repositories,
            repository_cache: flags.repository_cache,
            environment: environment.clone(),
            paths: flags.paths,
            memory_budget: flags.memory_budget,
            log: log_settings(flags.log, environment),
            access_log: flags.access_log,
            auth_policy: given(flags.auth_policy),
            is_hardened: flags.is_hardened,
            engine: EngineOptions {
                hold: hold(environment),
                starts_instances_one_by_one: starts_instances_one_by_one(environment),
                execution: ExecutionRules {
                    rate_limiter: rate_limiter(&flags.rate_limit, flags.rate_limit_resources),
                    ..flags.engine.execution
                },
                ..flags.engine
            },
            http_options: HttpOptions {
                has_console: flags.has_console.unwrap_or(true),
                ..flags.http_options
            },
            client_limits: flags.client_limits,
            connections: flags.connections,
            max_connections: flags.max_connections,
            grpc_options: GrpcOptions {
                thread_count: flags.grpc_options.thread_count.min(cores()),
                ..flags.grpc_options
            },
            runtimes: runtime_options(flags.runtimes, environment),
            python: WorkerRules::new(python),
        })
    }

    /// One budget for all that hold memory for clients.
    pub fn share_memory(&mut self, memory: Arc<MemoryBudget>) {
        self.http_options.memory = memory.clone();
        self.grpc_options.memory = memory.clone();
        self.engine.memory = memory;
    }
}

/// The files that the server keeps to itself are kept from workers that are isolated.
fn python_workers(flags: &mut ServeFlags) -> WorkerOptions {
    let mut python = std::mem::take(&mut flags.python);
    let keys = [&flags.http_tls.key, &flags.grpc_tls.key];
    let policy = flags.auth_policy.iter();
    python.secret.extend(
        keys.into_iter().chain(policy).filter(|path| !path.as_os_str().is_empty()).cloned(),
    );
    python
}

/// No more threads than cores: the rest would only take turns.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Rules that concern several flags.
fn check_rules(flags: &ServeFlags) -> Result<(), FlagError> {
    let rule = |text: &str| Err(FlagError::Rule(text.to_owned()));
    let models = &flags.engine.startup_models;
    if !models.is_empty() && flags.engine.control_mode != ControlMode::Explicit {
        return rule(
            "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.",
        );
    }
    if models.len() > 1 && models.iter().any(|model| model == "*") {
        return rule("Wildcard model name '*' must be the ONLY startup model if specified at all.");
    }
    if flags.cache.local_size.is_some() && !flags.cache.settings.is_empty() {
        return rule(
            "Error: Incompatible flags --response-cache-byte-size and --cache-config both provided. Please provide one \
             or the other.",
        );
    }
    if flags.repositories.is_empty() && flags.paths.is_empty() {
        return Err(FlagError::NoRepository);
    }
    if flags.repoagent_directory.is_empty() {
        return rule("creating server: Invalid argument - --repoagent-directory can not be empty");
    }
    let is_cached = flags.cache.local_size.is_some() || !flags.cache.settings.is_empty();
    if is_cached && flags.cache.directory.is_empty() {
        return rule("creating server: Invalid argument - cache directory can not be empty");
    }
    Ok(())
}

/// How many requests must wait before the first is executed: a hook of Triton's own tests.
const HOLD_VARIABLE: &str = "TRITONSERVER_DELAY_SCHEDULER";

/// The same for requests of sequences without a slot; it counts where the other is set.
const BACKLOG_HOLD_VARIABLE: &str = "TRITONSERVER_BACKLOG_DELAY_SCHEDULER";

fn hold(environment: &Environment) -> Hold {
    let count = |name| environment.text(name).and_then(|count| count.parse().ok()).unwrap_or(0);
    Hold { queued: count(HOLD_VARIABLE), backlogged: count(BACKLOG_HOLD_VARIABLE) }
}

/// As in Triton every value but 1 turns it off.
fn starts_instances_one_by_one(environment: &Environment) -> bool {
    let is_parallel = environment.text("TRITON_PARALLEL_INSTANCE_LOADING");
    is_parallel.is_some_and(|value| !value.is_empty() && value != "1")
}

fn rate_limiter(mode: &str, provided: Vec<ResourceSupply>) -> Option<Arc<RateLimiter>> {
    mode.eq_ignore_ascii_case("execution_count").then(|| RateLimiter::new(provided))
}

fn has_gpu_metrics(flags: &ServeFlags, environment: &Environment) -> bool {
    flags.metrics.is_allowed.unwrap_or(true)
        && flags.allows_gpu_metrics
        && !environment.is_set("TRITON_SERVER_CPU_ONLY")
}

fn log_settings(log: LogSettings, environment: &Environment) -> LogSettings {
    let has_escaping =
        environment.text("TRITON_SERVER_ESCAPE_LOG_MESSAGES").as_deref() != Some("0");
    // As https://no-color.org has it.
    let has_colours = environment.text("NO_COLOR").is_none_or(|value| value.is_empty())
        && environment.text("TERM").as_deref() != Some("dumb");
    LogSettings { file: given(log.file), has_escaping, has_colours, ..log }
}

/// Where libraries come from, with the variables that name them.
pub fn runtime_options(runtimes: RuntimeOptions, environment: &Environment) -> RuntimeOptions {
    RuntimeOptions {
        onnxruntime_lib: given(runtimes.onnxruntime_lib),
        tensorflow_lib: given(runtimes.tensorflow_lib),
        openvino_lib: given(runtimes.openvino_lib),
        libtorch: given(runtimes.libtorch),
        environment: environment.clone(),
        ..runtimes
    }
}

/// An empty path is none.
fn given(path: Option<PathBuf>) -> Option<PathBuf> {
    path.filter(|path| !path.as_os_str().is_empty())
}

fn notes(notices: &[Notice], environment: &Environment) -> Vec<Note> {
    let mut notes: Vec<Note> = notices.iter().map(note).collect();
    let count = environment.text(HOLD_VARIABLE);
    if let Some(count) = count.filter(|count| count.parse::<usize>().is_err()) {
        let text = format!("{HOLD_VARIABLE} has no effect: '{count}' is no count of requests");
        notes.push(Note::Warning(text));
    }
    notes
}

fn note(notice: &Notice) -> Note {
    match notice {
        Notice::Warning(warning) => Note::Warning(warning.clone()),
        Notice::Missing { option, value, what } => {
            Note::Warning(format!("{option}={value} has no effect yet: {what}"))
        }
        Notice::NoEffect { option, value, why } => {
            Note::Info(format!("{option}={value} has no effect: {why}"))
        }
    }
}

#[cfg(test)]
mod tests;
