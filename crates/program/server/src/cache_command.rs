//! `galatea cache`: removes files that the program keeps for Python models.

use std::process::ExitCode;

use galatea_backend_python::environment::{CleanedEnvironment, cache_folder, clean};
use galatea_types::Environment;

use crate::{
    runtime::megabytes,
    terminal::{print, refuse},
};

const USAGE: &str = "\
Usage: galatea cache clean

Removes the environments of Python models that were built from requirements or unpacked from archives, except those that a
running server uses. Does not ask first; prints what it removed and how much space that freed. The next load of a model
that needs one builds it again, which may fetch packages.
";

/// The words after `galatea cache`, for completions.
pub const WORDS: &[&str] = &["clean", "--help"];

pub fn run(words: &[String], environment: &Environment) -> ExitCode {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["-h" | "--help"] | ["clean", "-h" | "--help"] => Ok((USAGE.to_owned(), true)),
        ["clean"] => cleaned(environment),
        [] => Err("a command is missing: 'clean' is expected".to_owned()),
        ["clean", more, ..] => Err(format!("Unexpected argument: {more}")),
        [other, ..] => Err(format!("'cache' has no '{other}': 'clean' is expected")),
    };
    match done {
        Ok((text, is_complete)) => {
            let printed = print(&text);
            if is_complete { printed } else { ExitCode::FAILURE }
        }
        Err(error) => refuse(error, "galatea cache clean; `galatea cache --help` says more"),
    }
}

/// Returns the report, and true if everything that is not in use was removed.
fn cleaned(environment: &Environment) -> Result<(String, bool), String> {
    let root = cache_folder(environment).map_err(|error| error.to_string())?;
    let found = clean(&root).map_err(|e| format!("cannot read '{}': {e}", root.display()))?;
    if found.is_empty() {
        return Ok((format!("'{}' holds no environments\n", root.display()), true));
    }
    let mut text: String = found.iter().map(line).collect();
    let removed = || found.iter().filter(|one| matches!(one.is_removed, Ok(true)));
    let in_use = found.iter().filter(|one| matches!(one.is_removed, Ok(false))).count();
    let bytes = removed().map(|one| one.bytes).sum();
    text.push_str(&format!(
        "{} of {} environments removed, {} freed{}\n",
        removed().count(),
        found.len(),
        megabytes(bytes),
        if in_use > 0 { format!("; {in_use} in use") } else { String::new() }
    ));
    Ok((text, found.iter().all(|one| one.is_removed.is_ok())))
}

fn line(one: &CleanedEnvironment) -> String {
    let (folder, size) = (one.folder.display(), megabytes(one.bytes));
    match &one.is_removed {
        Ok(true) => format!("removed '{folder}' ({size})\n"),
        Ok(false) => format!("kept '{folder}' ({size}): it is in use\n"),
        Err(error) => format!("cannot remove '{folder}' ({size}): {error}\n"),
    }
}
