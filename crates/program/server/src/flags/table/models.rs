//! Options about models and their backends.

use std::time::Duration;

use galatea_command_line::{Kind, Occurrence, options, set};
use galatea_engine::ControlMode;

use super::{
    super::{error::StoreResult, serve_flags::ServeFlags, setting},
    row::{ANY, Row, at_least},
};

pub const REPOSITORY: &[Row] = options! {
    /// Another name for --model-repository.
    "model-store" => Row::of(Kind::Text).fills(|o| &mut o.serve.repositories),
    /// Folder with one folder per model, or the address of such a folder in an object store: s3://, gs://, as://,
    /// hf://, https://. May be repeated; a model found in several of them is not available.
    "model-repository" => Row::of(Kind::Text).fills(|o| &mut o.serve.repositories),
    /// Folder that keeps models fetched from object stores, hubs and archives. Several servers of one user may share
    /// it. Default is galatea/models in the user's cache folder, or in the folder for temporary files if there is none.
    "repository-cache-directory" => Row::of(Kind::Text)
        .fills(|o| &mut o.serve.repository_cache.directory),
    /// Most bytes that folder holds, with a unit (512M, 4G), or as a share of the free space there. The server removes
    /// the least recently used models first and never those in use.
    "repository-cache-size" => Row::of(Kind::Form("<bytes>|<percent>%"))
        .default("50%").stores(|o, v| setting::memory_size(&mut o.serve.repository_cache.size, v)),
    /// End when a model fails to load at start.
    "exit-on-error" => Row::of(Kind::Bool).default("true").fills(|o| &mut o.serve.exits_on_error),
    /// Use configurations as written, without completing them from the model's file.
    "disable-auto-complete-config" => Row::of(Kind::Switch)
        .fills(|o| &mut o.is_auto_complete_disabled),
    /// Answer yes at /v2/health/ready only when all models are ready. If false, answer yes as soon as the server
    /// answers.
    "strict-readiness" => Row::of(Kind::Bool)
        .default("true").fills(|o| &mut o.serve.engine.has_strict_readiness),
    /// Way of choosing models to load. "none" loads all at start. "explicit" loads those of --load-model, then those
    /// that clients ask for. "poll" follows changes of the repositories: it loads a model once its folder has not
    /// changed for two seconds.
    "model-control-mode" => Row::of(Kind::Choice(&["none", "poll", "explicit"]))
        .default("none").stores(control_mode),
    /// Seconds between two checks of the repositories with --model-control-mode=poll; 0: no checks after the start.
    "repository-poll-secs" => Row::of(ANY)
        .default("15").stores(set!(|o, v| o.repository_poll_secs = v.raised_to(0)?)),
    /// Longest delay in seconds before a change found by --model-control-mode=poll is loaded. Each server draws its own
    /// delay for each change, so that servers of one repository do not load at the same time. 0: no delay.
    "reload-jitter" => Row::of(at_least(0)).default("0")
        .stores(set!(|o, v| o.serve.engine.reload_jitter.longest = Duration::from_secs(v.integer()?))),
    /// Model to load at start with --model-control-mode=explicit. May be repeated; '*' alone loads all.
    "load-model" => Row::of(Kind::Text).fills(|o| &mut o.serve.engine.startup_models),
    /// Use configs/<name>.pbtxt instead of config.pbtxt for each model that has it.
    "model-config-name" => Row::of(Kind::Name).stores(config_name),
    /// Let configurations that clients send with a load request name files outside of the model's folder:
    /// EXECUTION_ENV_PATH, libraries of operators, caches.
    "allow-override-paths" => Row::of(Kind::Bool)
        .default("false").fills(|o| &mut o.serve.engine.allows_override_paths),
    /// Number of models to load at the same time; at least one.
    "model-load-thread-count" => Row::of(ANY)
        .default("4").stores(set!(|o, v| o.serve.engine.load_thread_count = v.raised_to(1)?)),
    /// Number of times to retry a failed load.
    "model-load-retry-count" => Row::of(at_least(0))
        .default("0").fills(|o| &mut o.serve.engine.load_retry_count),
    /// Serve models of one name from several repositories, each a namespace. Clients cannot name the namespace: such
    /// models serve the ensembles of their repository.
    "model-namespacing" => Row::of(Kind::Bool)
        .default("false").fills(|o| &mut o.serve.engine.has_namespaces),
    /// Let GPUs reach each other's memory.
    "enable-peer-access" => Row::of(Kind::Bool)
        .default("true").no_effect("an instance works on one GPU alone"),
};

pub const BACKEND: &[Row] = options! {
    /// Folder with one folder per backend: one with a model.py is a backend written in Python. If this option is given,
    /// onnxruntime/libonnxruntime.so in the folder takes precedence over an installed one. Default is
    /// /opt/tritonserver/backends.
    "backend-directory" => Row::of(Kind::Text).fills(|o| &mut o.serve.runtimes.backend_directory),
    /// Setting of a backend, <backend>,<setting>=<value>, or of all of them, <setting>=<value>. May be repeated.
    "backend-config" => Row::of(Kind::Form("<string>,<string>=<string>"))
        .stores(|o, v| setting::backend_setting(&mut o.serve.engine.backend_config, v)),
};

pub const AGENT: &[Row] = options! {
    /// Folder with one folder per repository agent that is a library made for Triton: NAME/libtritonrepoagent_NAME.so.
    "repoagent-directory" => Row::of(Kind::Text)
        .default("/opt/tritonserver/repoagents")
        .fills(|o| &mut o.repoagent_directory),
};

pub const CACHE: &[Row] = options! {
    /// Setting of the response cache: local,size=<bytes> keeps responses in memory; redis,host=<name> and
    /// redis,port=<number> keep them in a Redis server; another name is a library in --cache-directory. <name>,library=triton
    /// takes the library for these two as well. May be repeated. Default: no cache.
    "cache-config" => Row::of(Kind::Form("<string>,<string>=<string>"))
        .stores(|o, v| setting::cache_setting(&mut o.cache, v)),
    /// Folder with one folder per cache that is a library made for Triton: NAME/libtritoncache_NAME.so.
    "cache-directory" => Row::of(Kind::Text)
        .default("/opt/tritonserver/caches")
        .fills(|o| &mut o.cache.directory),
};

pub const RATE_LIMITER: &[Row] = options! {
    /// Limit of executions: "execution_count" makes instances wait for the resources that their configuration names,
    /// "off" does not.
    "rate-limit" => Row::of(Kind::Choice(&["off", "execution_count"]))
        .default("off").fills(|o| &mut o.rate_limit),
    /// Amount of a resource: <name>:<count>[:<device>]. Default: as much of each as the instance that needs most. May
    /// be repeated.
    "rate-limit-resource" => Row::of(Kind::Form("<string>:<integer>:<integer>"))
        .stores(setting::rate_limit_resource),
};

/// Stores the name of a file, without its ending. It must not lead to another folder.
fn config_name(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    if given.text.contains('/') {
        return Err(given.malformed("the name of a file in configs/, without its .pbtxt").into());
    }
    given.put(&mut flags.serve.engine.model_config_name)
}

fn control_mode(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    flags.serve.engine.control_mode = match given.text.to_ascii_lowercase().as_str() {
        "explicit" => ControlMode::Explicit,
        "poll" => ControlMode::Poll,
        _ => ControlMode::None,
    };
    Ok(())
}
