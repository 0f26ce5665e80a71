//! What an interpreter is: asked once of the interpreter itself.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use galatea_types::{Error, Result};
use serde_json::Value;

use super::{command, version::Version};

/// The oldest that runs our worker.
const OLDEST: Version = Version::new(3, 9, 0);

/// Long enough for a cold start from a network drive.
const PATIENCE: Duration = Duration::from_secs(60);

/// Also runs on what is refused, down to Python 2.7. Looks for numpy without importing it, which would take
/// ten times as long.
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
    /// Its version, when it is installed.
    pub numpy: Option<String>,
}

impl Interpreter {
    /// Asks the interpreter at `path`; the answer is kept while the file stays the same.
    pub fn probe(path: &Path, variables: &[(OsString, OsString)]) -> Result<Self> {
        let key = Key::of(path, variables);
        if let Some(known) = known().get(&key) {
            return Ok(known.clone());
        }
        let interpreter = Self::ask(path, variables)?;
        // numpy may be installed at any moment, on our own advice.
        if interpreter.numpy.is_some() {
            known().insert(key, interpreter.clone());
        }
        Ok(interpreter)
    }

    fn ask(path: &Path, variables: &[(OsString, OsString)]) -> Result<Self> {
        let mut command = Command::new(path);
        // Not here: the folder the command runs in is the first to be searched for modules.
        command.args(["-c", PROBE]).envs(variables.iter().cloned()).current_dir("/");
        let mut answer = None;
        command::run(command, PATIENCE, &mut |line| {
            if let Some(json) = line.strip_prefix("galatea-probe ") {
                answer = Some(json.to_owned());
            }
        })
        .map_err(|e| {
            Error::unavailable(format!("the Python interpreter '{}' {e}", path.display()))
        })?;
        let answer = answer.as_deref().and_then(|json| serde_json::from_str(json).ok());
        let answer: Value = answer.unwrap_or_default();
        Self::understand(path, &answer)
    }

    fn understand(path: &Path, answer: &Value) -> Result<Self> {
        let text = |key: &str| answer.get(key).and_then(Value::as_str);
        let shown = path.display();
        let Some(version) = text("version").and_then(Version::parse) else {
            return Err(Error::invalid_arg(format!(
                "'{shown}' is no Python interpreter: it does not answer"
            )));
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
            is_venv: text("base_prefix").is_some_and(|base| base != prefix),
            numpy: text("numpy").map(str::to_owned),
        })
    }

    /// Tensors are numpy arrays: without it no model runs.
    pub fn with_numpy(self) -> Result<Self> {
        if self.numpy.is_some() {
            return Ok(self);
        }
        let python = self.path.display();
        Err(Error::unavailable(format!(
            "the Python interpreter '{python}' ({}) has no numpy, which every Python model needs; install it \
             with: \"{python}\" -m pip install numpy",
            self.title()
        )))
    }

    pub fn title(&self) -> String {
        format!("CPython {}", self.version)
    }
}

/// What was asked already.
static KNOWN: LazyLock<Mutex<HashMap<Key, Interpreter>>> = LazyLock::new(Mutex::default);

fn known() -> MutexGuard<'static, HashMap<Key, Interpreter>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    path: PathBuf,
    /// A venv's interpreter is a link: made anew, it may lead elsewhere.
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

    fn understood(answer: Value) -> Result<Interpreter> {
        Interpreter::understand(Path::new("/opt/python"), &answer)
    }

    #[test]
    fn what_cannot_run_a_model_is_refused() {
        let refusal = |answer| understood(answer).expect_err("refused").message().to_owned();
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
            "'/opt/python' is no Python interpreter: it does not answer"
        );
    }

    #[test]
    fn missing_numpy_is_told_with_the_command_that_installs_it() {
        let answer = json!({"implementation": "cpython", "version": "3.11.7", "prefix": "/opt",
            "base_prefix": "/opt", "executable": "/opt/bin/python3.11", "numpy": null});
        let interpreter = understood(answer).expect("fit");
        assert!(!interpreter.is_venv);
        let error = interpreter.with_numpy().expect_err("no numpy");
        assert_eq!(
            error.message(),
            "the Python interpreter '/opt/bin/python3.11' (CPython 3.11.7) has no numpy, which every Python \
             model needs; install it with: \"/opt/bin/python3.11\" -m pip install numpy"
        );
    }
}
