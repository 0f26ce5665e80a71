//! Checks the options of `serve`: the second stage after [`ServeFlags`].

mod cloud;
mod endpoint;
mod response_cache;
mod rows;
mod tls;

use std::{
    hash::{BuildHasher, RandomState},
    num::NonZero,
    path::PathBuf,
    sync::Arc,
    thread,
    time::Duration,
};

use galatea_backend_python::{WorkerOptions, WorkerRules};
use galatea_command_line::Notice;
use galatea_engine::{ControlMode, RateLimiter, ResourceSupply, TestHold};
use galatea_runtimes::{ProgressMaker, TerminalProgress};
use galatea_serve::{Endpoint, Note, RuntimeOptions, ServeOptions};
use galatea_telemetry::logger::LogSettings;
use galatea_types::Environment;

pub use self::{
    endpoint::{is_unix, metrics_address},
    response_cache::cache as response_cache,
};
use crate::flags::{FlagError, ServeFlags};

/// Returns the options that follow from the flags and the environment.
pub fn from_flags(
    mut flags: ServeFlags,
    environment: &Environment,
) -> Result<ServeOptions, FlagError> {
    cloud::complete(&mut flags, environment);
    check_rules(&flags)?;
    let clouds = cloud::platforms(&flags, environment)?;
    let mut notes = notes(&flags.notices, environment);
    notes.extend(jitter_note(&flags));
    let [http, grpc, metrics] = {
        let others: Vec<&Endpoint> = clouds.iter().map(|cloud| &cloud.endpoint).collect();
        let endpoints = endpoint::endpoints(&flags, &others, &mut notes)?;
        endpoint::check_takeover(flags.serve.takeover.as_deref(), &endpoints)?;
        endpoints
    };
    let tls = tls::tls(&flags, &mut notes)?;
    let response_cache = response_cache::cache(&flags.cache, environment, &mut notes)?;
    let (rows, is_polled) =
        (rows::rows(&flags), flags.serve.engine.control_mode == ControlMode::Poll);
    let poll_interval = Duration::from_secs(flags.repository_poll_secs);
    let has_gpu_metrics = has_gpu_metrics(&flags, environment);
    let python = WorkerRules::new(python_workers(&mut flags));
    let mut options = ServeOptions {
        tls,
        http,
        grpc,
        metrics,
        clouds,
        response_cache,
        poll_interval: Some(poll_interval).filter(|interval| is_polled && !interval.is_zero()),
        has_gpu_metrics,
        notes,
        rows,
        python,
        ..flags.serve
    };
    options.log = log_settings(options.log, environment);
    options.auth_policy = given(options.auth_policy);
    options.engine.hold = hold(environment);
    options.engine.reload_jitter.seed = RandomState::new().hash_one(());
    options.engine.starts_instances_one_by_one = starts_instances_one_by_one(environment);
    options.engine.execution.rate_limiter =
        rate_limiter(&flags.rate_limit, flags.rate_limit_resources);
    options.http_options.has_console = flags.has_console.unwrap_or(true);
    let grpc_threads = &mut options.grpc_options.thread_count;
    *grpc_threads = cores().min(*grpc_threads);
    options.runtimes = runtime_options(options.runtimes, environment);
    options.agent_directory = PathBuf::from(flags.repoagent_directory);
    Ok(options)
}

/// Returns the options of Python workers. Isolated workers must not see the files of the server.
fn python_workers(flags: &mut ServeFlags) -> WorkerOptions {
    if !flags.serve.log.has_info {
        // The log does not show the progress then.
        flags.serve.runtimes.progress = ProgressMaker::new(|| Box::new(TerminalProgress::new()));
    }
    let mut python = std::mem::take(&mut flags.python);
    python.is_hardened = flags.serve.is_hardened;
    python.stop = flags.serve.runtimes.stop.clone();
    python.progress = flags.serve.runtimes.progress.clone();
    let keys = [&flags.http_tls.key, &flags.grpc_tls.key];
    let policy = flags.serve.auth_policy.iter();
    python.secret.extend(
        keys.into_iter().chain(policy).filter(|path| !path.as_os_str().is_empty()).cloned(),
    );
    python
}

