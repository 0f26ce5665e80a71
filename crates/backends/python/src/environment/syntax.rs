//! Asks an interpreter if it can read a model's code, without running any of it.

use std::{collections::BTreeMap, fs, path::Path, process::Command, time::Duration};

use galatea_config::Place;
use galatea_types::{Environment as Variables, Stop};
use serde_json::Value;

use super::{
    command::{self, Limits},
    request::{DEFAULT_ENVIRONMENT, EXECUTION_ENV_PATH, PYTHON_INTERPRETER},
    requirements, search,
};

/// Most bytes of code. Longer code is not checked.
const LONGEST: u64 = 4 << 20;
const TIMEOUT: Duration = Duration::from_secs(20);

/// Compiles the file named by its argument. Malicious code could take all memory or time of a compiler, so both are limited.
const PROGRAM: &str = r#"
import json, os, resource, sys, warnings
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
warnings.simplefilter("ignore")
with open(sys.argv[1], "rb") as file:
    source = file.read()
try:
    compile(source, os.path.basename(sys.argv[1]), "exec", 0, True)
except SyntaxError as error:
    print("galatea-syntax " + json.dumps({
        "line": error.lineno, "column": error.offset, "python": "%d.%d" % sys.version_info[:2],
        "text": "%s: %s" % (type(error).__name__, error),
    }))
"#;

/// A mistake in code that the interpreter refuses.
#[derive(Debug)]
pub(crate) struct SyntaxMistake {
    /// Python's message, beginning with the kind of exception.
    pub text: String,
    /// Version of the interpreter, as `3.11`.
    pub python: String,
    /// Line and column in the file, without its name.
    pub place: Option<Place>,
}

/// A model's code, with the settings that choose the interpreter to read it.
pub(crate) struct CodeOfModel<'a> {
    pub file: &'a Path,
    pub model_dir: &'a Path,
    pub version_dir: &'a Path,
    pub parameters: &'a BTreeMap<String, String>,
    pub settings: &'a BTreeMap<String, String>,
}

impl CodeOfModel<'_> {
    /// Returns the mistake by which no server could load the code. `None`: none was found, or no interpreter of this machine
    /// would run the model. An interpreter that comes with the model is not started.
    pub fn mistake(&self, variables: &Variables) -> Option<SyntaxMistake> {
        let length = fs::metadata(self.file).ok()?.len();
        let has_own = self.parameters.contains_key(EXECUTION_ENV_PATH)
            || self.settings.contains_key(DEFAULT_ENVIRONMENT);
        let requirements = requirements::find(self.version_dir, self.model_dir).ok()?;
        if has_own || length > LONGEST || requirements.is_some_and(|r| r.python.is_some()) {
            return None;
        }
        let named = self.settings.get(PYTHON_INTERPRETER).map_or("python3", String::as_str);
        let python = match named.contains('/') {
            true => std::path::absolute(named).ok()?,
            false => search::on_path(named, variables)?,
        };
        let mut command = Command::new(python);
        command.args(["-I", "-S", "-B", "-c", PROGRAM]).env_clear().current_dir("/");
        command.arg(std::path::absolute(self.file).ok()?);
        let mut answer = None;
        let limits = Limits { time: TIMEOUT, stop: &Stop::default() };
        let _ = command::run(command, limits, &mut |line: &str| {
            if let Some(json) = line.strip_prefix("galatea-syntax ") {
                answer = serde_json::from_str::<Value>(json).ok();
            }
        });
        self.read(&answer?)
    }

    fn read(&self, answer: &Value) -> Option<SyntaxMistake> {
        let text = |key: &str| Some(answer.get(key)?.as_str()?.to_owned());
        let number = |key: &str| {
            let number = answer.get(key).and_then(Value::as_u64).unwrap_or(1).max(1);
            usize::try_from(number).unwrap_or(1)
        };
        let code = fs::read(self.file).ok()?;
        let code = String::from_utf8_lossy(&code);
        let has_line = answer.get("line").and_then(Value::as_u64).is_some_and(|line| line > 0);
        let place = has_line.then(|| Place::in_text("", &code, (number("line"), number("column"))));
        Some(SyntaxMistake { text: text("text")?, python: text("python")?, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(code: &[u8], requirements: &str) -> Option<SyntaxMistake> {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("model.py");
        fs::write(&file, code).expect("written");
        if !requirements.is_empty() {
            fs::write(folder.path().join("requirements.txt"), requirements).expect("written");
        }
        let python =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let python = String::from_utf8(python.expect("python3").stdout).expect("a path");
        let settings = BTreeMap::from([(PYTHON_INTERPRETER.to_owned(), python.trim().to_owned())]);
        let none = BTreeMap::new();
        let code = CodeOfModel {
            file: &file,
            model_dir: folder.path(),
            version_dir: folder.path(),
            parameters: &none,
            settings: &settings,
        };
        code.mistake(&Variables::default())
    }

    #[test]
    fn syntax_errors_of_python_are_reported() {
        let found = mistake(b"class A:\n    def f(self)\n        pass\n", "").expect("a mistake");
        assert_eq!(found.text, "SyntaxError: expected ':' (model.py, line 2)");
        let place = found.place.expect("a place").to_string();
        assert!(place.starts_with(":2:"), "{place}");
        let found = mistake(b"class A:\ndef f(self):\n    pass\n", "").expect("a mistake");
        assert!(found.text.starts_with("IndentationError: "), "{}", found.text);
        assert!(
            mistake(b"x = 'caf\xe9'\n", "").expect("a mistake").text.starts_with("SyntaxError: ")
        );
    }

    #[test]
    fn valid_code_is_accepted() {
        assert!(mistake(b"raise SystemExit(1)\n", "").is_none(), "it is not run");
        assert!(mistake(b"x = (\n", "# python: 3.12\nnumpy\n").is_none(), "another interpreter");
        let mut deep = b"x = ".to_vec();
        deep.extend(vec![b'('; 200_000]);
        // What it says of this depends on its version; it ends.
        let _ = mistake(&deep, "");
    }
}
