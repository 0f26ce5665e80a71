//! `cargo xtask test --only NAME`: runs one test in Rust or Python, and builds and fetches only what it needs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use super::{python, rust};
use crate::{demo, process, setup};

/// A place that defines tests with the given name.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Rust(rust::Target),
    /// A file of `tests/python`.
    File(String),
}

/// Runs every test with that name, wherever it is defined.
pub fn run(name: &str, args: &[String]) -> Result<()> {
    let (file, function) = match name.split_once("::") {
        Some((file, function)) if file.ends_with(".py") => (Some(file), function),
        _ => (None, name.rsplit("::").next().unwrap_or(name)),
    };
    // pytest writes the parameters of a test after its name.
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
            Place::Rust(target) => rust::one(&target, bare)?,
            Place::File(file) => {
                let parts = parts_of(&process::root().join("tests/python"), &file)?;
                setup::run(&parts)?;
                let galatea = demo::build()?;
                if parts.iter().any(|part| part == "engines") {
                    setup::engines::install(&galatea)?;
                }
                let wanted = function.replace(['[', ']'], " and ");
                python::one(&galatea, &file, wanted.trim_end_matches(" and "), args)?;
            }
        }
    }
    Ok(())
}

/// Texts in the tests, and the part of the setup that each needs.
const USES: [(&str, &str); 26] = [
    ("EXAMPLES", "models"),
    ("has_libtorch", "libtorch"),
    ("has_perf_analyzer", "perf_analyzer"),
    ("PEERS / \"browser", "browser"),
    ("PEERS / \"client-", "languages"),
    ("PEERS / \"deploy-", "deploy-checks"),
    ("PEERS / \"dist-checks", "dist-checks"),
    ("PEERS / \"docs-venv", "docs"),
    ("PEERS / \"engines", "engines"),
    ("PEERS / \"models-venv", "python-models"),
    ("PEERS / \"object-stores", "object-stores"),
    ("PEERS / \"openapi-checks", "openapi-checks"),
    ("PEERS / \"other-clients", "other-clients"),
    ("PEERS / \"perf_analyzer", "perf_analyzer"),
    ("PEERS / \"prometheus", "prometheus"),
    ("PEERS / \"pythons", "pythons"),
    ("PEERS / \"redis", "redis"),
    ("PEERS / \"token-issuer", "token-issuer"),
    ("PEERS / \"trace-receiver", "trace-receiver"),
    ("PEERS / \"unpacked/engine-models", "engines"),
    ("PEERS / \"unpacked/envoy", "envoy"),
    ("PEERS / \"unpacked/model-wheels", "models"),
    ("PEERS / \"unpacked/terminal", "terminal"),
    ("PEERS / \"wheels/model-wheels", "models"),
    ("PEERS / \"wheels/numpy", "pythons"),
    ("PEERS / \"wheels/pipelines", "pipelines"),
];

/// Files that every test imports: they name parts that most tests do not use.
const COMMON: [&str; 3] = ["conftest", "repositories", "servers"];

/// Returns the parts of the setup that a file of tests uses, itself or through its imports.
fn parts_of(folder: &Path, file: &str) -> Result<Vec<String>> {
    let mut parts = vec!["clients".to_owned()];
    let (mut open, mut seen) = (vec![file.trim_end_matches(".py").to_owned()], Vec::new());
    while let Some(module) = open.pop() {
        let path = folder.join(format!("{module}.py"));
        if seen.contains(&module) || COMMON.contains(&module.as_str()) || !path.is_file() {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let used = USES.iter().filter(|(pattern, _)| text.contains(pattern));
        parts.extend(used.map(|(_, part)| (*part).to_owned()));
        open.extend(text.lines().filter_map(imported));
        seen.push(module);
    }
    parts.sort();
    parts.dedup();
    Ok(parts)
}

/// Returns the module that a line of Python imports, if any.
fn imported(line: &str) -> Option<String> {
    let rest = line.strip_prefix("import ").or_else(|| line.strip_prefix("from "))?;
    rest.split_whitespace().next().map(str::to_owned)
}

fn places(root: &Path, function: &str) -> Result<Vec<Place>> {
    let mut found = Vec::new();
    for file in sources(&root.join("crates"))?.iter().chain(&sources(&root.join("xtask"))?) {
        if file.extension().is_some_and(|e| e == "rs") && defines(file, &format!("fn {function}("))?
        {
            let target = Place::Rust(target_of(file)?);
            if !found.contains(&target) {
                found.push(target);
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

/// Returns all files in Rust and Python below a folder.
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

/// Returns the test program into which a Rust file is compiled.
fn target_of(file: &Path) -> Result<rust::Target> {
    let folder = file
        .ancestors()
        .find(|folder| folder.join("Cargo.toml").is_file())
        .with_context(|| format!("{} belongs to no package", file.display()))?;
    let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let package = name.with_context(|| format!("{} names no package", folder.display()))?;
    let inside = file.strip_prefix(folder)?;
    let test = inside.strip_prefix("tests").ok().and_then(|path| path.iter().next());
    let test = test.map(|name| name.to_string_lossy().trim_end_matches(".rs").to_owned());
    let has_library = folder.join("src/lib.rs").is_file();
    Ok(rust::Target { package: package.to_owned(), test, has_library })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rust_test_is_found_by_its_package() {
        let name = "a_rust_test_is_found_by_its_package";
        let target = rust::Target { package: "xtask".into(), test: None, has_library: false };
        assert_eq!(places(&process::root(), name).unwrap(), [Place::Rust(target)]);
    }

    #[test]
    fn a_python_test_is_found_by_its_file() {
        let found = places(&process::root(), "test_a_difference_needs_its_reason").unwrap();
        assert_eq!(found, [Place::File("test_scenarios.py".into())]);
    }

    #[test]
    fn a_test_file_gets_the_parts_it_uses() {
        let parts = |file| parts_of(&process::root().join("tests/python"), file).unwrap();
        assert_eq!(parts("test_rate_limiter.py"), ["clients"]);
        assert!(parts("test_response_cache_redis.py").contains(&"redis".to_owned()));
        assert!(parts("test_perf_formats.py").contains(&"perf_analyzer".to_owned()));
    }

    #[test]
    fn every_used_part_can_be_prepared() {
        for (_, part) in USES {
            assert!(setup::has_part(part), "{part}");
        }
    }

    #[test]
    fn an_unknown_test_name_is_refused() {
        let error = run("no_such_test_anywhere", &[]).unwrap_err().to_string();
        assert!(error.contains("no test is named"), "{error}");
    }
}
