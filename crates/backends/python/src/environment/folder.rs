//! An environment in a folder: a venv, a conda environment, or a whole installation.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use galatea_types::{Environment as Variables, Error, Result};
use serde_json::Value;

use super::{
    confinement::Confinement,
    interpreter::{Interpreter, installations},
    lease::EnvironmentLease,
    request::Environment,
};

/// Opens the environment at `root`, with the variables that activating it would set.
pub(super) fn open(
    root: &Path,
    variables: &Variables,
    confinement: &Confinement,
) -> Result<Environment> {
    let python = interpreter(root)?;
    let is_conda = root.join("conda-meta").is_dir();
    let settings = settings(root, is_conda, variables);
    let interpreter = Interpreter::probe(&python, &settings, confinement)?.with_numpy()?;
    let kind = match (is_conda, interpreter.is_venv) {
        (true, _) => "conda environment",
        (false, true) => "venv",
        (false, false) => "installation",
    };
    let description = format!("{} in {kind} {}", interpreter.title(), root.display());
    let lease = EnvironmentLease::default();
    let mut found = interpreter.folders;
    if confinement.is_in_force() {
        let known = known_folders(root, &python, variables);
        found.retain(|folder| known.iter().any(|known| folder.starts_with(known)));
    }
    let folders = [vec![root.to_owned()], found].concat();
    Ok(Environment { python, variables: settings, folders, description, lease })
}

/// Returns the folders where an interpreter may search for packages. An interpreter that comes with a model may report any
/// folder, and its worker may read the reported ones.
fn known_folders(root: &Path, python: &Path, variables: &Variables) -> Vec<PathBuf> {
    let mut known = installations(python);
    known.push(root.to_owned());
    known.extend(root.canonicalize());
    known.extend(variables.path("HOME").map(|home| home.join(".local/lib")));
    known.extend(
        variables
            .get("PYTHONPATH")
            .iter()
            .flat_map(|list| env::split_paths(list).collect::<Vec<_>>()),
    );
    known.retain(|folder| folder.is_absolute() && folder.parent().is_some());
    known
}

fn interpreter(root: &Path) -> Result<PathBuf> {
    let python = root.join("bin/python");
    if python.exists() {
        return Ok(python);
    }
    let fix =
        "create it again on this machine, or put a requirements.txt beside the model in its place";
    Err(Error::invalid_arg(match fs::read_link(&python) {
        Ok(target) => format!(
            "'{}' is a link to '{}', which is not on this machine; {fix}",
            python.display(),
            target.display()
        ),
        Err(_) => format!(
            "'{}' is not a Python environment: it has no bin/python; name the folder of a venv or conda environment, \
             or an archive of one",
            root.display()
        ),
    }))
}

fn settings(root: &Path, is_conda: bool, variables: &Variables) -> Vec<(OsString, OsString)> {
    let mut settings = base_settings(variables);
    settings.push(("PATH".into(), path_with(&root.join("bin"), variables)));
    if is_conda {
        settings.push(("CONDA_PREFIX".into(), root.into()));
        settings.push(("CONDA_DEFAULT_ENV".into(), root.into()));
        // Packages in the user's site folder are not part of this environment.
        settings.push(("PYTHONNOUSERSITE".into(), "1".into()));
        settings.extend(conda_variables(root));
    } else if root.join("pyvenv.cfg").exists() {
        settings.push(("VIRTUAL_ENV".into(), root.into()));
    }
    settings
}

/// Returns settings for every interpreter. `PYTHONHOME` is emptied, since it would make it use another's standard library.
/// Python takes an empty one as unset.
pub(super) fn base_settings(variables: &Variables) -> Vec<(OsString, OsString)> {
    variables
        .get("PYTHONHOME")
        .map(|_| ("PYTHONHOME".into(), OsString::new()))
        .into_iter()
        .collect()
}

