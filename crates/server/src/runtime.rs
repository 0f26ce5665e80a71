//! `galatea runtime ...`, and finding a library for a backend that needs one.

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

use crate::options::RuntimeOptions;

const USAGE: &str = "Usage: galatea runtime list | install <name> [--wheel <file>] [--libtorch <folder>] \
                     [--reinstall] | path <name>";

/// Runs one of the sub-commands of `runtime`.
pub fn run(arguments: &[String], environment: &Environment) -> ExitCode {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["list"] => {
            list(environment);
            Ok(())
        }
        ["install", name, options @ ..] => {
            by_name(name).and_then(|runtime| install_one(runtime, options, environment))
        }
        ["path", name] => by_name(name).and_then(|runtime| print_path(runtime, environment)),
        ["--help"] => {
            say(USAGE);
            Ok(())
        }
        _ => Err(Error::invalid_arg(USAGE)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The ONNX Runtime library to open; fetched when there is none and fetching is allowed.
///
/// A path by flag or environment wins, then the backend directory where one was given, then what is
/// installed.
pub fn onnxruntime_library(options: &RuntimeOptions) -> Result<PathBuf> {
    const RUNTIME: &Runtime = &Runtime::ONNXRUNTIME;
    let environment = &options.environment;
    let is_named = options.onnxruntime_lib.is_some() || environment.get(RUNTIME.variable).is_some();
    let given = options.backend_directory.as_deref().filter(|_| !is_named);
    if let Some(path) = given.and_then(|folder| library_in(&folder.join(RUNTIME.name))) {
        return Ok(path);
    }
    let library = options.onnxruntime_lib.clone();
    if let Some(path) = find(RUNTIME, &FindOptions { library, ..FindOptions::new(environment) }) {
        return Ok(path);
    }
    if !options.may_download {
        return Err(Error::unavailable(not_installed(RUNTIME)));
    }
    log::info!(
        "{} is not installed; fetching it (--runtime-downloads=never forbids that)",
        RUNTIME.title
    );
    install(RUNTIME, &InstallOptions::new(environment), &mut TerminalProgress::new())
}

/// `libonnxruntime.so` with or without a version behind it, as Triton's images have it.
fn library_in(folder: &Path) -> Option<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| {
            name == "libonnxruntime.so" || name.starts_with("libonnxruntime.so.")
        })
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
fn say(text: &str) {
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
        say(&format!("{} {version}: {state}", runtime.name));
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

fn install_one(runtime: &Runtime, options: &[&str], environment: &Environment) -> Result<()> {
    let wanted = install_options(options, environment)?;
    let mut progress = TerminalProgress::new();
    let library = if *runtime == Runtime::PYTORCH {
        pytorch::install_one(&wanted.install, wanted.libtorch, &mut progress)?
    } else if wanted.libtorch.is_some() {
        return Err(Error::invalid_arg("--libtorch is for the runtime pytorch"));
    } else {
        install(runtime, &wanted.install, &mut progress)?
    };
    say(&library.display().to_string());
    Ok(())
}

struct Wanted {
    install: InstallOptions,
    /// Folder of a libtorch to use in place of a fetched one.
    libtorch: Option<PathBuf>,
}

fn install_options(arguments: &[&str], environment: &Environment) -> Result<Wanted> {
    let mut wanted = Wanted { install: InstallOptions::new(environment), libtorch: None };
    let mut arguments = arguments.iter().copied();
    while let Some(argument) = arguments.next() {
        let (name, attached) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument, None),
        };
        let place = match name {
            "--reinstall" if attached.is_none() => {
                wanted.install.reinstalls = true;
                continue;
            }
            "--wheel" => &mut wanted.install.wheel,
            "--libtorch" => &mut wanted.libtorch,
            _ => {
                return Err(Error::invalid_arg(format!(
                    "unrecognized option '{argument}'; {USAGE}"
                )));
            }
        };
        let value = attached.or_else(|| arguments.next());
        let value = value.filter(|v| !v.is_empty());
        let missing = || Error::invalid_arg(format!("{name} needs a path; {USAGE}"));
        *place = Some(PathBuf::from(value.ok_or_else(missing)?));
    }
    Ok(wanted)
}

fn print_path(runtime: &Runtime, environment: &Environment) -> Result<()> {
    let missing = || match *runtime == Runtime::PYTORCH {
        true => pytorch::not_installed(),
        false => not_installed(runtime),
    };
    let (_, path) =
        library_of(runtime, environment)?.ok_or_else(|| Error::unavailable(missing()))?;
    say(&path.display().to_string());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_install() {
        let install_options =
            |arguments: &[&str]| install_options(arguments, &Environment::default());
        for arguments in
            [&["--wheel", "a.whl", "--reinstall"][..], &["--reinstall", "--wheel=a.whl"]]
        {
            let wanted = install_options(arguments).expect("good");
            assert!(wanted.install.reinstalls);
            assert_eq!(wanted.install.wheel, Some(PathBuf::from("a.whl")));
        }
        let wanted = install_options(&["--libtorch", "/opt/torch"]).expect("good");
        assert_eq!(wanted.libtorch, Some(PathBuf::from("/opt/torch")));
        for (arguments, expected) in [
            (&["--whel", "x"][..], "unrecognized option '--whel'"),
            (&["--reinstall=1"], "unrecognized option '--reinstall=1'"),
            (&["--wheel"], "--wheel needs a path"),
        ] {
            let error = install_options(arguments).err().expect("bad");
            assert!(error.message().starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_given_backend_directory_is_looked_at() {
        let dir = tempfile::tempdir().expect("dir");
        let folder = dir.path().join("onnxruntime");
        fs::create_dir(&folder).expect("folder");
        fs::write(folder.join("libonnxruntime_providers_shared.so"), "").expect("file");
        assert_eq!(library_in(&folder), None);
        fs::write(folder.join("libonnxruntime.so.1.31.1"), "").expect("file");
        assert_eq!(library_in(&folder), Some(folder.join("libonnxruntime.so.1.31.1")));
        assert_eq!(library_in(dir.path()), None);
    }
}
