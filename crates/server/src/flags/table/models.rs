use super::{Flag, Kind, at_least};

pub const REPOSITORY: &[Flag] = &[
    Flag::new("model-store", Kind::List, "", "Another name for --model-repository.")
        .alias_of("model-repository"),
    Flag::new(
        "model-repository",
        Kind::List,
        "",
        "Folder with one folder per model. May be repeated; a model found in several of them is not \
         available.",
    )
    .told_as("model_repository_path[{}]"),
    Flag::new("exit-on-error", Kind::Bool, "true", "End when a model fails to load at start."),
    Flag::new(
        "disable-auto-complete-config",
        Kind::Switch,
        "",
        "Take configurations as they are written: nothing is filled in by looking at the model file.",
    )
    .told_as("strict_model_config"),
    Flag::new(
        "strict-readiness",
        Kind::Bool,
        "true",
        "/v2/health/ready says yes only when all models are ready. If false, as soon as the server answers.",
    )
    .told_as("strict_readiness"),
    Flag::new(
        "model-control-mode",
        Kind::Choice(&["none", "poll", "explicit"]),
        "none",
        "Who decides which models are loaded: \"none\" loads all at start, \"explicit\" those of \
         --load-model and then what clients ask for. \"poll\" is not supported yet.",
    )
    .told_as("model_control_mode"),
    Flag::new(
        "repository-poll-secs",
        at_least(1),
        "15",
        "Seconds between two looks at the repository.",
    )
    .no_effect("it concerns --model-control-mode=poll only"),
    Flag::new(
        "load-model",
        Kind::List,
        "",
        "Model to load at start with --model-control-mode=explicit. May be repeated; '*' alone loads all.",
    )
    .told_as("startup_models_{}"),
    Flag::new(
        "model-config-name",
        Kind::Name,
        "",
        "Take configs/<name>.pbtxt of each model that has it instead of config.pbtxt.",
    )
    .told_as("model_config_name")
    .not_yet("every model is configured by its config.pbtxt"),
    Flag::new(
        "model-load-thread-count",
        at_least(1),
        "4",
        "How many models are loaded at the same time.",
    )
    .told_as("model_load_thread_count"),
    Flag::new(
        "model-load-retry-count",
        at_least(0),
        "0",
        "How often a failed load is tried again.",
    )
    .not_yet("a load is tried once"),
    Flag::new(
        "model-namespacing",
        Kind::Bool,
        "false",
        "Serve models of one name from several repositories.",
    )
    .not_yet("model names must differ across repositories"),
    Flag::new("enable-peer-access", Kind::Bool, "true", "Let GPUs reach each other's memory.")
        .no_effect("an instance works on one GPU alone"),
];

pub const BACKEND: &[Flag] = &[
    Flag::new(
        "backend-directory",
        Kind::Text,
        "/opt/tritonserver/backends",
        "Folder with one folder per backend: one with a model.py is a backend written in Python. When given, \
         onnxruntime/libonnxruntime.so in it is taken before an installed one.",
    ),
    Flag::new(
        "backend-config",
        Kind::Setting("<string>,<string>=<string>"),
        "",
        "Setting of a backend: <backend>,<setting>=<value>. An empty backend name means all of them. May be \
         repeated.",
    ),
];

pub const AGENT: &[Flag] = &[Flag::new(
    "repoagent-directory",
    Kind::Text,
    "/opt/tritonserver/repoagents",
    "Folder with repository agents.",
)
.no_effect("repository agents are not supported yet")];

pub const CACHE: &[Flag] = &[
    Flag::new(
        "cache-config",
        Kind::Setting("<string>,<string>=<string>"),
        "",
        "Setting of a response cache: <cache>,<setting>=<value>.",
    )
    .not_yet("there is no response cache"),
    Flag::new(
        "cache-directory",
        Kind::Text,
        "/opt/tritonserver/caches",
        "Folder with cache libraries.",
    )
    .no_effect("there is no response cache yet"),
];

pub const RATE_LIMITER: &[Flag] = &[
    Flag::new(
        "rate-limit",
        Kind::Choice(&["off", "execution_count"]),
        "off",
        "Whether instances wait for the resources their configuration names.",
    )
    .told_as("rate_limit")
    .not_yet("instances run as soon as they have work"),
    Flag::new(
        "rate-limit-resource",
        Kind::Setting("<string>:<integer>:<integer>"),
        "",
        "How much of a resource there is: <name>:<count>[:<device>].",
    )
    .no_effect("the rate limiter is off"),
];
