//! Sub-commands.

use std::{env, path::Path, process::ExitCode};

use galatea_runtimes::Environment;

use crate::{
    flags::{self, FlagError, Parsed},
    options::ServeOptions,
    runtime, serve,
};

const USAGE: &str = "\
Usage: galatea <command>

  serve [options]          Serve the models of a repository
  perf [options]           Measure a server: the options, report and files of perf_analyzer, and more
  runtime list             Tell which native runtimes are installed, and where
  runtime install <name>   Fetch a native runtime library (onnxruntime, pytorch); --wheel <file> takes it from
                           a wheel on this machine, --reinstall replaces an installed one, and for pytorch
                           --libtorch <folder> prepares one that is on this machine
  runtime path <name>      Print where its library is
  --help                   Print this text; `galatea serve --help` and
                           `galatea perf --help` tell the options
  --version                Print the version

Started under the name `tritonserver` it is `galatea serve`, under `perf_analyzer` it is `galatea perf`.
";

/// Runs the program with its arguments, its own name first.
pub fn run(mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let program = arguments.next().unwrap_or_default();
    match Path::new(&program).file_name().and_then(|name| name.to_str()) {
        Some("tritonserver") => return serve_command("tritonserver", arguments),
        Some("perf_analyzer") => return perf_command("perf_analyzer", arguments),
        _ => {}
    }
    match arguments.next().as_deref() {
        Some("serve") => serve_command("galatea serve", arguments),
        Some("perf") => perf_command("galatea perf", arguments),
        Some("runtime") => runtime::run(&arguments.collect::<Vec<_>>(), &environment()),
        Some("--help" | "-h" | "help") => print(USAGE),
        Some("--version" | "-V") => print(concat!("galatea ", env!("CARGO_PKG_VERSION"), "\n")),
        Some(other) => {
            eprintln!("error: unknown command '{other}'; `galatea --help` tells what there is");
            ExitCode::FAILURE
        }
        None => {
            eprint!("{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn serve_command(program: &str, arguments: impl Iterator<Item = String>) -> ExitCode {
    let flags = match flags::parse(arguments) {
        Ok(flags) if flags.asks_for_help => return print(&flags::help(program)),
        Ok(flags) => flags,
        Err(error) => return refuse(program, &error),
    };
    match checked(&flags) {
        Ok(options) => serve::run(options),
        Err(error) => refuse(program, &error),
    }
}

fn perf_command(program: &str, arguments: impl Iterator<Item = String>) -> ExitCode {
    ExitCode::from(galatea_perf::run(program, arguments.collect()) as u8)
}

fn checked(flags: &Parsed) -> Result<ServeOptions, FlagError> {
    ServeOptions::from_flags(flags, &environment())
}

/// The variables of this process: read here, and handed to whoever needs them. Names that are not UTF-8 are
/// nobody's.
fn environment() -> Environment {
    let variables = env::vars_os();
    Environment::of(variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value))))
}

/// One line, and where to read on. The whole help would push the one line that matters off the screen.
fn refuse(program: &str, error: &FlagError) -> ExitCode {
    eprintln!("error: {error}");
    eprintln!("Usage: {program} [options]; `{program} --help` tells them");
    ExitCode::FAILURE
}

/// Prints to stdout; a reader that went away (`| head`) is no error.
fn print(text: &str) -> ExitCode {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}
