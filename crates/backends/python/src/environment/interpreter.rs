//! Reads version, prefix and numpy of an interpreter by running a short program in it.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{LazyLock, Mutex},
    time::{Duration, SystemTime},
};

use galatea_types::{Error, LockExt as _, Result};
use serde_json::Value;

use super::{
    confinement::{Confinement, ProgramAccess},
    version::Version,
};

/// The oldest version that runs the worker.
const OLDEST: Version = Version::new(3, 9, 0);

/// Time limit of the program, long enough for a cold start from a network drive.
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);

/// The program also runs in versions that are refused, down to Python 2.7. It looks for numpy without importing it, which
/// would take ten times as long.
const PROBE: &str = r#"
import json, sys
numpy = None
if sys.version_info >= (3, 8):
    import importlib.metadata, importlib.util
    try:
        found = importlib.util.find_spec("numpy")
        if found is not None and found.origin:
            numpy = "unknown"
            numpy = importlib.metadata.version("numpy")
    except Exception:
        pass
implementation = getattr(sys, "implementation", None)
print("galatea-probe " + json.dumps({
    "implementation": implementation.name if implementation else "cpython",
    "version": ".".join(str(n) for n in sys.version_info[:3]),
    "executable": sys.executable,
    "prefix": sys.prefix,
    "base_prefix": getattr(sys, "base_prefix", sys.prefix),
    "path": [folder for folder in sys.path if folder],
    "numpy": numpy,
}))
"#;

/// A CPython that is new enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// The program itself, not a script that chooses one.
    pub path: PathBuf,
    pub version: Version,
    pub prefix: PathBuf,
    pub is_venv: bool,
    /// Its own folders and those that it searches for packages. A worker reads them.
    pub folders: Vec<PathBuf>,
    /// Version of numpy, if it is installed.
    pub numpy: Option<String>,
}

impl Interpreter {
    /// Probes the interpreter at `path`; the result is cached while the file stays the same.
    pub fn probe(
        path: &Path,
        variables: &[(OsString, OsString)],
        confinement: &Confinement,
    ) -> Result<Self> {
        let key = Key::of(path, variables);
        if let Some(interpreter) = CACHE.lock_unpoisoned().get(&key) {
            return Ok(interpreter.clone());
        }
        let interpreter = Self::run_probe(path, variables, confinement)?;
        // numpy may be installed at any moment, as the error about its absence advises.
        if interpreter.numpy.is_some() {
            CACHE.lock_unpoisoned().insert(key, interpreter.clone());
        }
        Ok(interpreter)
    }

    fn run_probe(
        path: &Path,
        variables: &[(OsString, OsString)],
        confinement: &Confinement,
    ) -> Result<Self> {
        let mut command = Command::new(path);
        // Not in the current folder: Python searches the folder it runs in for modules first.
        command.args(["-c", PROBE]).envs(variables.iter().cloned()).current_dir("/");
        let mut answer = None;
        let reach = ProgramAccess { readable: installations(path), ..ProgramAccess::default() };
        let done = confinement.run(command, reach, PROBE_TIMEOUT, &mut |line: &str| {
            if let Some(json) = line.strip_prefix("galatea-probe ") {
                answer = Some(json.to_owned());
            }
        });
        done.map_err(|failure| {
            Error::unavailable(format!("the Python interpreter '{}' {failure}", path.display()))
        })?;
        let answer = answer.as_deref().and_then(|json| serde_json::from_str(json).ok());
        let answer: Value = answer.unwrap_or_default();
        Self::from_report(path, &answer)
    }

    fn from_report(path: &Path, report: &Value) -> Result<Self> {
        let shown = path.display();
        let text = |key: &str| report.get(key).and_then(Value::as_str);
        let Some(version) = text("version").and_then(Version::parse) else {
            let text = format!("'{shown}' is not a Python interpreter: it does not answer");
            return Err(Error::invalid_arg(text));
        };
        let implementation = text("implementation").unwrap_or_default();
        if implementation != "cpython" {
            return Err(Error::invalid_arg(format!(
                "'{shown}' is {implementation}; models run in CPython {}.{} or newer",
                OLDEST.major, OLDEST.minor
            )));
        }
        if version < OLDEST {
            return Err(Error::invalid_arg(format!(
                "'{shown}' is Python {version}; models need Python {}.{} or newer",
                OLDEST.major, OLDEST.minor
            )));
        }
        let prefix = text("prefix").unwrap_or_default();
        let executable = text("executable").filter(|e| Path::new(e).is_absolute());
        Ok(Self {
            path: executable.map_or_else(|| path.to_owned(), PathBuf::from),
            version,
            prefix: prefix.into(),
            folders: folders(report),
            is_venv: text("base_prefix").is_some_and(|base| base != prefix),
            numpy: text("numpy").map(str::to_owned),
        })
    }

