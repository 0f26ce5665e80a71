//! The defaults of a backend for all its models: code, an environment, settings.

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use galatea_backend::PathRules;
use galatea_config::Diagnostic;
use galatea_types::{Environment as Variables, Error, Result};

use crate::{
    environment::{CODE_OF_BACKEND, EXECUTION_ENV_PATH, PythonBackendFiles},
    worker_rules::WorkerRules,
};

/// Values for models that have none of their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelDefaults {
    /// Code and environment of a backend that is written in Python. `None`: each version has a file of its own.
    pub files: Option<PythonBackendFiles>,
    /// Settings of the backend; those of a model take precedence.
    pub settings: BTreeMap<String, String>,
    /// The server's environment variables.
    pub variables: Variables,
    /// Rules for the processes of models.
    pub rules: WorkerRules,
}

impl ModelDefaults {
    /// Returns the file with the model's code. `name` comes from its configuration; empty: `model.py`.
    pub fn file(&self, version_dir: &Path, name: &str) -> Result<PathBuf> {
        let path = match &self.files {
            Some(files) => files.model_py.clone(),
            None => version_dir.join(if name.is_empty() { "model.py" } else { name }),
        };
        if path.is_file() {
            return Ok(path);
        }
        Err(Error::internal(format!("Python model file not found in '{}'", path.display())))
    }

    pub fn has_runtime(&self, runtime: &str) -> bool {
        runtime == self.default_runtime().unwrap_or("libtriton_python.so")
    }

    /// Returns the runtime of a backend that is written in Python, which Triton writes into configurations.
    pub fn default_runtime(&self) -> Option<&'static str> {
        self.files.is_some().then_some(CODE_OF_BACKEND)
    }

    /// Returns a model's parameters, with the backend's environment if they name none.
    pub fn parameters(&self, mut own: BTreeMap<String, String>) -> BTreeMap<String, String> {
        if let Some(packed) = self.files.as_ref().and_then(|files| files.execution_env.as_ref()) {
            let packed = || packed.display().to_string();
            own.entry(EXECUTION_ENV_PATH.to_owned()).or_insert_with(packed);
        }
        own
    }

    /// Returns where the environment among [`ModelDefaults::parameters`] may lie. The backend's own comes from the operator,
    /// so it may lie anywhere.
    pub fn paths(&self, own: &BTreeMap<String, String>, rules: &PathRules) -> PathRules {
        match own.contains_key(EXECUTION_ENV_PATH) {
            true => rules.clone(),
            false => PathRules::anywhere(),
        }
    }

    /// Merges a model's settings with the backend's, which fill in missing keys.
    pub fn settings(&self, own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut settings = self.settings.clone();
        settings.extend(own.iter().map(|(key, value)| (key.clone(), value.clone())));
        settings
    }
}

/// Most bytes of a model's code: the whole file is read. Data belongs into files of its own.
const MAX_CODE: u64 = 64 << 20;

pub(crate) fn read_code(file: &Path) -> Result<Vec<u8>> {
    let text = |reason: &dyn std::fmt::Display| {
        format!("Python model file '{}' cannot be read: {reason}", file.display())
    };
    match galatea_regular_files::read(file, MAX_CODE) {
        Ok(code) => Ok(code),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            let found = Diagnostic::error(text(&"it has more than 64 MiB"))
                .with_advice("put its data into files beside it");
            Err(Error::internal(format!("{}{}", found.text, found.appendix())).with_source(found))
        }
        Err(error) => Err(Error::internal(text(&error)).with_source(error)),
    }
}

/// Returns true if a model may have an `auto_complete_config`: its text has the word, or its class comes from elsewhere.
pub(crate) fn may_complete(code: &[u8]) -> bool {
    mentions(code, "auto_complete_config") || !is_self_contained(code)
}

