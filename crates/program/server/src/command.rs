//! The sub-commands of the program, and the names it can be started under.

use std::{env, path::Path, process::ExitCode};

use galatea_serve::{ServeOptions, model_worker};
use galatea_types::Environment;

use crate::{
    advice, auth_command, cache_command, check, client_credential,
    flags::{self, FlagError, Words},
    options, runtime, sagemaker, serve,
    terminal::{self, fail, print, width},
    texts, tune, up,
};

const USAGE: &str = "\
Usage: galatea <command>

  up [example | path]      Serve a model for a first look: fetches a small one, and says what to ask it
  serve [path] [options]   Serve the models of a repository, one model's folder, or a model file
  check <repository>...    Find the mistakes in a repository without serving it: file, line, and what to do
  config <model>           Print the completed config.pbtxt of a model's folder or file
  tune <model> --engines   Measure which engine serves an ONNX model fastest here: ONNX Runtime or OpenVINO
  sagemaker [options]      Serve as the container of a SageMaker endpoint: its variables and folders are the options
  perf [options]           Measure a server: the options, report and files of perf_analyzer, and more
  models [model]           List the models of a running server, or show one: inputs, outputs, how to ask it
  infer <model> [options]  Send one request to a running server and print the answer
  top [options]            Watch a running server: what its models do each second
  auth key <name>          Make an API key, and the lines of a policy (--auth-policy) that know it
  runtime list             List the native runtimes: their versions, and where they are installed
  runtime install <name>   Fetch a native runtime library (onnxruntime, pytorch, tensorflow, openvino); --wheel <file>
                           takes it from a wheel on this machine, --reinstall replaces an installed one, and for
                           pytorch --libtorch <folder> prepares one that is on this machine
  runtime path <name>      Print where its library is
  runtime remove <name>    Remove what was installed of a runtime, and say how much room that made
  cache clean              Remove the environments of Python models that no server uses
  completions <shell>      Print the completions of all commands for bash, zsh or fish
  manual [man|markdown|metrics|config]
                           Print all commands and options as a manual page, or as Markdown the options of serve, the
                           metrics, or the fields of a config.pbtxt
  -h, --help               Print this text; each command prints its own with --help
  -V, --version            Print the version

To begin: galatea up

Started under the name `tritonserver` it is `galatea serve`, under `perf_analyzer` it is `galatea perf`, and under
`serve`, the command that SageMaker starts a container with, it is `galatea sagemaker`.
";

const VERSION: &str = concat!("galatea ", env!("CARGO_PKG_VERSION"), "\n");

