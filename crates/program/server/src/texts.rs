//! `galatea completions` and `galatea manual`: make texts from the tables of all commands.

use galatea_client_commands::{infer_outline, models_outline, top_outline};
use galatea_command_line::{CommandOutline, OptionOutline, Shell, man_page, markdown, outline};
use galatea_telemetry::metrics;
use galatea_types::Environment;

use crate::{
    advice::did_you_mean,
    auth_command, cache_command,
    check::CheckFlags,
    client_credential,
    deploy::{self, EnvoyFlags},
    flags::{FlagError, ServeFlags},
    runtime::{InstallFlags, ListFlags},
    tune::TuneFlags,
    up,
};

/// The refusal of an unknown word.
fn unknown(what: &str, given: &str, choices: &'static [&'static str]) -> FlagError {
    let (there_is, near) = (choices.join(", "), did_you_mean(given, choices.iter().copied()));
    FlagError::rule(format!("no {what} is called '{given}'; there is {there_is}{near}"))
}

const COMPLETIONS_USAGE: &str = "\
Usage: galatea completions <shell>

Prints the script by which a shell (bash, zsh, fish) completes command lines of galatea, tritonserver and
perf_analyzer. To have it in every new shell:

  bash  mkdir -p ~/.local/share/bash-completion/completions
        galatea completions bash > ~/.local/share/bash-completion/completions/galatea
  zsh   galatea completions zsh > \"${fpath[1]}/_galatea\"
  fish  mkdir -p ~/.config/fish/completions
        galatea completions fish > ~/.config/fish/completions/galatea.fish

The scripts ask `galatea completions model-names` for the models of the server at localhost:8000, which prints nothing
where none answers within half a second.
";

const MANUAL_USAGE: &str = "\
Usage: galatea manual [man|markdown|metrics|config]

Prints all commands and options as a page for man (`galatea manual > galatea.1; man ./galatea.1`), the options
of serve as Markdown, the metrics it has as Markdown, or the fields of a config.pbtxt as Markdown.

To have `man galatea`, put the page beside the program, where man looks for it:

  man=\"$(dirname \"$(command -v galatea)\")/../share/man/man1\"
  mkdir -p \"$man\" && galatea manual > \"$man/galatea.1\"
";

/// The forms of the manual.
const FORMS: &[&str] = &["man", "markdown", "metrics", "config"];

/// Returns the text of `galatea completions`.
pub fn completions(words: &[String], environment: &Environment) -> Result<String, FlagError> {
    match only(words)? {
        Some("-h" | "--help") => Ok(COMPLETIONS_USAGE.to_owned()),
        Some("model-names") => Ok(model_names(environment)),
        None => {
            let shells = Shell::NAMES.join(", ");
            Err(FlagError::rule(format!("a shell is missing: one of {shells} is expected")))
        }
        Some(name) => match Shell::named(name) {
            Some(shell) => Ok(shell.completion(&commands())),
            None => Err(unknown("shell", name, Shell::NAMES)),
        },
    }
}

fn model_names(environment: &Environment) -> String {
    let words = client_credential::add_to(Vec::new(), environment).unwrap_or_default();
    let names = galatea_client_commands::model_names(words.into_iter());
    names.into_iter().map(|name| name + "\n").collect()
}

/// Returns the text of `galatea manual`.
pub fn manual(words: &[String]) -> Result<String, FlagError> {
    match only(words)? {
        Some("-h" | "--help") => Ok(MANUAL_USAGE.to_owned()),
        None | Some("man") => Ok(man_page("galatea", env!("CARGO_PKG_VERSION"), &commands())),
        Some("markdown") => Ok(format!("{MARKDOWN_HEAD}{}", markdown(&outline::<ServeFlags>()))),
        Some("metrics") => Ok(metrics::reference()),
        Some("config") => Ok(galatea_config::reference()),
        Some(other) => Err(unknown("form of the manual", other, FORMS)),
    }
}

const MARKDOWN_HEAD: &str = "\
# Flags of `galatea serve`

`galatea serve` takes these flags as `--flag value` or `--flag=value`, in any order; a unique beginning of a name is enough.
[compat.md](compat.md) says what differs from Triton. `galatea manual markdown` makes this page from the program's table.
";