/// Returns true if the code contains the model's whole class: it has no base class, and no line imports all of a module.
fn is_self_contained(code: &[u8]) -> bool {
    const CLASS: &[u8] = b"class TritonPythonModel";
    let lines = || code.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let has_star = lines().any(|line| line.starts_with(b"from ") && line.ends_with(b"*"));
    let is_whole = |line: &[u8]| {
        let rest = line.strip_prefix(CLASS)?.trim_ascii_start();
        let bases = match rest.strip_prefix(b"(") {
            Some(inside) => inside.split(|&byte| byte == b')').next()?.trim_ascii(),
            None => b"",
        };
        Some(bases.is_empty() || bases == b"object")
    };
    !has_star && lines().find_map(is_whole) == Some(true)
}

/// Returns true if a word occurs in a model's code, which is cheaper to find out than by starting a worker.
pub(crate) fn mentions(code: &[u8], word: &str) -> bool {
    code.windows(word.len()).any(|part| part == word.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_imported_model_class_may_complete_its_configuration() {
        for (code, expected) in [
            ("class TritonPythonModel:\n    def execute(self, requests): ...", false),
            ("class TritonPythonModel(object):\n    pass", false),
            ("class TritonPythonModel():\n    pass", false),
            ("class TritonPythonModel(Base):\n    pass", true),
            ("from mymod import *", true),
            ("from mymod import TritonPythonModel", true),
            ("import a\nTritonPythonModel = a.Model", true),
            ("class TritonPythonModel:\n    def auto_complete_config(c): ...", true),
            ("class TritonPythonModel:\n    pass\nfrom mymod import *", true),
            ("", true),
        ] {
            assert_eq!(may_complete(code.as_bytes()), expected, "{code}");
        }
    }

    #[test]
    fn a_python_backend_provides_code_and_environment_to_its_models() {
        let folder = tempfile::tempdir().expect("folder");
        let model_py = folder.path().join("model.py");
        std::fs::write(&model_py, "").expect("written");
        let files = PythonBackendFiles {
            model_py: model_py.clone(),
            execution_env: Some("/backends/mine/env.tar.gz".into()),
        };
        let one = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let defaults = ModelDefaults {
            rules: WorkerRules::default(),
            files: Some(files),
            settings: one("a", "backend"),
            variables: Variables::default(),
        };
        let file = defaults.file(Path::new("/nowhere"), "other.py");
        assert_eq!(file.expect("the backend has it"), model_py);
        let packed = one(EXECUTION_ENV_PATH, "/backends/mine/env.tar.gz");
        assert_eq!(defaults.parameters(BTreeMap::new()), packed);
        let own = one(EXECUTION_ENV_PATH, "mine");
        assert_eq!(defaults.parameters(own.clone()), own);
        assert_eq!(defaults.settings(&one("a", "own")), one("a", "own"));
        assert_eq!(defaults.settings(&BTreeMap::new()), one("a", "backend"));
    }

    #[test]
    fn model_code_is_read_up_to_a_limit() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("model.py");
        std::fs::write(&path, "pass").expect("written");
        assert_eq!(read_code(&path).expect("code"), b"pass");
        std::fs::File::options()
            .write(true)
            .open(&path)
            .and_then(|f| f.set_len(1 << 40))
            .expect("sparse");
        let error = read_code(&path).expect_err("too large");
        assert!(
            error.message().ends_with("more than 64 MiB (put its data into files beside it)"),
            "{error}"
        );
        let error = read_code(&folder.path().join("none")).expect_err("none");
        assert!(error.message().contains("cannot be read: No such file"), "{error}");
    }

    #[test]
    fn a_missing_model_py_is_refused() {
        let folder = tempfile::tempdir().expect("folder");
        let error = ModelDefaults::default().file(folder.path(), "").expect_err("no file");
        assert!(error.message().starts_with("Python model file not found in '"), "{error}");
        assert!(error.message().ends_with("/model.py'"), "{error}");
    }
}
