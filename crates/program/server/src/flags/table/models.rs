//! Options about models and what runs them.

use galatea_command_line::{Kind, Occurrence, set};
use galatea_engine::ControlMode;

use super::{
    super::{error::Stored, serve_flags::ServeFlags, setting},
    row::{ANY, Row, at_least},
};

pub const REPOSITORY: &[Row] = &[
    Row::new("model-store", Kind::Text, "Another name for --model-repository.")
        .stores(|o, v| v.put(&mut o.repositories)),
    Row::new(
        "model-repository",
        Kind::Text,
        "Folder with one folder per model, or where such a folder is in an object store: \
         s3://, gs://, as://, hf://, https://. May be repeated; a model found in several of \
         them is not available.",
    )
    .stores(|o, v| v.put(&mut o.repositories)),
    Row::new(
        "repository-cache-directory",
        Kind::Text,
        "Folder that models from object stores, hubs and archives are fetched into and kept in; \
         several servers of one user may share it. Default is galatea/models in the user's cache \
         folder, or in the folder for temporary files where there is none.",
    )
    .stores(|o, v| v.put(&mut o.repository_cache.directory)),
    Row::new(
        "repository-cache-size",
        Kind::Form("<bytes>|<percent>%"),
        "Most bytes that folder holds, with a unit (512M, 4G), or as a share of what is free \
         there. The models that were not used for longest go first; those in use stay.",
    )
    .default("50%")
    .stores(setting::repository_cache_size),
    Row::new("exit-on-error", Kind::Bool, "End when a model fails to load at start.")
        .default("true")
        .stores(|o, v| v.put(&mut o.exits_on_error)),
    Row::new(
        "disable-auto-complete-config",
        Kind::Switch,
        "Take configurations as they are written: nothing is filled in by looking at the \
         model file.",
    )
    .stores(set!(|o, _| o.is_auto_complete_disabled = true)),
    Row::new(
        "strict-readiness",
        Kind::Bool,
        "/v2/health/ready answers yes only when all models are ready. If false, as soon as \
         the server answers.",
    )
    .default("true")
    .stores(|o, v| v.put(&mut o.engine.has_strict_readiness)),
    Row::new(
        "model-control-mode",
        Kind::Choice(&["none", "poll", "explicit"]),
        "Who decides which models are loaded: \"none\" loads all at start, \"explicit\" \
         those of --load-model and then what clients ask for, \"poll\" follows what is added \
         to the repositories, changed and removed: a model is loaded when its folder has not \
         changed for two seconds.",
    )
    .default("none")
    .stores(control_mode),
    Row::new(
        "repository-poll-secs",
        ANY,
        "Seconds between two looks at the repositories with --model-control-mode=poll; 0: none \
         after the start.",
    )
    .default("15")
    .stores(set!(|o, v| o.repository_poll_secs = v.raised_to(0)?)),
    Row::new(
        "load-model",
        Kind::Text,
        "Model to load at start with --model-control-mode=explicit. May be repeated; '*' \
         alone loads all.",
    )
    .stores(|o, v| v.put(&mut o.engine.startup_models)),
    Row::new(
        "model-config-name",
        Kind::Name,
        "Take configs/<name>.pbtxt of each model that has it instead of config.pbtxt.",
    )
    .stores(config_name),
    Row::new(
        "allow-override-paths",
        Kind::Bool,
        "Let configurations that clients send with a load request name files outside of the \
         model's folder: EXECUTION_ENV_PATH, libraries of operators, caches.",
    )
    .default("false")
    .stores(|o, v| v.put(&mut o.engine.allows_override_paths)),
    Row::new(
        "model-load-thread-count",
        ANY,
        "How many models are loaded at the same time; at least one.",
    )
    .default("4")
    .stores(set!(|o, v| o.engine.load_thread_count = v.raised_to(1)?)),
    Row::new("model-load-retry-count", at_least(0), "How often a failed load is tried again.")
        .default("0")
        .stores(|o, v| v.put(&mut o.engine.load_retry_count)),
    Row::new(
        "model-namespacing",
        Kind::Bool,
        "Serve models of one name from several repositories, each a namespace. Clients cannot name \
         the namespace: such models serve the ensembles of their repository.",
    )
    .default("false")
    .stores(|o, v| v.put(&mut o.engine.has_namespaces)),
    Row::new("enable-peer-access", Kind::Bool, "Let GPUs reach each other's memory.")
        .default("true")
        .no_effect("an instance works on one GPU alone"),
];

pub const BACKEND: &[Row] = &[
    Row::new(
        "backend-directory",
        Kind::Text,
        "Folder with one folder per backend: one with a model.py is a backend written in \
         Python. When given, onnxruntime/libonnxruntime.so in it is taken before an \
         installed one. Default is /opt/tritonserver/backends.",
    )
    .stores(|o, v| v.put(&mut o.runtimes.backend_directory)),
    Row::new(
        "backend-config",
        Kind::Form("<string>,<string>=<string>"),
        "Setting of a backend, <backend>,<setting>=<value>, or of all of them, \
         <setting>=<value>. May be repeated.",
    )
    .stores(setting::backend_config),
];

pub const AGENT: &[Row] =
    &[Row::new("repoagent-directory", Kind::Text, "Folder with repository agents.")
        .default("/opt/tritonserver/repoagents")
        .stores(|o, v| v.put(&mut o.repoagent_directory))
        .no_effect("repository agents are not supported yet")];

pub const CACHE: &[Row] = &[
    Row::new(
        "cache-config",
        Kind::Form("<string>,<string>=<string>"),
        "Setting of the response cache: local,size=<bytes> keeps responses in memory; redis,host=<name> \
         and redis,port=<number> keep them in a Redis server. May be repeated. Without it no \
         response is kept.",
    )
    .stores(setting::cache_config),
    Row::new("cache-directory", Kind::Text, "Folder with cache libraries.")
        .default("/opt/tritonserver/caches")
        .stores(|o, v| v.put(&mut o.cache.directory))
        .no_effect("the caches are built in"),
];

pub const RATE_LIMITER: &[Row] = &[
    Row::new(
        "rate-limit",
        Kind::Choice(&["off", "execution_count"]),
        "Whether instances wait for the resources their configuration names.",
    )
    .default("off")
    .stores(|o, v| v.put(&mut o.rate_limit)),
    Row::new(
        "rate-limit-resource",
        Kind::Form("<string>:<integer>:<integer>"),
        "How much of a resource there is: <name>:<count>[:<device>]. Without it there is as much of \
         each as the instance that asks for most. May be repeated.",
    )
    .stores(setting::rate_limit_resource),
];

/// A name of a file, without the end: it must not lead to another folder.
fn config_name(flags: &mut ServeFlags, given: &Occurrence) -> Stored {
    if given.text.contains('/') {
        return Err(given.malformed("the name of a file in configs/, without its .pbtxt").into());
    }
    given.put(&mut flags.engine.model_config_name)
}

fn control_mode(flags: &mut ServeFlags, given: &Occurrence) -> Stored {
    flags.engine.control_mode = match given.text.to_ascii_lowercase().as_str() {
        "explicit" => ControlMode::Explicit,
        "poll" => ControlMode::Poll,
        _ => ControlMode::None,
    };
    Ok(())
}
