//! The sub-commands of the program, and the names that start it.

use std::{env, path::Path, process::ExitCode};

use galatea_client_commands::{TerminalSettings, infer, models, top};
use galatea_serve::{ServeOptions, model_worker};
use galatea_types::Environment;

use crate::{
    advice, auth_command, cache_command, check, client_credential, deploy,
    flags::{self, FlagError, Words},
    options, runtime,
    sagemaker::{self, SageMakerFolders},
    serve,
    terminal::{self, fail, print, width},
    texts, tune, up,
};

const USAGE: &str = "Usage: galatea <command>

  up [example | path]      Serve a model for a first look: fetches a small one, and prints a request to try
  serve [path] [options]   Serve the models of a repository, one model's folder, or a model file
  check <repository>...    Find the mistakes in a repository without serving it: file, line, and what to do
  config <model>           Print the completed config.pbtxt of a model's folder or file
  tune <model> --engines   Measure which engine serves an ONNX model fastest here: ONNX Runtime or OpenVINO
  sagemaker [options]      Serve as the container of a SageMaker endpoint: its variables and folders are the options
  perf [options]           Measure a server: the options, report and files of perf_analyzer, and more
  models [model]           List the models of a running server, or show one: inputs, outputs, how to ask it
  infer <model> [options]  Send one request to a running server and print the answer
  top [options]            Watch a running server: what its models do each second
  trace <file> [options]   Show where the time of traced requests went, as bars or as a page (--html)
  auth key <name>          Make an API key, and the lines of a policy (--auth-policy) that know it
  runtime list             List the native runtimes: their versions, and where they are installed
  runtime install <name>   Fetch a native runtime library (onnxruntime, pytorch, tensorflow, openvino); --wheel <file>
                           takes it from a wheel on this machine, --reinstall replaces an installed one, and for
                           pytorch --libtorch <folder> prepares one that is on this machine
  runtime path <name>      Print the path of its library
  runtime remove <name>    Remove an installed runtime, and print how much space that frees
  cache clean              Remove the environments of Python models that no server uses
  deploy envoy [options]   Print a configuration of Envoy that spreads requests over servers by their load
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
    // The environment of this process is read here, and passed to the code that needs it.
    let environment = &env::vars_os().collect::<Environment>();
    let mut words: Vec<String> = arguments.collect();
    match Path::new(&program).file_name().and_then(|name| name.to_str()) {
        Some(name @ "tritonserver") => return serve(name, words, Words::Refused, environment),
        Some(name @ "serve") => return sagemaker_command(name, words, environment),
        Some(name @ "perf_analyzer") => return perf_command(name, words, environment),
        _ => {}
    }
    if words.is_empty() {
        eprint!("{USAGE}");
        return ExitCode::FAILURE;
    }
    let command = words.remove(0);
    // `perf` prints the version that scripts know.
    let has_own_version = matches!(&*command, "perf" | model_worker::COMMAND);
    if !has_own_version && words.first().is_some_and(|word| word == "--version") {
        return print(VERSION);
    }
    match &*command {
        "up" => up::run(words, environment),
        "serve" => serve("galatea serve", words, Words::Paths, environment),
        "check" => check::run(words, environment),
        "config" => check::run_config(words, environment),
        "tune" => tune::run(words),
        "sagemaker" => sagemaker_command("galatea sagemaker", words, environment),
        "perf" => perf_command("galatea perf", words, environment),
        "models" => client(words, environment, |words, look| models(words, look) as u8),
        "infer" => client(words, environment, |words, _| infer(words) as u8),
        "top" => client(words, environment, |words, look| top(words, look) as u8),
        "trace" => trace(words, environment),
        "auth" => auth_command::run(&words),
        "runtime" => runtime::run(words, environment),
        "deploy" => deploy::run(words),
        "cache" => cache_command::run(&words, environment),
        "completions" => text(texts::completions(&words, environment)),
        "manual" => text(texts::manual(&words)),
        model_worker::COMMAND => model_worker::run(&words),
        "--help" | "-h" | "help" => print(USAGE),
        "--version" | "-V" => print(VERSION),
        _ => {
            words.insert(0, command);
            let advice = advice::for_command(&words, texts::command_names());
            fail(format_args!("unknown command '{}'; {advice}", words[0]))
        }
    }
}

fn serve(program: &str, words: Vec<String>, others: Words, environment: &Environment) -> ExitCode {
    match serve_options(words, others, environment) {
        Ok(Some(options)) => serve::run(options, None),
        Ok(None) => print(&flags::help(program, others)),
        Err(error) => refuse(program, others, &error),
    }
}

/// Returns the options of `serve`; `None` if the user asks for the help.
fn serve_options(
    words: Vec<String>,
    others: Words,
    environment: &Environment,
) -> Result<Option<ServeOptions>, FlagError> {
    let flags = flags::parse(words, others)?;
    flags.map(|flags| options::from_flags(flags, environment)).transpose()
}

/// Runs the SageMaker command. SageMaker passes `serve` as the argument of an image whose entry point is this command.
fn sagemaker_command(program: &str, words: Vec<String>, environment: &Environment) -> ExitCode {
    let mut words = words.into_iter().peekable();
    words.next_if(|first| first == "serve");
    let places =
        SageMakerFolders { single: "/opt/ml/model/".into(), many: "/tmp/sagemaker".into() };
    match sagemaker::launch(environment, &places, words) {
        Ok(launch) => {
            launch.notes.iter().for_each(|note| eprintln!("{note}"));
            serve(program, launch.arguments, Words::Refused, &launch.environment)
        }
        Err(error) => {
            eprintln!("ERROR: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command that asks a server, with the credential of the environment.
fn client(
    words: Vec<String>,
    environment: &Environment,
    run: impl FnOnce(std::vec::IntoIter<String>, TerminalSettings) -> u8,
) -> ExitCode {
    match client_credential::add_to(words, environment) {
        Ok(words) => ExitCode::from(run(words.into_iter(), look(environment))),
        Err(error) => {
            fail(error);
            ExitCode::from(WRONG_COMMAND_LINE)
        }
    }
}

/// Runs the command that shows trace files.
fn trace(words: Vec<String>, environment: &Environment) -> ExitCode {
    let TerminalSettings { has_color, is_dumb, width } = look(environment);
    let terminal = galatea_trace_view::Terminal { has_color: has_color && !is_dumb, width };
    ExitCode::from(galatea_trace_view::run(words.into_iter(), terminal) as u8)
}

fn perf_command(program: &str, words: Vec<String>, environment: &Environment) -> ExitCode {
    let with_credential = match client_credential::add_to(words.clone(), environment) {
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

/// The exit code of these commands for a wrong command line.
const WRONG_COMMAND_LINE: u8 = 2;

/// Returns the settings of the terminal for a view.
fn look(environment: &Environment) -> TerminalSettings {
    let terminal = environment.get("TERM").unwrap_or_default();
    TerminalSettings {
        has_color: environment.get("NO_COLOR").is_none(),
        is_dumb: terminal.is_empty() || terminal == "dumb",
        width: width(environment),
    }
}

/// Prints one line and where to read more. The whole help would push the important line off the screen.
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
