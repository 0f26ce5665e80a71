//! Backends written in Python: one `model.py` that all models of the backend run.

use std::path::{Component, Path, PathBuf};

/// The file with the code of such a backend, and its `runtime` in configurations.
pub const CODE_OF_BACKEND: &str = "model.py";
/// Name of the archive with the environment of such a backend, which is optional.
const PACKED_ENVIRONMENT: &str = "pb_exec_env_model.py.tar.gz";

/// The files of a backend written in Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonBackendFiles {
    /// The code that all its models run.
    pub model_py: PathBuf,
    /// Environment for models without a parameter `EXECUTION_ENV_PATH`, used like it.
    pub execution_env: Option<PathBuf>,
}

/// Looks for a backend at [`python_backend_file`].
pub fn find_python_backend(backend_directory: &Path, name: &str) -> Option<PythonBackendFiles> {
    let model_py = python_backend_file(backend_directory, name)?;
    let packed = model_py.with_file_name(PACKED_ENVIRONMENT);
    model_py
        .is_file()
        .then(|| PythonBackendFiles { model_py, execution_env: packed.is_file().then_some(packed) })
}

/// Returns `{backend_directory}/{name}/model.py`, the only place of a backend's code. `name` comes from a model's
/// configuration. `None` if it is not the plain name of a folder.
pub fn python_backend_file(backend_directory: &Path, name: &str) -> Option<PathBuf> {
    let mut components = Path::new(name).components();
    let is_plain = matches!(components.next(), Some(Component::Normal(only)) if only == name);
    if !is_plain || components.next().is_some() || name.contains('\0') {
        return None;
    }
    // Absolute: relative paths in a model's parameters begin in the model's own folder.
    let folder = std::path::absolute(backend_directory.join(name)).ok()?;
    Some(folder.join(CODE_OF_BACKEND))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_python_backend_is_a_folder_with_model_py() {
        let backends = tempfile::tempdir().expect("folder");
        let at = |path: &str| backends.path().join(path);
        fs::create_dir_all(at("vllm")).expect("created");
        let find = |name: &str| find_python_backend(backends.path(), name);
        assert_eq!(find("vllm"), None);
        fs::write(at("vllm/model.py"), "").expect("written");
        let mut expected =
            PythonBackendFiles { model_py: at("vllm/model.py"), execution_env: None };
        assert_eq!(find("vllm"), Some(expected.clone()));
        fs::write(at("vllm/pb_exec_env_model.py.tar.gz"), "").expect("written");
        expected.execution_env = Some(at("vllm/pb_exec_env_model.py.tar.gz"));
        assert_eq!(find("vllm"), Some(expected));
    }

    #[test]
    fn a_backend_name_that_is_a_path_is_not_found() {
        let backends = tempfile::tempdir().expect("folder");
        fs::create_dir_all(backends.path().join("a")).expect("created");
        for folder in ["", "a/"] {
            fs::write(backends.path().join(folder).join("model.py"), "").expect("written");
        }
        let inside = backends.path().join("a");
        for name in ["", ".", "..", "../a", "./a", "a/", "/a", "a\0"] {
            assert_eq!(find_python_backend(backends.path(), name), None, "{name}");
            assert_eq!(find_python_backend(&inside, name), None, "{name}");
        }
        assert!(find_python_backend(backends.path(), "a").is_some());
    }
}
