//! `galatea completions` and `galatea manual`: texts made from the tables of all commands.

use galatea_command_line::{CommandOutline, OptionOutline, Shell, man_page, markdown};
use galatea_telemetry::metrics;
use galatea_types::{Environment, suggest};

use crate::{auth_command, cache_command, check, client_credential, flags, runtime, tune, up};

/// What is wrong with the words behind one of these commands.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Nothing, where one of these is expected.
    #[error("which {what}? One of {} is expected", choices.join(", "))]
    Missing { what: &'static str, choices: &'static [&'static str] },
    /// None of those that there are.
    #[error("no {what} is called '{given}'; there is {}{}", choices.join(", "), suggestion(given, choices))]
    Unknown { what: &'static str, given: String, choices: &'static [&'static str] },
    /// More than one word.
    #[error("Unexpected argument: {0}")]
    Unexpected(String),
}

fn suggestion(given: &str, choices: &'static [&'static str]) -> String {
    let near = suggest::nearest(given, choices.iter().copied());
    near.first().map(|near| format!("; did you mean '{near}'?")).unwrap_or_default()
}

const COMPLETIONS_USAGE: &str = "\
Usage: galatea completions <shell>

Prints the script by which a shell (bash, zsh, fish) completes command lines of galatea, tritonserver and
perf_analyzer. To have it in every new shell:

  bash  galatea completions bash > ~/.local/share/bash-completion/completions/galatea
  zsh   galatea completions zsh > \"${fpath[1]}/_galatea\"
  fish  galatea completions fish > ~/.config/fish/completions/galatea.fish

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

/// The text that `galatea completions` is asked for.
pub fn completions(words: &[String], environment: &Environment) -> Result<String, TextError> {
    let what = "shell";
    match only(words)? {
        Some("-h" | "--help") => Ok(COMPLETIONS_USAGE.to_owned()),
        Some("model-names") => Ok(model_names(environment)),
        None => Err(TextError::Missing { what, choices: Shell::NAMES }),
        Some(name) => match Shell::named(name) {
            Some(shell) => Ok(shell.completion(&commands())),
            None => Err(TextError::Unknown { what, given: name.to_owned(), choices: Shell::NAMES }),
        },
    }
}

fn model_names(environment: &Environment) -> String {
    let words = client_credential::add_to(Vec::new(), environment).unwrap_or_default();
    let names = galatea_client_commands::model_names(words.into_iter());
    names.into_iter().map(|name| name + "\n").collect()
}

/// The text that `galatea manual` is asked for.
pub fn manual(words: &[String]) -> Result<String, TextError> {
    match only(words)? {
        Some("-h" | "--help") => Ok(MANUAL_USAGE.to_owned()),
        None | Some("man") => Ok(man_page("galatea", env!("CARGO_PKG_VERSION"), &commands())),
        Some("markdown") => Ok(format!("{MARKDOWN_HEAD}{}", markdown(&flags::outline()))),
        Some("metrics") => Ok(metrics::reference()),
        Some("config") => Ok(galatea_config::reference()),
        Some(other) => {
            let given = other.to_owned();
            Err(TextError::Unknown { what: "form of the manual", given, choices: FORMS })
        }
    }
}

const MARKDOWN_HEAD: &str = "\
# Flags of `galatea serve`

Made from the program's own table by `galatea manual markdown`; a test compares. Flags can be given as `--flag value` or
`--flag=value`, in any order, and cut short as long as they are unique. What differs from Triton's flags of the same
names is in [compat.md](compat.md).
";

fn only(words: &[String]) -> Result<Option<&str>, TextError> {
    match words {
        [] => Ok(None),
        [word] => Ok(Some(word)),
        [_, more, ..] => Err(TextError::Unexpected(more.clone())),
    }
}

fn command(
    path: &'static str,
    summary: &'static str,
    words: &'static [&'static str],
    options: Vec<OptionOutline>,
) -> CommandOutline {
    let is_of_models = matches!(path, "galatea models" | "galatea infer");
    let more_words = is_of_models.then_some("completions model-names");
    CommandOutline { path, summary, words, more_words, options }
}

/// All commands, under all names of the program.
fn commands() -> Vec<CommandOutline> {
    const SERVE: &str = "Serve the models of a repository";
    const UP: &str = "Serve an example model, or one of yours, for a first look";
    const SAGEMAKER: &str = "Serve as the container of a SageMaker endpoint";
    const CHECK: &str = "Find the mistakes in a model repository without serving it";
    const CONFIG: &str = "Print the completed config.pbtxt of a model";
    const TUNE: &str = "Measure which engine serves a model fastest";
    const PERF: &str = "Measure a server";
    const MODELS: &str = "List the models of a running server";
    const INFER: &str = "Send one request to a running server";
    const TOP: &str = "Watch a running server";
    const RUNTIMES: &[&str] = &["onnxruntime", "pytorch", "tensorflow", "openvino"];
    let top = "Inference server that speaks Triton's protocols, and its load tool";
    vec![
        command("galatea", top, &["--help", "--version"], Vec::new()),
        command("galatea up", UP, up::WORDS, flags::outline()),
        command("galatea serve", SERVE, &[], flags::outline()),
        command("galatea check", CHECK, &[], check::check_outline()),
        command("galatea config", CONFIG, &[], check::check_outline()),
        command("galatea tune", TUNE, &[], tune::tune_outline()),
        command("galatea sagemaker", SAGEMAKER, &[], flags::outline()),
        command("galatea perf", PERF, &[], galatea_perf::options::outline()),
        command(
            "galatea models",
            MODELS,
            &["load", "unload", "reload"],
            galatea_client_commands::models_outline(),
        ),
        command("galatea infer", INFER, &[], galatea_client_commands::infer_outline()),
        command("galatea top", TOP, &[], galatea_client_commands::top_outline()),
        command("galatea auth", "Make API keys", auth_command::WORDS, Vec::new()),
        command("galatea runtime", "Native runtime libraries", &["--help"], Vec::new()),
        command("galatea runtime list", "List the native runtimes", &[], Vec::new()),
        command(
            "galatea runtime install",
            "Fetch a native runtime library",
            RUNTIMES,
            runtime::install_outline(),
        ),
        command("galatea runtime path", "Print where its library is", RUNTIMES, Vec::new()),
        command(
            "galatea runtime remove",
            "Remove what was installed of a runtime",
            RUNTIMES,
            Vec::new(),
        ),
        command(
            "galatea cache",
            "Remove environments of Python models",
            cache_command::WORDS,
            Vec::new(),
        ),
        command("galatea completions", "Print completions for a shell", Shell::NAMES, Vec::new()),
        command("galatea manual", "Print the manual", FORMS, Vec::new()),
        command("tritonserver", SERVE, &[], flags::outline()),
        command("perf_analyzer", PERF, &[], galatea_perf::options::outline()),
    ]
}