fn path_with(folder: &Path, variables: &Variables) -> OsString {
    let rest = variables.get("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(env::split_paths(&rest));
    env::join_paths(folders).unwrap_or(rest)
}

/// Reads the variables of `conda env config vars set`, and those that its packages declare.
fn conda_variables(root: &Path) -> Vec<(OsString, OsString)> {
    let mut files: Vec<_> = match fs::read_dir(root.join("etc/conda/env_vars.d")) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => Vec::new(),
    };
    files.sort();
    let mut found: Vec<(OsString, OsString)> = Vec::new();
    for file in files {
        found.extend(pairs(read_json(&file).as_ref()));
    }
    let state = read_json(&root.join("conda-meta/state"));
    found.extend(pairs(state.as_ref().and_then(|state| state.get("env_vars"))));
    found
}

fn read_json(file: &Path) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
}

fn pairs(object: Option<&Value>) -> Vec<(OsString, OsString)> {
    let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    let members = object.and_then(Value::as_object).into_iter().flatten();
    let texts = members.filter_map(|(name, value)| Some((name, value.as_str()?)));
    texts
        .filter(|(name, text)| is_name(name) && !text.contains('\0'))
        .map(|(name, text)| (name.into(), text.into()))
        .collect()
}

/// Logs the scripts that activating would run if there is no `bin/activate`: a model may rely on them.
pub(super) fn log_ignored_scripts(root: &Path, model_name: &str) {
    let Ok(entries) = fs::read_dir(root.join("etc/conda/activate.d")) else { return };
    let is_script = |path: &PathBuf| path.extension().is_some_and(|e| e == "sh");
    let names = entries.flatten().map(|entry| entry.path()).filter(is_script);
    let names: Vec<_> =
        names.filter_map(|p| Some(p.file_name()?.to_string_lossy().into_owned())).collect();
    if !names.is_empty() {
        log::info!(
            "model '{model_name}': activation scripts of '{}' are not run: {}; what the model needs of them can \
             be set with 'conda env config vars set'",
            root.display(),
            names.join(", ")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_conda_environment_are_set() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path();
        fs::create_dir_all(root.join("etc/conda/env_vars.d")).expect("created");
        fs::create_dir_all(root.join("conda-meta")).expect("created");
        let write = |name: &str, text: &str| fs::write(root.join(name), text).expect("written");
        write("etc/conda/env_vars.d/gdal.json", r#"{"GDAL_DATA": "share/gdal", "A": "package"}"#);
        write(
            "conda-meta/state",
            r#"{"version": 1, "env_vars": {"A": "mine", "B=": "x", "C": 1}}"#,
        );
        let variables = Variables::of([("PATH", "/usr/bin"), ("PYTHONHOME", "/other")]);
        let settings = settings(root, true, &variables);
        let get = |name: &str| {
            // The last one counts, as with `Command::envs`.
            settings
                .iter()
                .rev()
                .find(|(key, _)| key == name)
                .map(|(_, v)| v.to_str().expect("text"))
        };
        let bin = format!("{}/bin:/usr/bin", root.display());
        assert_eq!(get("PATH"), Some(bin.as_str()));
        assert_eq!(get("CONDA_PREFIX"), root.to_str());
        assert_eq!((get("A"), get("GDAL_DATA")), (Some("mine"), Some("share/gdal")));
        assert_eq!((get("B="), get("C")), (None, None));
        assert_eq!((get("PYTHONHOME"), get("PYTHONNOUSERSITE")), (Some(""), Some("1")));
    }

    #[test]
    fn a_folder_without_an_environment_is_refused() {
        let folder = tempfile::tempdir().expect("folder");
        let variables = Variables::of([("PATH", "/usr/bin")]);
        let message = || {
            open(folder.path(), &variables, &Confinement::none())
                .expect_err("none")
                .message()
                .to_owned()
        };
        assert!(message().contains("it has no bin/python; name the folder of a venv"));
        fs::create_dir(folder.path().join("bin")).expect("created");
        std::os::unix::fs::symlink("/nowhere/python3", folder.path().join("bin/python"))
            .expect("linked");
        assert!(
            message().contains("is a link to '/nowhere/python3', which is not on this machine")
        );
    }
}
