//! Tries environments in order: see the module above.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use galatea_backend::PathRules;
use galatea_config::{Diagnostic, FieldPath};
use galatea_types::{Code, Environment as Variables, Error, Result, Stop};

use super::{
    activation::{self, Activation},
    archive::Unpacking,
    build::Build,
    confinement::Confinement,
    folder,
    interpreter::Interpreter,
    lease::EnvironmentLease,
    options::Options,
    request::{
        DEFAULT_ENVIRONMENT, EXECUTION_ENV_PATH, Environment, EnvironmentRequest,
        PYTHON_INTERPRETER, Work,
    },
    requirements::{self, Requirements},
    search,
};

/// Placeholder for the model's folder in [`EXECUTION_ENV_PATH`].
const MODEL_DIRECTORY: &str = "$$TRITON_MODEL_DIRECTORY";

/// Finds the model's environment, and builds or unpacks it if that has not been done before. That may take minutes: never
/// call it where requests wait. In `variables`, `PATH` and `HOME` lead to the interpreters, `GALATEA_HOME` to built
/// environments. Variables of pip and uv apply too.
///
/// # Errors
/// Each names the file, parameter or option that was used, and a remedy.
pub fn resolve(request: &EnvironmentRequest<'_>, variables: &Variables) -> Result<Environment> {
    log_ignored_stub(request);
    let options = Options::read(request.backend_config)?;
    let resolved = Work { request, variables, options }.resolve();
    // A failure then has its cause in the request, so advice about the environment would not help.
    match resolved {
        Err(_) if request.confinement.stop.is_requested() => Err(Stop::error()
            .prefixed(format_args!("making the Python environment of '{}': ", request.model_name))),
        resolved => resolved,
    }
}

impl Work<'_> {
    fn resolve(&self) -> Result<Environment> {
        let Work { request, variables, options } = *self;
        let parameters = request.parameters;
        if let Some(path) = named_path(parameters, request.model_dir, request.paths)? {
            let value = given(parameters, EXECUTION_ENV_PATH).unwrap_or_default();
            let prefixed =
                |e: Error| e.prefixed(format_args!("parameter {EXECUTION_ENV_PATH} '{value}': "));
            return self.open(&path, request.confinement).map_err(prefixed);
        }
        if let Some(requirements) = requirements::find(request.version_dir, request.model_dir)? {
            return self.build(&requirements);
        }
        if let Some(value) = given(request.backend_config, DEFAULT_ENVIRONMENT) {
            // The operator named this environment.
            return self.open(Path::new(value), &request.confinement.lifted()).map_err(|e| {
                e.prefixed(format_args!("--backend-config=python,default-environment={value}: "))
            });
        }
        let base = self.base()?;
        let missing = match base.clone().with_numpy() {
            Ok(interpreter) => return Ok(plain(interpreter, variables)),
            Err(missing) => missing,
        };
        // The server adds nothing to an environment that the user activated. Another venv could not see its packages either.
        if base.is_venv || !options.adds_numpy {
            return Err(missing);
        }
        self.build_with(&Requirements::numpy(), &base).map_err(|e| {
            let text = format!("{missing}. It could not be added automatically: {}", e.message());
            Error::new(e.code(), text).with_source(e)
        })
    }

    /// Opens a folder, an archive, or an interpreter itself.
    fn open(&self, path: &Path, confinement: &Confinement) -> Result<Environment> {
        let Work { request, variables, .. } = *self;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (root, lease) = if path.is_dir() {
            (path, EnvironmentLease::default())
        } else if !path.exists() {
            return Err(Error::internal(no_such_path(&path)));
        } else if !path.is_file() {
            // Opening a pipe would wait for a writer.
            let text = format!("'{}' is neither a folder nor a file", path.display());
            return Err(Error::invalid_arg(text));
        } else if search::is_executable(&path) && !galatea_tar_archive::is_archive(&path) {
            let settings = folder::base_settings(variables);
            let interpreter = Interpreter::probe(&path, &settings, confinement)?.with_numpy()?;
            return Ok(plain(interpreter, variables));
        } else {
            Unpacking { work: *self, confinement }.unpacked(&path)?
        };
        if activation::script(&root).is_none() {
            folder::log_ignored_scripts(&root, request.model_name);
        }
        let mut environment = Environment { lease, ..folder::open(&root, variables, confinement)? };
        let script = Activation {
            root: &root,
            python: &environment.python,
            settings: &environment.variables,
            server: variables,
        };
        let set = script.variables(confinement);
        environment.variables.extend(set);
        Ok(environment)
    }

    fn build(&self, requirements: &Requirements) -> Result<Environment> {
        let base = match &requirements.python {
            None => self.base()?,
            Some(range) => {
                let preferred = self.base_path().ok();
                let file = requirements.file.as_deref().unwrap_or(Path::new(""));
                search::choose(range, preferred.as_deref(), self.variables)
                    .map_err(|e| e.prefixed(format_args!("'{}': ", file.display())))?
            }
        };
        self.build_with(requirements, &base)
    }

    fn build_with(&self, requirements: &Requirements, base: &Interpreter) -> Result<Environment> {
        let Work { request, variables, .. } = *self;
        let (folder, lease) = Build { work: *self, requirements, base }.built()?;
        let mut environment =
            Environment { lease, ..folder::open(&folder, variables, request.confinement)? };
        let origin = match requirements.file.as_deref().and_then(Path::file_name) {
            Some(file) => format!(" built from its {}", file.to_string_lossy()),
            None => format!(" built because {} has no numpy", base.path.display()),
        };
        environment.description.push_str(&origin);
        Ok(environment)
    }

    /// Finds the interpreter of models without a requirement.
    fn base(&self) -> Result<Interpreter> {
        let path = self.base_path()?;
        let confinement = self.request.confinement.lifted();
        let settings = folder::base_settings(self.variables);
        Interpreter::probe(&path, &settings, &confinement).map_err(|e| {
            let hint = "; name another with --backend-config=python,python-interpreter=PATH";
            Error::new(e.code(), format!("{}{hint}", e.message()))
        })
    }

    fn base_path(&self) -> Result<PathBuf> {
        let Work { request, variables, .. } = *self;
        let Some(named) = given(request.backend_config, PYTHON_INTERPRETER) else {
            let python = search::on_path("python3", variables);
            return python.ok_or_else(|| {
                Error::unavailable(format!(
                    "no python3 on PATH; install Python 3.9 or newer, or name one with \
                     --backend-config=python,{PYTHON_INTERPRETER}=PATH"
                ))
            });
        };
        if named.contains('/') {
            return Ok(std::path::absolute(named).unwrap_or_else(|_| named.into()));
        }
        let python = search::on_path(named, variables);
        python.ok_or_else(|| {
            Error::invalid_arg(format!(
                "--backend-config=python,{PYTHON_INTERPRETER}={named}: no such program on PATH"
            ))
        })
    }
}

