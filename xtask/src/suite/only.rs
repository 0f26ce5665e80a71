//! `cargo xtask test --only NAME`: one test in Rust or Python, with nothing built or fetched that it does not need.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use super::{python, rust};
use crate::{demo, process, setup};

/// A place where tests of a name are defined.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Package(String),
    /// A file of tests/python.
    File(String),
}

/// Runs every test of that name, wherever it is defined.
pub fn run(name: &str, args: &[String]) -> Result<()> {
    let (file, function) = match name.split_once("::") {
        Some((file, function)) if file.ends_with(".py") => (Some(file), function),
        _ => (None, name.rsplit("::").next().unwrap_or(name)),
    };
    // pytest writes the parameters of a test behind its name.
    let bare = function.split('[').next().unwrap_or(function);
    let mut places = places(&process::root(), bare)?;
    if let Some(file) = file {
        places.retain(|place| *place == Place::File(file.to_owned()));
    }
    if places.is_empty() {
        bail!("no test is named '{name}', in Rust or in tests/python");
    }
    for place in places {
        match place {
            Place::Package(package) => rust::one(&package, bare)?,
            Place::File(file) => {
                setup::clients()?;
                let galatea = demo::build()?;
                let wanted = function.replace(['[', ']'], " and ");
                python::one(&galatea, &file, wanted.trim_end_matches(" and "), args)?;
            }
        }
    }
    Ok(())
}

fn places(root: &Path, function: &str) -> Result<Vec<Place>> {
    let mut found = Vec::new();
    for file in sources(&root.join("crates"))?.iter().chain(&sources(&root.join("xtask"))?) {
        if file.extension().is_some_and(|e| e == "rs") && defines(file, &format!("fn {function}("))?
        {
            let package = Place::Package(package_of(file)?);
            if !found.contains(&package) {
                found.push(package);
            }
        }
    }
    for file in sources(&root.join("tests/python"))? {
        let is_test =
            file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("test_"));
        if is_test && defines(&file, &format!("def {function}("))? {
            found.push(Place::File(
                file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            ));
        }
    }
    Ok(found)
}

fn defines(file: &Path, text: &str) -> Result<bool> {
    Ok(fs::read_to_string(file).with_context(|| file.display().to_string())?.contains(text))
}

/// All files in Rust and Python below a folder.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs" || e == "py") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The name of the package that a file belongs to.
fn package_of(file: &Path) -> Result<String> {
    let manifest = file
        .ancestors()
        .map(|folder| folder.join("Cargo.toml"))
        .find(|manifest| manifest.is_file())
        .with_context(|| format!("{} belongs to no package", file.display()))?;
    let text = fs::read_to_string(&manifest)?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    Ok(name.with_context(|| format!("{} names no package", manifest.display()))?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_in_rust_is_found_by_its_package() {
        let name = "a_test_in_rust_is_found_by_its_package";
        assert_eq!(places(&process::root(), name).unwrap(), [Place::Package("xtask".into())]);
    }

    #[test]
    fn a_test_in_python_is_found_by_its_file() {
        let found = places(&process::root(), "test_a_difference_needs_its_reason").unwrap();
        assert_eq!(found, [Place::File("test_scenarios.py".into())]);
    }

    #[test]
    fn a_name_that_no_test_has_is_refused() {
        let error = run("no_such_test_anywhere", &[]).unwrap_err().to_string();
        assert!(error.contains("no test is named"), "{error}");
    }
}
