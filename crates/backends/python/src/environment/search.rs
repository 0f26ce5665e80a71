//! Finds the Python interpreters of this machine.

use std::{
    cmp::Reverse,
    collections::HashSet,
    env,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use galatea_types::{Environment as Variables, Error, Result};

use super::{
    confinement::Confinement,
    folder::base_settings,
    interpreter::Interpreter,
    version::{Version, VersionRange},
};

pub(super) fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Finds a program by its name, as a shell would.
pub(super) fn on_path(name: &str, variables: &Variables) -> Option<PathBuf> {
    folders(variables).into_iter().map(|folder| folder.join(name)).find(|p| is_executable(p))
}

fn folders(variables: &Variables) -> Vec<PathBuf> {
    let path = variables.get("PATH").unwrap_or_default();
    // A relative entry would mean a different folder for each command.
    env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
}

/// Chooses an interpreter of the required versions: `preferred` if it fits, else the newest of the machine.
pub(super) fn choose(
    range: &VersionRange,
    preferred: Option<&Path>,
    variables: &Variables,
) -> Result<Interpreter> {
    let is_wanted = |interpreter: &Interpreter| range.contains(interpreter.version);
    let settings = base_settings(variables);
    let probe = |path: &Path| {
        Interpreter::probe(path, &settings, &Confinement::none()).ok().filter(is_wanted)
    };
    if let Some(interpreter) = preferred.and_then(probe) {
        return Ok(interpreter);
    }
    let candidates = candidates(variables);
    // Starting an interpreter takes long, and most have their version in their names.
    let promising = candidates.iter().filter(|(version, _)| range.contains_any_patch(*version));
    promising.into_iter().find_map(|(_, path)| probe(path)).ok_or_else(|| {
        Error::unavailable(format!(
            "no Python {range} found on PATH or under pyenv ({}); install one, or name one with \
             --backend-config=python,python-interpreter=PATH",
            describe(&candidates)
        ))
    })
}

fn describe(candidates: &[(Version, PathBuf)]) -> String {
    let mut names: Vec<_> =
        candidates.iter().map(|(version, _)| format!("3.{}", version.minor)).collect();
    names.dedup();
    match names.as_slice() {
        [] => "there is none with a version in its name".to_owned(),
        some => format!("there is {}", some.join(", ")),
    }
}

/// Lists interpreters by their names, the newest first; of one version those on PATH first.
fn candidates(variables: &Variables) -> Vec<(Version, PathBuf)> {
    let pyenv = pyenv_root(variables);
    let shims = pyenv.as_ref().map(|root| root.join("shims"));
    let mut found: Vec<(Version, PathBuf)> = Vec::new();
    // pyenv's programs on PATH are scripts that work for its selected versions only; its interpreters follow below.
    for folder in folders(variables).into_iter().filter(|f| Some(f) != shims.as_ref()) {
        found.extend(programs(&folder));
    }
    found.extend(pyenv.iter().flat_map(|root| pyenv_versions(root)));
    // The sort is stable and keeps the order on PATH. Patch numbers are known only for pyenv's, so they are not compared.
    found.sort_by_key(|(version, _)| Reverse((version.major, version.minor)));
    let mut seen = HashSet::new();
    found.retain(|(_, path)| seen.insert(fs::canonicalize(path).unwrap_or(path.clone())));
    found
}

/// Lists `python3.11` and the like in a folder.
fn programs(folder: &Path) -> Vec<(Version, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let named = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        let minor = name.to_str()?.strip_prefix("python3.")?.parse().ok()?;
        Some((Version::new(3, minor, 0), entry.path()))
    });
    named.filter(|(_, path)| is_executable(path)).collect()
}

fn pyenv_root(variables: &Variables) -> Option<PathBuf> {
    variables.path("PYENV_ROOT").or_else(|| Some(variables.path("HOME")?.join(".pyenv")))
}

fn pyenv_versions(root: &Path) -> Vec<(Version, PathBuf)> {
    let Ok(entries) = fs::read_dir(root.join("versions")) else { return Vec::new() };
    let version = |name: &OsStr| Version::parse(name.to_str()?).filter(|v| v.major == 3);
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some((version(&entry.file_name())?, entry.path().join("bin/python3"))))
        .filter(|(_, path)| is_executable(path))
        .collect();
    found.sort_by_key(|(version, _)| Reverse(*version));
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn place(path: &Path) {
        fs::create_dir_all(path.parent().expect("parent")).expect("created");
        symlink("/bin/true", path).expect("linked");
    }

    #[test]
    fn the_newest_interpreter_comes_first_and_shims_are_skipped() {
        let home = tempfile::tempdir().expect("folder");
        let at = |path: &str| home.path().join(path);
        for path in [
            "a/python3.9",
            "a/python3.11",
            "a/python3.11-config",
            "b/python3.13",
            ".pyenv/shims/python3.14",
            ".pyenv/versions/3.12.1/bin/python3",
            ".pyenv/versions/3.12.4/bin/python3",
            ".pyenv/versions/2.7.18/bin/python3",
            ".pyenv/versions/mine/bin/python3",
        ] {
            place(&at(path));
        }
        // All are one file behind the links, which would make them the same interpreter.
        let path = env::join_paths([at("a"), at("b"), at(".pyenv/shims")]).expect("joined");
        let variables =
            Variables::of([("PATH", path), ("HOME", home.path().as_os_str().to_owned())]);
        let candidates = || {
            let found = candidates(&variables);
            found.into_iter().map(|(_, path)| path).collect::<Vec<_>>()
        };
        assert_eq!(candidates(), [at("b/python3.13")]);
        for (name, text) in [("a/python3.9", "1"), ("a/python3.11", "2")] {
            fs::remove_file(at(name)).expect("removed");
            fs::write(at(name), text).expect("written");
            fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).expect("allowed");
        }
        assert_eq!(candidates(), [at("b/python3.13"), at("a/python3.11"), at("a/python3.9")]);
        assert_eq!(on_path("python3.9", &variables), Some(at("a/python3.9")));
        assert_eq!(on_path("python3.10", &variables), None);
        let versions = pyenv_versions(&at(".pyenv"));
        assert_eq!(versions.len(), 2);
        assert_eq!(versions[0].0, Version::new(3, 12, 4));
    }
}
