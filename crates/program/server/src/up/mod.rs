//! `galatea up`: a first look without any preparation. It fetches and serves a small real model, and shows a command to paste
//! and the way to the user's own model. It is `serve` with other defaults and texts.

mod command_line;
mod examples;
mod guidance;
mod ports;

use std::{fs, io, path::PathBuf, process::ExitCode};

use galatea_runtimes::{
    InstallOptions, ProgressMaker, TerminalProgress, find_package, install_package,
};
use galatea_serve::{RuntimeOptions, libraries};
use galatea_types::{Environment, Error};
use tempfile::TempDir;

use self::{
    command_line::Request,
    examples::{BUILT_IN, EXAMPLES, Example},
    guidance::ServedText,
};
use crate::{
    advice,
    flags::{FlagError, ServeFlags, Words},
    options, serve,
    terminal::{fail, print, refuse},
};

/// The words that may follow `up`, besides paths and the options of `serve`.
pub const WORDS: &[&str] = &[EXAMPLES[0].name, EXAMPLES[1].name, EXAMPLES[2].name, "--list"];

const USAGE: &str = "\
Usage: galatea up [EXAMPLE | PATH...] [options]

Serves a model for a first look, and prints requests to try. Without a name it fetches a small real model. With the name
of an example it fetches that one. With a path it serves what `galatea serve` would: a model file (.onnx, .pt, .pt2,
.savedmodel, .graphdef, .pb, .xml, .py), the folder of one model, a folder of models, or the address of one
(s3://BUCKET/PATH).

  --list                   List the examples with their purpose, origin and download size
  --http-port, --grpc-port, --metrics-port
                           Ports. Default: the usual ones, or the next free ones
  --http-address, --grpc-address
                           Addresses. Default: 127.0.0.1, this machine only; 0.0.0.0 serves others too
  --log-info=true          Show all of the log
  -h, --help               Print this text

All options of `galatea serve` can be given; `galatea serve --help` lists them.
";

/// Serves until a signal asks it to stop.
pub fn run(words: Vec<String>, environment: &Environment) -> ExitCode {
    let ran = command_line::read(words, EXAMPLES[0]).and_then(|request| match request {
        Request::Help => Ok(print(USAGE)),
        Request::List => Ok(print(&examples::list())),
        Request::Own(flags) => {
            let named = flags.serve.paths.iter().chain(&flags.serve.repositories);
            let words = named.map(|path| path.display().to_string()).collect();
            start(flags, ServedText::Own(words), environment)
        }
        Request::Example(example, is_named, flags) => {
            start_example(example, is_named, flags, environment)
        }
    });
    ran.unwrap_or_else(|error| {
        let advice = advice::for_serve(&error, Words::Paths).unwrap_or_default();
        refuse(
            format_args!("{error}{advice}"),
            "galatea up [EXAMPLE | PATH...] [options]; `galatea up --help` says more",
        )
    })
}

/// Serves an example. If the usual one is not available, serves the built-in one.
fn start_example(
    example: &'static Example,
    is_named: bool,
    mut flags: ServeFlags,
    environment: &Environment,
) -> Result<ExitCode, FlagError> {
    print(&format!("{}: {}\n{}.\n", example.name, example.question, example.origin));
    // The log does not exist yet.
    let progress = ProgressMaker::new(|| Box::new(TerminalProgress::new()));
    let runtimes = RuntimeOptions { progress, ..flags.serve.runtimes.clone() };
    let (example, (path, _kept)) = match obtain(example, &runtimes, environment) {
        Ok(place) => (example, place),
        Err(error) if is_named => {
            let text = format_args!("{error}; `galatea up {}` needs nothing", BUILT_IN.name);
            return Ok(fail(text));
        }
        Err(error) => {
            let name = BUILT_IN.name;
            eprintln!(
                "\n{} cannot be served: {error}\nRun `galatea up` again once that is solved.\n\nServing {name} \
                 instead: {}",
                example.name, BUILT_IN.question
            );
            let place = obtain(BUILT_IN, &runtimes, environment);
            (BUILT_IN, place.map_err(|error| FlagError::rule(error.to_string()))?)
        }
    };
    flags.serve.repositories = vec![path];
    start(flags, ServedText::Example(example), environment)
}

fn start(
    mut flags: ServeFlags,
    guidance: ServedText,
    environment: &Environment,
) -> Result<ExitCode, FlagError> {
    for note in ports::choose(&mut flags) {
        print(&format!("{note}\n"));
    }
    Ok(serve::run(options::from_flags(flags, environment)?, Some(Box::new(guidance))))
}

/// A model repository that holds an example, and a guard that removes it when the server has ended.
type Place = (PathBuf, Option<TempDir>);

/// Puts everything that the example needs on this machine.
fn obtain(
    example: &Example,
    runtimes: &RuntimeOptions,
    environment: &Environment,
) -> galatea_types::Result<Place> {
    if example.parts.is_empty() {
        return unpack(example);
    }
    let folder = format!("examples/{}", example.name);
    let package = example.package(&folder);
    let path = match find_package(&package, environment) {
        Some(path) => path,
        None if runtimes.may_download => {
            print(&format!("Installing {}: {}.\n", example.name, example.needs));
            let options = InstallOptions::new(environment);
            install_package(&package, &options, &mut *runtimes.progress.make())?
        }
        None => {
            return Err(Error::unavailable(
                "it is not installed, and --runtime-downloads=never prevents fetching it",
            ));
        }
    };
    if example.has_onnx {
        // Fetched now: at the start of the server it would be too late to choose another example.
        libraries::onnxruntime(&options::runtime_options(runtimes.clone(), environment))?;
    }
    Ok((path, None))
}

/// Writes the built-in example to a folder for this run: the user's folder may be full, or read-only.
fn unpack(example: &Example) -> galatea_types::Result<Place> {
    let write = || {
        let folder = tempfile::Builder::new().prefix("galatea-example-").tempdir()?;
        for (path, content) in example.files {
            let path = folder.path().join(path);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, content)?;
        }
        Ok(folder)
    };
    let failed = |error: io::Error| {
        let folder = std::env::temp_dir();
        let text =
            format!("cannot write to '{}': {error}; TMPDIR names another folder", folder.display());
        Error::unavailable(text)
    };
    write().map(|folder| (folder.path().to_owned(), Some(folder))).map_err(failed)
}