fn plain(interpreter: Interpreter, variables: &Variables) -> Environment {
    let kind = if interpreter.is_venv { "in venv" } else { "in" };
    let description = format!("{} {kind} {}", interpreter.title(), interpreter.prefix.display());
    Environment {
        python: interpreter.path,
        variables: folder::base_settings(variables),
        folders: interpreter.folders,
        description,
        lease: EnvironmentLease::default(),
    }
}

/// Returns a setting that is not empty.
fn given<'a>(settings: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    settings.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

/// Folders in which relative paths are looked up.
struct SearchFolders<'a> {
    /// Working directory of the server.
    working_dir: &'a Path,
    model_dir: &'a Path,
}

/// Returns the path of the environment that `parameters` name, if they name one.
///
/// # Errors
/// When the path does not exist, or the rules do not allow it.
pub(crate) fn named_path(
    parameters: &BTreeMap<String, String>,
    model_dir: &Path,
    rules: &PathRules,
) -> Result<Option<PathBuf>> {
    let Some(value) = given(parameters, EXECUTION_ENV_PATH) else { return Ok(None) };
    let working_dir = std::env::current_dir().unwrap_or_default();
    let places = SearchFolders { working_dir: &working_dir, model_dir };
    let path = execution_path(value, &places, rules)?;
    let path = std::path::absolute(&path).unwrap_or(path);
    if path.exists() {
        return Ok(Some(path));
    }
    let text = format!("parameter {EXECUTION_ENV_PATH} '{value}': {}", no_such_path(&path));
    let field = FieldPath::from("parameters").named(EXECUTION_ENV_PATH);
    let found = Diagnostic::error(text).about(field.field("value").field("string_value"));
    let advice = "put the environment there, or correct the path: a relative one starts in the server's working \
                  directory or, if that has no such path, in the model's folder";
    Err(found.with_advice(advice).into_unplaced_error(Code::Internal))
}

/// Resolves a path. As in Triton, a relative path begins in the server's working directory. If that path does not exist or
/// is not allowed, it begins in the model's folder.
fn execution_path(value: &str, places: &SearchFolders<'_>, rules: &PathRules) -> Result<PathBuf> {
    let SearchFolders { working_dir, model_dir } = places;
    if value.contains("://") {
        return Err(Error::unsupported(format!(
            "parameter {EXECUTION_ENV_PATH} '{value}': remote environments are not supported; put the file beside the \
             model and write {MODEL_DIRECTORY}/FILE"
        )));
    }
    let inside = match value.strip_prefix(MODEL_DIRECTORY) {
        // A path in the repository's own configuration may leave the model's folder, too.
        Some(rest) if rules.trusts(value) => {
            return Ok(model_dir.join(rest.trim_start_matches('/')));
        }
        Some(rest) => rest.trim_start_matches('/'),
        None => value,
    };
    let from_working_dir = working_dir.join(value);
    if inside == value && rules.trusts(value) && from_working_dir.exists() {
        return Ok(from_working_dir);
    }
    Ok(rules.resolve(EXECUTION_ENV_PATH, model_dir, inside)?)
}