/// Returns the number of cores. More threads would only take turns.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Checks rules about several flags.
fn check_rules(flags: &ServeFlags) -> Result<(), FlagError> {
    let rule = |text: &str| Err(FlagError::Rule(text.to_owned()));
    let models = &flags.serve.engine.startup_models;
    if !models.is_empty() && flags.serve.engine.control_mode != ControlMode::Explicit {
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
    if flags.serve.repositories.is_empty() && flags.serve.paths.is_empty() {
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

/// Number of requests that must wait before the first is executed: a hook of Triton's own tests.
const HOLD_VARIABLE: &str = "TRITONSERVER_DELAY_SCHEDULER";

/// The same number for requests of sequences without a slot; it applies if the other one is set.
const BACKLOG_HOLD_VARIABLE: &str = "TRITONSERVER_BACKLOG_DELAY_SCHEDULER";

fn hold(environment: &Environment) -> TestHold {
    let count = |name| environment.text(name).and_then(|count| count.parse().ok()).unwrap_or(0);
    TestHold { queued: count(HOLD_VARIABLE), backlogged: count(BACKLOG_HOLD_VARIABLE) }
}

/// Returns true if parallel starts are off. As in Triton, every value but 1 turns them off.
fn starts_instances_one_by_one(environment: &Environment) -> bool {
    let is_parallel = environment.text("TRITON_PARALLEL_INSTANCE_LOADING");
    is_parallel.is_some_and(|value| !value.is_empty() && value != "1")
}

fn rate_limiter(mode: &str, provided: Vec<ResourceSupply>) -> Option<Arc<RateLimiter>> {
    mode.eq_ignore_ascii_case("execution_count").then(|| RateLimiter::new(provided))
}

fn has_gpu_metrics(flags: &ServeFlags, environment: &Environment) -> bool {
    flags.metrics.is_allowed.unwrap_or(true)
        && flags.serve.has_gpu_metrics
        && !environment.is_set("TRITON_SERVER_CPU_ONLY")
}

fn log_settings(log: LogSettings, environment: &Environment) -> LogSettings {
    let has_escaping =
        environment.text("TRITON_SERVER_ESCAPE_LOG_MESSAGES").as_deref() != Some("0");
    // Colours follow https://no-color.org.
    let has_colours = environment.text("NO_COLOR").is_none_or(|value| value.is_empty())
        && environment.text("TERM").as_deref() != Some("dumb");
    LogSettings { file: given(log.file), has_escaping, has_colours, ..log }
}

/// Returns the sources of libraries, with the variables that name them.
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

/// Treats an empty path as missing.
fn given(path: Option<PathBuf>) -> Option<PathBuf> {
    path.filter(|path| !path.as_os_str().is_empty())
}

fn notes(notices: &[Notice], environment: &Environment) -> Vec<Note> {
    let mut notes: Vec<Note> = notices.iter().map(note).collect();
    let count = environment.text(HOLD_VARIABLE);
    if let Some(count) = count.filter(|count| count.parse::<usize>().is_err()) {
        let text = format!("{HOLD_VARIABLE} has no effect: '{count}' is not a number of requests");
        notes.push(Note::Warning(text));
    }
    notes
}

/// Returns a warning about a delay of polled loads in a server that does not poll.
fn jitter_note(flags: &ServeFlags) -> Option<Note> {
    let seconds = flags.serve.engine.reload_jitter.longest.as_secs();
    let is_idle = flags.serve.engine.control_mode != ControlMode::Poll && seconds > 0;
    is_idle.then(|| {
        Note::Warning(format!(
            "--reload-jitter={seconds} has no effect: the server does not poll (--model-control-mode=poll)"
        ))
    })
}

fn note(notice: &Notice) -> Note {
    match notice {
        // Triton's own word and text: programs search for both.
        Notice::Warning(warning) if warning.contains("deprecated") => {
            Note::Warning(format!("Warning: {warning}"))
        }
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