    /// Checks that numpy is there: tensors are numpy arrays.
    pub fn with_numpy(self) -> Result<Self> {
        if self.numpy.is_some() {
            return Ok(self);
        }
        let (title, path) = (self.title(), self.path.display());
        Err(Error::unavailable(format!(
            "the Python interpreter '{path}' ({title}) has no numpy, which every Python model needs; install it with: \
             \"{path}\" -m pip install numpy"
        )))
    }

    pub fn title(&self) -> String {
        format!("CPython {}", self.version)
    }
}

/// Most folders that an interpreter may report.
const MOST_FOLDERS: usize = 1000;

fn folders(report: &Value) -> Vec<PathBuf> {
    let of = |key| report.get(key);
    let searched = of("path").and_then(Value::as_array).into_iter().flatten();
    let all = ["prefix", "base_prefix"].into_iter().filter_map(of).chain(searched);
    let paths = all.filter_map(Value::as_str).map(PathBuf::from);
    // A whole file system is not an environment.
    paths.filter(|p| p.is_absolute() && p.parent().is_some()).take(MOST_FOLDERS).collect()
}

/// Returns the folders that an interpreter runs from: its environment's, and that of the installation its link leads to.
pub(super) fn installations(python: &Path) -> Vec<PathBuf> {
    let real = python.canonicalize().ok();
    let programs = [Some(python.to_owned()), real];
    let folder_of = |program: PathBuf| Some(program.parent()?.parent()?.to_owned());
    let folders = programs.into_iter().flatten().filter_map(folder_of);
    // A whole file system is left out: an interpreter in `/bin` is the system's.
    folders.filter(|folder| folder.parent().is_some()).collect()
}

static CACHE: LazyLock<Mutex<HashMap<Key, Interpreter>>> = LazyLock::new(Mutex::default);

#[derive(PartialEq, Eq, Hash)]
struct Key {
    path: PathBuf,
    /// Target of the link. A venv's interpreter is a link, and a venv that was created again may have another target.
    target: Option<PathBuf>,
    modified: Option<SystemTime>,
    variables: Vec<(OsString, OsString)>,
}

impl Key {
    fn of(path: &Path, variables: &[(OsString, OsString)]) -> Self {
        Self {
            path: path.to_owned(),
            target: fs::canonicalize(path).ok(),
            modified: fs::metadata(path).and_then(|m| m.modified()).ok(),
            variables: variables.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn interpreter(report: Value) -> Result<Interpreter> {
        Interpreter::from_report(Path::new("/opt/python"), &report)
    }

    #[test]
    fn unsuitable_interpreters_are_refused() {
        let refusal = |answer| interpreter(answer).expect_err("refused").to_string();
        assert_eq!(
            refusal(json!({"implementation": "cpython", "version": "3.8.18"})),
            "'/opt/python' is Python 3.8.18; models need Python 3.9 or newer"
        );
        assert_eq!(
            refusal(json!({"implementation": "pypy", "version": "3.10.1"})),
            "'/opt/python' is pypy; models run in CPython 3.9 or newer"
        );
        assert_eq!(
            refusal(Value::Null),
            "'/opt/python' is not a Python interpreter: it does not answer"
        );
    }

    #[test]
    fn the_missing_numpy_error_contains_the_install_command() {
        let answer = json!({"implementation": "cpython", "version": "3.11.7", "prefix": "/opt",
            "base_prefix": "/opt", "executable": "/opt/bin/python3.11", "numpy": null});
        let found = interpreter(answer).expect("accepted");
        assert!(!found.is_venv);
        let error = found.with_numpy().expect_err("no numpy");
        assert_eq!(
            error.to_string(),
            "the Python interpreter '/opt/bin/python3.11' (CPython 3.11.7) has no numpy, which every Python \
             model needs; install it with: \"/opt/bin/python3.11\" -m pip install numpy"
        );
    }
}
