//! `galatea runtime`: installs, lists and removes native runtime libraries.

mod command;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use galatea_runtimes::{
    FindOptions, InstallOptions, Runtime, TerminalProgress, find, install, remove,
};
use galatea_serve::{libraries::not_installed, pytorch};
use galatea_types::{Environment, Error, Result};

use crate::terminal::{fail, refuse};

use self::command::Request;
pub use self::command::{InstallFlags, ListFlags};

/// Runs one of the sub-commands of `runtime`.
pub fn run(words: Vec<String>, environment: &Environment) -> ExitCode {
    match command::read(words) {
        Ok(request) => answer(request, environment).map_or_else(fail, |()| ExitCode::SUCCESS),
        Err(error) => {
            refuse(error, "galatea runtime <command>; `galatea runtime --help` lists them")
        }
    }
}

fn answer(request: Request, environment: &Environment) -> Result<()> {
    match request {
        Request::Help(text) => print_line(text.trim_end()),
        Request::List(folders) => {
            list(environment);
            folders.describe().iter().for_each(|line| print_line(line));
        }
        Request::Install { name, options } => install_one(by_name(&name)?, options, environment)?,
        Request::Path { name } => print_path(by_name(&name)?, environment)?,
        Request::Remove { name, version } => {
            remove_one(by_name(&name)?, version.as_deref(), environment)?;
        }
    }
    Ok(())
}

/// Prints a line to stdout; a reader that is gone is not an error.
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

/// Returns the version and the library that would be used.
fn library_of(runtime: &Runtime, environment: &Environment) -> Result<Option<(String, PathBuf)>> {
    if *runtime == Runtime::PYTORCH {
        let libtorch = pytorch::find(None, environment)?;
        return Ok(libtorch.map(|l| (l.version_text(), l.library())));
    }
    let path = find(runtime, &FindOptions::new(environment));
    Ok(path.map(|path| (runtime.version.to_owned(), path)))
}

fn install_one(runtime: &Runtime, flags: InstallFlags, environment: &Environment) -> Result<()> {
    let InstallFlags { wheel, reinstalls, libtorch, .. } = flags;
    let options = InstallOptions { wheel, reinstalls, ..InstallOptions::new(environment) };
    let mut progress = TerminalProgress::new();
    let library = if *runtime == Runtime::PYTORCH {
        pytorch::install_one(&options, libtorch, &mut progress)?
    } else {
        install(runtime, &options, &mut progress)?
    };
    print_line(&library.display().to_string());
    Ok(())
}

fn remove_one(runtime: &Runtime, version: Option<&str>, environment: &Environment) -> Result<()> {
    let shim = |folder: &Path| match *runtime == Runtime::PYTORCH {
        true => pytorch::shim_of(folder, environment),
        false => None,
    };
    let removed = remove(runtime, version, environment, &mut TerminalProgress::new(), &shim)?;
    for gone in &removed {
        let what = match &gone.version {
            Some(version) => format!("{} {version}", runtime.title),
            None => "leftovers of an interrupted installation".to_owned(),
        };
        let (path, size) = (gone.path.display(), megabytes(gone.bytes));
        print_line(&format!("removed {what}: '{path}' ({size})"));
    }
    let bytes = removed.iter().map(|gone| gone.bytes).sum();
    print_line(&format!("{} freed", megabytes(bytes)));
    Ok(())
}

/// Formats an amount of disk space.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
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