/// Returns Triton's text for a missing path, and more; its code is [`Code::Internal`].
fn no_such_path(path: &Path) -> String {
    let shown = path.display();
    format!("Failed to get the canonical path for {shown}. There is no such file or folder")
}

/// Logs that a stub is ignored: Triton's users compile it for their version of Python, but here it has no effect.
fn log_ignored_stub(request: &EnvironmentRequest<'_>) {
    let stub = request.model_dir.join("triton_python_backend_stub");
    if stub.exists() {
        log::info!(
            "model '{}': '{}' is ignored: the interpreter of its environment decides the version of Python",
            request.model_name,
            stub.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_models(model_dir: &str) -> SearchFolders<'_> {
        SearchFolders { working_dir: Path::new("/nowhere"), model_dir: Path::new(model_dir) }
    }

    #[test]
    fn the_path_of_an_environment_is_resolved() {
        let anywhere = PathRules::anywhere();
        let path = |value: &str| execution_path(value, &in_models("/models/m"), &anywhere);
        let expected = PathBuf::from("/models/m/env.tar.gz");
        for value in ["$$TRITON_MODEL_DIRECTORY/env.tar.gz", "env.tar.gz", "/models/m/env.tar.gz"] {
            assert_eq!(path(value).expect("a path"), expected, "{value}");
        }
        assert_eq!(path("/envs/a").expect("a path"), PathBuf::from("/envs/a"));
        assert!(path("s3://bucket/env.tar.gz").expect_err("remote").to_string().contains("remote"));
    }

    #[test]
    fn a_relative_path_is_tried_in_the_working_directory_then_in_the_model() {
        let folder = tempfile::tempdir().expect("folder");
        let [working_dir, model_dir] = ["server", "model"].map(|name| folder.path().join(name));
        for made in [working_dir.join("envs/a"), model_dir.join("envs/a"), model_dir.join("b")] {
            std::fs::create_dir_all(made).expect("created");
        }
        let places = SearchFolders { working_dir: &working_dir, model_dir: &model_dir };
        let path = |value: &str, rules| execution_path(value, &places, &rules).expect("a path");
        let anywhere = PathRules::anywhere;
        assert_eq!(path("envs/a", anywhere()), working_dir.join("envs/a"));
        assert_eq!(path("b", anywhere()), model_dir.join("b"));
        assert_eq!(path("$$TRITON_MODEL_DIRECTORY/envs/a", anywhere()), model_dir.join("envs/a"));
        // What a load request brings does not reach what lies beside the server.
        assert_eq!(path("envs/a", PathRules::inside_model(vec![])), model_dir.join("envs/a"));
        let trusted = PathRules::inside_model(vec!["envs/a".to_owned()]);
        assert_eq!(path("envs/a", trusted), working_dir.join("envs/a"));
    }

    #[test]
    fn an_environment_named_by_a_request_must_lie_in_the_model_folder() {
        let trusted = ["/envs/a", "$$TRITON_MODEL_DIRECTORY/../env"].map(str::to_owned);
        let rules = PathRules::inside_model(trusted.to_vec());
        let path = |value: &str| execution_path(value, &in_models("/models/m"), &rules);
        for value in ["$$TRITON_MODEL_DIRECTORY/env.tar.gz", "env.tar.gz", "./env.tar.gz"] {
            let found = path(value).expect("a path");
            assert_eq!(found, PathBuf::from("/models/m/env.tar.gz"), "{value}");
        }
        assert_eq!(path("/envs/a").expect("trusted"), PathBuf::from("/envs/a"));
        assert!(path("$$TRITON_MODEL_DIRECTORY/../env").is_ok(), "trusted");
        let outside = [
            "/envs/b",
            "../b",
            "env/../../b",
            "$$TRITON_MODEL_DIRECTORY/../b",
            "$$TRITON_MODEL_DIRECTORY/env/../../b",
            "$$TRITON_MODEL_DIRECTORY//../b",
        ];
        for value in outside {
            let error = path(value).expect_err(value);
            assert!(error.message().contains("EXECUTION_ENV_PATH"), "{error}");
            assert!(error.message().contains("--allow-override-paths"), "{error}");
        }
    }
}
