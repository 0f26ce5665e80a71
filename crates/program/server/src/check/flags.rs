//! The command lines of `galatea check` and `galatea config`.

use std::path::PathBuf;

use galatea_command_line::{Group, Kind, OptionOutline, OptionRow, OptionSet, help, outline, set};
use galatea_engine::EngineOptions;
use galatea_serve::RepositoryCacheOptions;

use crate::flags::{FlagError, backend_setting, cache_size, missing_gpus};

/// What a check is asked to do.
#[derive(Debug, Default)]
pub(super) struct CheckFlags {
    /// Without an option: a repository, the folder of one model, or a model's file.
    pub paths: Vec<PathBuf>,
    /// `--model-repository`
    pub repositories: Vec<PathBuf>,
    /// Where the models of addresses are fetched into.
    pub cache: RepositoryCacheOptions,
    /// `--auth-policy`
    pub auth_policy: Option<PathBuf>,
    pub is_json: bool,
    pub backend_directory: Option<PathBuf>,
    /// Without the repositories.
    pub engine: EngineOptions,
}

const CHECK: &str = "\
Usage: galatea check <path>... [options]

Looks at model repositories (folders or addresses, the folder or the file of one model) as `galatea serve` would, without starting a server: every mistake with its file, line and
column, and what to do about it. No code of a model runs, no library is opened. The exit code is 0 where every model could
be served, 1 where there are mistakes, 2 where the command line is wrong or a repository cannot be read.

";

const CONFIG: &str = "\
Usage: galatea config <model> [options]

Prints the config.pbtxt of a model, a folder of a repository, its address or a model's file, with what the model's file says about
its inputs and outputs. No code of the model runs.

";

const HELP_WIDTH: usize = 80;

pub(super) fn check_help() -> String {
    help::<CheckFlags>(CHECK, HELP_WIDTH)
}

pub(super) fn config_help() -> String {
    help::<CheckFlags>(CONFIG, HELP_WIDTH)
}

/// What the table says, for texts about all commands.
pub fn check_outline() -> Vec<OptionOutline> {
    outline::<CheckFlags>()
}

const ROWS: &[OptionRow<CheckFlags>] = &[
    OptionRow::new(
        "model-repository",
        Kind::Text,
        "A repository, as an option of serve. May be repeated.",
    )
    .stores(set!(|o, v| o.repositories.push(PathBuf::from(&v.text)))),
    OptionRow::new(
        "repository-cache-directory",
        Kind::Text,
        "Folder that models from object stores, hubs and archives are fetched into, as an option of serve.",
    )
    .stores(|o, v| v.put(&mut o.cache.directory)),
    OptionRow::new(
        "repository-cache-size",
        Kind::Form("<bytes>|<percent>%"),
        "Most bytes that folder holds, as an option of serve.",
    )
    .stores(|o, v| cache_size(&mut o.cache.size, v)),
    OptionRow::new(
        "auth-policy",
        Kind::Text,
        "A policy of who may do what, as an option of serve; it can be checked alone.",
    )
    .stores(|o, v| v.put(&mut o.auth_policy)),
    OptionRow::new("json", Kind::Switch, "Print what was found as one JSON object.")
        .stores(|o, v| v.put(&mut o.is_json)),
    OptionRow::new(
        "disable-auto-complete-config",
        Kind::Switch,
        "Do not complete configurations from the files of the models.",
    )
    .stores(set!(|o, _| o.engine.auto_completes_config = false)),
    OptionRow::new(
        "model-config-name",
        Kind::Text,
        "Models that have configs/<name>.pbtxt are configured by that.",
    )
    .stores(set!(|o, v| o.engine.model_config_name = v.text.clone())),
    OptionRow::new(
        "model-namespacing",
        Kind::Switch,
        "Several repositories may hold models of one name.",
    )
    .stores(|o, v| v.put(&mut o.engine.has_namespaces)),
    OptionRow::new(
        "backend-directory",
        Kind::Text,
        "Folder with backends that are written in Python.",
    )
    .stores(|o, v| v.put(&mut o.backend_directory)),
    OptionRow::new(
        "backend-config",
        Kind::Form("<string>,<string>=<string>"),
        "Setting of a backend, <backend>,<setting>=<value>. May be repeated.",
    )
    .stores(|o, v| backend_setting(&mut o.engine.backend_config, v)),
    OptionRow::new(
        "gpu-groups",
        Kind::Choice(&["refuse", "cpu"]),
        "What becomes of groups of kind KIND_GPU where there are no GPUs, as an option of serve.",
    )
    .default("refuse")
    .stores(set!(|o, v| o.engine.gpus.missing = missing_gpus(v))),
    OptionRow::help("Print this text."),
];

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
