//! The command lines of `galatea check` and `galatea config`.

use std::path::PathBuf;

use galatea_command_line::{Group, Kind, OptionRow, OptionSet, options, set};
use galatea_engine::EngineOptions;
use galatea_serve::RepositoryCacheOptions;

use crate::flags::{
    CacheFlags, FlagError, backend_setting, cache_setting, memory_size, missing_gpus,
};

/// The options of a check.
#[derive(Debug, Default)]
pub struct CheckFlags {
    /// Paths without an option: a repository, the folder of one model, or a model's file.
    pub paths: Vec<PathBuf>,
    pub repositories: Vec<PathBuf>,
    /// The folder for models that are fetched from addresses.
    pub cache: RepositoryCacheOptions,
    pub auth_policy: Option<PathBuf>,
    pub is_json: bool,
    pub backend_directory: Option<PathBuf>,
    pub agent_directory: Option<PathBuf>,
    pub response_cache: CacheFlags,
    /// Options of the engine, without the repositories.
    pub engine: EngineOptions,
}

pub(super) const CHECK: &str = "\
Usage: galatea check <path>... [options]

Looks at model repositories (folders or addresses, the folder or the file of one model) as `galatea serve` would, without starting a server: every mistake with its file, line and
column, and what to do about it. No code of a model runs, no library is opened. The exit code is 0 where every model could
be served, 1 where there are mistakes, 2 where the command line is wrong or a repository cannot be read.

";

pub(super) const CONFIG: &str = "\
Usage: galatea config <model> [options]

Prints the config.pbtxt of a model, a folder of a repository, its address or a model's file, with what the model's file says about
its inputs and outputs. No code of the model runs.

";

type Row = OptionRow<CheckFlags>;

const ROWS: &[Row] = options! {
    /// A repository, as an option of serve. May be repeated.
    "model-repository" => Row::of(Kind::Text).fills(|o| &mut o.repositories),
    /// Folder that keeps models fetched from object stores, hubs and archives, as an option of serve.
    "repository-cache-directory" => Row::of(Kind::Text).fills(|o| &mut o.cache.directory),
    /// Most bytes that folder holds, as an option of serve.
    "repository-cache-size" => Row::of(Kind::Form("<bytes>|<percent>%"))
        .stores(|o, v| memory_size(&mut o.cache.size, v)),
    /// Policy of API keys, tokens and roles, as an option of serve; it can be checked alone.
    "auth-policy" => Row::of(Kind::Text).fills(|o| &mut o.auth_policy),
    /// Print the mistakes as one JSON object.
    "json" => Row::of(Kind::Switch).fills(|o| &mut o.is_json),
    /// Do not complete configurations from the files of the models.
    "disable-auto-complete-config" => Row::of(Kind::Switch)
        .stores(set!(|o, _| o.engine.auto_completes_config = false)),
    /// Use configs/<name>.pbtxt for each model that has it.
    "model-config-name" => Row::of(Kind::Text).fills(|o| &mut o.engine.model_config_name),
    /// Allow models of one name in several repositories.
    "model-namespacing" => Row::of(Kind::Switch).fills(|o| &mut o.engine.has_namespaces),
    /// Folder with backends, as an option of serve. Libraries there are read, and not opened.
    "backend-directory" => Row::of(Kind::Text).fills(|o| &mut o.backend_directory),
    /// Folder with repository agents, as an option of serve. They are read, and not called.
    "repoagent-directory" => Row::of(Kind::Text).fills(|o| &mut o.agent_directory),
    /// Setting of the response cache, as an option of serve. Its library is read, and not opened. May be repeated.
    "cache-config" => Row::of(Kind::Form("<string>,<string>=<string>"))
        .stores(|o, v| cache_setting(&mut o.response_cache, v)),
    /// Folder with libraries of caches, as an option of serve.
    "cache-directory" => Row::of(Kind::Text)
        .default("/opt/tritonserver/caches").fills(|o| &mut o.response_cache.directory),
    /// Setting of a backend, <backend>,<setting>=<value>. May be repeated.
    "backend-config" => Row::of(Kind::Form("<string>,<string>=<string>"))
        .stores(|o, v| backend_setting(&mut o.engine.backend_config, v)),
    /// Treatment of groups of kind KIND_GPU where there are no GPUs, as an option of serve.
    "gpu-groups" => Row::of(Kind::Choice(&["refuse", "cpu"]))
        .default("refuse").stores(set!(|o, v| o.engine.gpus.missing = missing_gpus(v))),
    /// Print this text.
    "help" => Row::help(""),
};

impl OptionSet for CheckFlags {
    type Error = FlagError;

    fn groups() -> &'static [Group<Self>] {
        &[Group { title: "", rows: ROWS, is_own: false }]
    }

    fn word(&mut self, word: String) -> Result<(), FlagError> {
        self.paths.push(PathBuf::from(word));
        Ok(())
    }
}