fn only(words: &[String]) -> Result<Option<&str>, FlagError> {
    match words {
        [] => Ok(None),
        [word] => Ok(Some(word)),
        [_, more, ..] => Err(FlagError::rule(format!("Unexpected argument: {more}"))),
    }
}

/// A command: its name, its purpose, the words after it, and its options.
type Command = (&'static str, &'static str, &'static [&'static str], fn() -> Vec<OptionOutline>);

const SERVE: &str = "Serve the models of a repository";
const TOP: &str = "Inference server that speaks Triton's protocols, and its load tool";
const UP: &str = "Serve an example model, or one of yours, for a first look";
const SAGEMAKER: &str = "Serve as the container of a SageMaker endpoint";
const RUNTIMES: &[&str] = &["onnxruntime", "pytorch", "tensorflow", "openvino"];
const LIST: &str = "List the native runtimes, and the libraries made for Triton";
const INSTALL: &str = "Fetch a native runtime library";
const REMOVE: &str = "Remove an installed runtime";
const CACHE: &str = "Remove environments of Python models";
const CHECK: &str = "Find the mistakes in a model repository without serving it";
const TRACE: &str = "Show where the time of traced requests went";
const CONTROL: &[&str] = &["load", "unload", "reload"];

/// All commands, under all names of the program.
const COMMANDS: &[Command] = &[
    ("galatea", TOP, &["--help", "--version"], Vec::new),
    ("galatea up", UP, up::WORDS, outline::<ServeFlags>),
    ("galatea serve", SERVE, &[], outline::<ServeFlags>),
    ("galatea check", CHECK, &[], outline::<CheckFlags>),
    ("galatea config", "Print the completed config.pbtxt of a model", &[], outline::<CheckFlags>),
    ("galatea tune", "Measure which engine serves a model fastest", &[], outline::<TuneFlags>),
    ("galatea sagemaker", SAGEMAKER, &[], outline::<ServeFlags>),
    ("galatea perf", "Measure a server", &[], galatea_perf::options::outline),
    ("galatea models", "List the models of a running server", CONTROL, models_outline),
    ("galatea infer", "Send one request to a running server", &[], infer_outline),
    ("galatea top", "Watch a running server", &[], top_outline),
    ("galatea trace", TRACE, &[], galatea_trace_view::outline),
    ("galatea auth", "Make API keys", auth_command::WORDS, Vec::new),
    ("galatea runtime", "Native runtime libraries", &["--help"], Vec::new),
    ("galatea runtime list", LIST, &[], outline::<ListFlags>),
    ("galatea runtime install", INSTALL, RUNTIMES, outline::<InstallFlags>),
    ("galatea runtime path", "Print the path of its library", RUNTIMES, Vec::new),
    ("galatea runtime remove", REMOVE, RUNTIMES, Vec::new),
    ("galatea cache", CACHE, cache_command::WORDS, Vec::new),
    ("galatea deploy", "Print the configuration of a proxy", deploy::WORDS, Vec::new),
    ("galatea deploy envoy", "Print a configuration of Envoy", &[], outline::<EnvoyFlags>),
    ("galatea completions", "Print completions for a shell", Shell::NAMES, Vec::new),
    ("galatea manual", "Print the manual", FORMS, Vec::new),
    ("tritonserver", SERVE, &[], outline::<ServeFlags>),
    ("perf_analyzer", "Measure a server", &[], galatea_perf::options::outline),
];

fn commands() -> Vec<CommandOutline> {
    let of_models = ["galatea models", "galatea infer"];
    let outline = |&(path, summary, words, options): &Command| {
        let more_words = of_models.contains(&path).then_some("completions model-names");
        CommandOutline { path, summary, words, more_words, options: options() }
    };
    COMMANDS.iter().map(outline).collect()
}

/// Returns the words that may follow `galatea`.
pub fn command_names() -> impl Iterator<Item = &'static str> {
    let names = COMMANDS.iter().filter_map(|(path, ..)| path.strip_prefix("galatea "));
    names.filter(|name| !name.contains(' '))
}
