//! `galatea runtime ...`, and finding a library for a backend that needs one.

mod command;
pub mod pytorch;

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use galatea_runtimes::{
    Environment, FindOptions, InstallOptions, Runtime, TerminalProgress, find, install,
};
use galatea_types::{Error, Result};

pub use self::command::install_outline;
use self::command::{InstallFlags, Request};
use crate::flags::RuntimeOptions;

/// Runs one of the sub-commands of `runtime`.
pub fn run(words: Vec<String>, environment: &Environment) -> ExitCode {
    let outcome = match command::read(words) {
        Ok(request) => answer(request, environment),
        Err(error) => {
            eprintln!("error: {error}");
            eprintln!("Usage: galatea runtime <command>; `galatea runtime --help` lists them");
            return ExitCode::FAILURE;
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn answer(request: Request, environment: &Environment) -> Result<()> {
    match request {
        Request::Help(text) => print_line(text.trim_end()),
        Request::List => list(environment),
        Request::Install { name, options } => install_one(by_name(&name)?, options, environment)?,
        Request::Path { name } => print_path(by_name(&name)?, environment)?,
    }
    Ok(())
}

/// The ONNX Runtime library to open; fetched when there is none and fetching is allowed.
///
/// A path by flag or environment wins, then the backend directory where one was given, then what is
/// installed.
pub fn onnxruntime_library(options: &RuntimeOptions) -> Result<PathBuf> {
    library(&Runtime::ONNXRUNTIME, options.onnxruntime_lib.as_ref(), "libonnxruntime.so", options)
}

/// The TensorFlow library to open, in the same way.
pub fn tensorflow_library(options: &RuntimeOptions) -> Result<PathBuf> {
    library(&Runtime::TENSORFLOW, options.tensorflow_lib.as_ref(), "libtensorflow_cc.so", options)
}

/// `stem`: the name of the library without the version behind it.
fn library(
    runtime: &'static Runtime,
    named: Option<&PathBuf>,
    stem: &str,
    options: &RuntimeOptions,
) -> Result<PathBuf> {
    let environment = &options.environment;
    let is_named = named.is_some() || environment.get(runtime.variable).is_some();
    let given = options.backend_directory.as_deref().filter(|_| !is_named);
    if let Some(path) = given.and_then(|folder| library_in(&folder.join(runtime.name), stem)) {
        return Ok(path);
    }
    let library = named.cloned();
    if let Some(path) = find(runtime, &FindOptions { library, ..FindOptions::new(environment) }) {
        return Ok(path);
    }
    if !options.may_download {
        return Err(Error::unavailable(not_installed(runtime)));
    }
    log::info!(
        "{} is not installed; fetching it (--runtime-downloads=never forbids that)",
        runtime.title
    );
    install(runtime, &InstallOptions::new(environment), &mut TerminalProgress::new())
}

/// A library with or without a version behind its name, as Triton's images have it.
fn library_in(folder: &Path, stem: &str) -> Option<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let version = name.as_deref().and_then(|name| name.strip_prefix(stem));
        version.is_some_and(|version| version.is_empty() || version.starts_with('.'))
    };
    let entries = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    entries.filter(is_library).min()
}

fn not_installed(runtime: &Runtime) -> String {
    format!(
        "{} is not installed: run `galatea runtime install {}`, or name a library with --{}-lib or {}",
        runtime.title, runtime.name, runtime.name, runtime.variable
    )
}

/// A line on stdout; a reader that went away is no error.
fn print_line(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

fn by_name(name: &str) -> Result<&'static Runtime> {
    Runtime::by_name(name).ok_or_else(|| {
        let known: Vec<&str> = Runtime::ALL.iter().map(|runtime| runtime.name).collect();
        Error::invalid_arg(format!("no runtime is called '{name}'; there is {}", known.join(", ")))
    })
}

fn list(environment: &Environment) {
    for runtime in Runtime::ALL {
        let (version, state) = match library_of(runtime, environment) {
            Ok(Some((version, path))) => (version, path.display().to_string()),
            Ok(None) => (runtime.version.to_owned(), "not installed".to_owned()),
            Err(error) => (runtime.version.to_owned(), error.to_string()),
        };
        print_line(&format!("{} {version}: {state}", runtime.name));
    }
}

/// Version and library that would be used.
fn library_of(runtime: &Runtime, environment: &Environment) -> Result<Option<(String, PathBuf)>> {
    if *runtime == Runtime::PYTORCH {
        let libtorch = pytorch::find(None, environment)?;
        return Ok(libtorch.map(|l| (l.version_text(), l.library())));
    }
    let path = find(runtime, &FindOptions::new(environment));
    Ok(path.map(|path| (runtime.version.to_owned(), path)))
}

fn install_one(runtime: &Runtime, flags: InstallFlags, environment: &Environment) -> Result<()> {
    let options = flags.install_options(environment);
    let mut progress = TerminalProgress::new();
    let library = if *runtime == Runtime::PYTORCH {
        pytorch::install_one(&options, flags.libtorch, &mut progress)?
    } else if flags.libtorch.is_some() {
        return Err(Error::invalid_arg("--libtorch is for the runtime pytorch"));
    } else {
        install(runtime, &options, &mut progress)?
    };
    print_line(&library.display().to_string());
    Ok(())
}

fn print_path(runtime: &Runtime, environment: &Environment) -> Result<()> {
    let missing = || match *runtime == Runtime::PYTORCH {
        true => pytorch::not_installed(),
        false => not_installed(runtime),
    };
    let (_, path) =
        library_of(runtime, environment)?.ok_or_else(|| Error::unavailable(missing()))?;
    print_line(&path.display().to_string());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_backend_directory_is_looked_at() {
        let dir = tempfile::tempdir().expect("dir");
        let folder = dir.path().join("onnxruntime");
        fs::create_dir(&folder).expect("folder");
        fs::write(folder.join("libonnxruntime_providers_shared.so"), "").expect("file");
        assert_eq!(library_in(&folder, "libonnxruntime.so"), None);
        fs::write(folder.join("libonnxruntime.so.1.31.1"), "").expect("file");
        assert_eq!(
            library_in(&folder, "libonnxruntime.so"),
            Some(folder.join("libonnxruntime.so.1.31.1"))
        );
        assert_eq!(library_in(dir.path(), "libonnxruntime.so"), None);
    }
}