/// Runs the program with its arguments, its own name first.
pub fn run(mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let program = arguments.next().unwrap_or_default();
    match Path::new(&program).file_name().and_then(|name| name.to_str()) {
        Some("tritonserver") => return serve_command("tritonserver", arguments, Words::Refused),
        Some("serve") => return sagemaker_command("serve", arguments),
        Some("perf_analyzer") => return perf_command("perf_analyzer", arguments),
        _ => {}
    }
    let mut arguments = arguments.peekable();
    let command = arguments.next();
    // `perf` prints the version that scripts know.
    let has_own_version = matches!(command.as_deref(), Some("perf" | model_worker::COMMAND));
    if !has_own_version && arguments.peek().is_some_and(|word| word == "--version") {
        return print(VERSION);
    }
    match command.as_deref() {
        Some("up") => up::run(arguments.collect(), &environment()),
        Some("serve") => serve_command("galatea serve", arguments, Words::Paths),
        Some("check") => check::run(arguments.collect(), &environment()),
        Some("config") => check::run_config(arguments.collect(), &environment()),
        Some("tune") => tune::run(arguments.collect()),
        Some("sagemaker") => sagemaker_command("galatea sagemaker", arguments),
        Some("perf") => perf_command("galatea perf", arguments),
        Some("models") => {
            client(arguments, |words| galatea_client_commands::models(words, look()) as u8)
        }
        Some("infer") => client(arguments, |words| galatea_client_commands::infer(words) as u8),
        Some("top") => client(arguments, |words| galatea_client_commands::top(words, look()) as u8),
        Some("auth") => auth_command::run(&arguments.collect::<Vec<_>>()),
        Some("runtime") => runtime::run(arguments.collect(), &environment()),
        Some("cache") => cache_command::run(&arguments.collect::<Vec<_>>(), &environment()),
        Some("completions") => {
            text(texts::completions(&arguments.collect::<Vec<_>>(), &environment()))
        }
        Some("manual") => text(texts::manual(&arguments.collect::<Vec<_>>())),
        Some(model_worker::COMMAND) => model_worker::run(&arguments.collect::<Vec<_>>()),
        Some("--help" | "-h" | "help") => print(USAGE),
        Some("--version" | "-V") => print(VERSION),
        Some(other) => {
            let words: Vec<String> = [other.to_owned()].into_iter().chain(arguments).collect();
            fail(format_args!("unknown command '{other}'; {}", advice::for_command(&words)))
        }
        None => {
            eprint!("{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn serve_command(
    program: &str,
    arguments: impl Iterator<Item = String>,
    others: Words,
) -> ExitCode {
    serve_in(program, arguments, others, &environment())
}

fn serve_in(
    program: &str,
    arguments: impl Iterator<Item = String>,
    others: Words,
    environment: &Environment,
) -> ExitCode {
    match serve_options(arguments, others, environment) {
        Ok(Some(options)) => serve::run(options, None),
        Ok(None) => print(&flags::help(program, others)),
        Err(error) => refuse(program, others, &error),
    }
}

/// `None` when the help is asked for.
fn serve_options(
    arguments: impl Iterator<Item = String>,
    others: Words,
    environment: &Environment,
) -> Result<Option<ServeOptions>, FlagError> {
    let flags = flags::parse(arguments, others)?;
    flags.map(|flags| options::from_flags(flags, environment)).transpose()
}

/// SageMaker gives `serve` as the argument of an image whose entry point is this command.
fn sagemaker_command(program: &str, arguments: impl Iterator<Item = String>) -> ExitCode {
    let mut arguments = arguments.peekable();
    arguments.next_if(|first| first == "serve");
    match sagemaker::launch(&environment(), &sagemaker::Places::default(), arguments) {
        Ok(launch) => {
            launch.notes.iter().for_each(|note| eprintln!("{note}"));
            serve_in(program, launch.arguments.into_iter(), Words::Refused, &launch.environment)
        }
        Err(error) => {
            eprintln!("ERROR: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A command that asks a server, with the credential of the environment.
fn client(
    arguments: impl Iterator<Item = String>,
    run: impl FnOnce(std::vec::IntoIter<String>) -> u8,
) -> ExitCode {
    match client_credential::add_to(arguments.collect(), &environment()) {
        Ok(words) => ExitCode::from(run(words.into_iter())),
        Err(error) => {
            fail(error);
            ExitCode::from(WRONG_COMMAND_LINE)
        }
    }
}

fn perf_command(program: &str, arguments: impl Iterator<Item = String>) -> ExitCode {
    let words: Vec<String> = arguments.collect();
    let with_credential = match client_credential::add_to(words.clone(), &environment()) {
        Ok(words) => words,
        Err(error) => return fail(error),
    };
    let exit = galatea_perf::run(program, with_credential);
    if exit == galatea_perf::Exit::Option
        && let Some(advice) = advice::for_perf(&words)
    {
        eprintln!("{advice}");
    }
    ExitCode::from(exit as u8)
}

/// The exit code of the commands that ask a server, where they were not understood.
const WRONG_COMMAND_LINE: u8 = 2;

/// What a view on the terminal may use.
fn look() -> galatea_client_commands::Look {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let terminal = env::var_os("TERM").unwrap_or_default();
    galatea_client_commands::Look {
        has_color: !is_set("NO_COLOR"),
        is_dumb: terminal.is_empty() || terminal == "dumb",
        width: width(&environment()),
    }
}

/// The variables of this process: read here, and passed to the code that needs them.
fn environment() -> Environment {
    env::vars_os().collect()
}

/// One line, and where to read on. The whole help would push the one line that matters off the screen.
fn refuse(program: &str, others: Words, error: &FlagError) -> ExitCode {
    let advice = advice::for_serve(error, others).unwrap_or_default();
    let words = if others == Words::Paths { " [PATH...]" } else { "" };
    terminal::refuse(
        format_args!("{error}{advice}"),
        format_args!("{program}{words} [options]; `{program} --help` lists them"),
    )
}

fn text(made: Result<String, FlagError>) -> ExitCode {
    made.map_or_else(fail, |text| print(&text))
}
