//! Rules for the paths in a model's configuration.

use std::path::{Component, Path, PathBuf};

use galatea_types::Error;

/// Limits the paths in a model's configuration that name code or files to write.
///
/// The owner of the repository may name any file of the machine. A configuration from a load request may only name files of
/// its model, and paths that the repository's own configuration of the model names.
///
/// Links are followed: they are in the repository, where no request can create one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathRules {
    /// The paths that may lead out of the model's folder; `None` if all may.
    trusted: Option<Vec<String>>,
}

/// A path that may not be followed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{setting} '{path}' leads out of the model's folder. The configuration of a load request may do so only if that \
     in the repository has the same path, or the server runs with --allow-override-paths=true"
)]
pub struct PathError {
    setting: String,
    path: String,
}

impl From<PathError> for Error {
    fn from(error: PathError) -> Self {
        Error::invalid_arg(error.to_string()).with_source(error)
    }
}

impl PathRules {
    /// Allows all paths.
    pub fn anywhere() -> Self {
        Self { trusted: None }
    }

    /// Forbids paths out of the model's folder, except these, exactly as they are written.
    pub fn inside_model(trusted: Vec<String>) -> Self {
        Self { trusted: Some(trusted) }
    }

    /// Returns the paths that may lead out of the model's folder; `None` if all may.
    pub fn trusted(&self) -> Option<&[String]> {
        self.trusted.as_deref()
    }

    /// Returns true if this path may lead out of the model's folder.
    pub fn trusts(&self, path: &str) -> bool {
        self.trusted.as_ref().is_none_or(|trusted| trusted.iter().any(|known| known == path))
    }

    /// Returns the path that `setting` names, relative to a folder of the model. A trusted path is joined unchanged, so an
    /// absolute path stays absolute.
    ///
    /// # Errors
    /// The path leads out of the model's folder and is not trusted.
    pub fn resolve(&self, setting: &str, folder: &Path, path: &str) -> Result<PathBuf, PathError> {
        if self.trusts(path) {
            return Ok(folder.join(path));
        }
        let inside = relative_inside(path).ok_or_else(|| self.refusal(setting, path))?;
        Ok(folder.join(inside))
    }

    /// Checks a setting that is passed unchanged to a library. A value that looks like a path must be trusted,
    /// because the folder that the library resolves it in is unknown.
    ///
    /// # Errors
    /// The value looks like a path and is not trusted.
    pub fn check_setting(&self, setting: &str, value: &str) -> Result<(), PathError> {
        const NAMES: [&str; 5] = ["file", "path", "folder", "directory", "partitioning"];
        let is_named_so = setting.ends_with("dir") || NAMES.iter().any(|n| setting.contains(n));
        let is_path = value.contains('/') || is_named_so;
        if is_path && !value.is_empty() && !self.trusts(value) {
            return Err(self.refusal(setting, value));
        }
        Ok(())
    }

    fn refusal(&self, setting: &str, path: &str) -> PathError {
        PathError { setting: setting.to_owned(), path: path.to_owned() }
    }
}

/// Returns a relative path without `.` and `..`. Returns `None` if it is absolute, leads out of the folder where it begins, or
/// names that folder itself.
pub fn relative_inside(path: &str) -> Option<PathBuf> {
    let mut inside = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(part) => inside.push(part),
            Component::CurDir => {}
            Component::ParentDir => {
                if !inside.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let is_path = !inside.as_os_str().is_empty() && !path.contains('\0');
    is_path.then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTSIDE: [&str; 8] =
        ["", "..", ".", "../x", "/etc/shadow", "a/../../x", "a/..", "1/labels\0.txt"];

    #[test]
    fn relative_paths_are_normalized_and_outside_paths_refused() {
        for (path, inside) in [("a", "a"), ("./1//a", "1/a"), ("a/../1/x", "1/x"), ("..a", "..a")] {
            assert_eq!(relative_inside(path).as_deref(), Some(Path::new(inside)), "{path}");
        }
        for path in OUTSIDE {
            assert_eq!(relative_inside(path), None, "{path}");
        }
    }

    #[test]
    fn a_request_may_name_only_files_of_its_model_or_listed_files() {
        let rules = PathRules::inside_model(vec!["/opt/ops.so".to_owned()]);
        let folder = Path::new("/m");
        let resolve = |path| rules.resolve("op_library_filename", folder, path);
        assert_eq!(resolve("1/ops.so"), Ok("/m/1/ops.so".into()));
        assert_eq!(resolve("/opt/ops.so"), Ok("/opt/ops.so".into()));
        for path in OUTSIDE {
            let error = resolve(path).expect_err(path).to_string();
            assert!(
                error.contains("op_library_filename '") && error.contains("--allow-"),
                "{error}"
            );
        }
        let anywhere = PathRules::anywhere();
        assert_eq!(anywhere.resolve("x", folder, "/etc/x"), Ok("/etc/x".into()));
        assert_eq!(anywhere.resolve("x", folder, "../n/x"), Ok("/m/../n/x".into()));
    }

    #[test]
    fn settings_that_name_paths_are_checked() {
        let rules = PathRules::inside_model(vec!["/cache".to_owned()]);
        for (setting, value) in [
            ("session.collect_node_memory_stats_to_file", "stats"),
            ("trt_engine_cache_path", "/tmp"),
            ("anything", "../x"),
        ] {
            assert!(rules.check_setting(setting, value).is_err(), "{setting}");
            assert!(PathRules::anywhere().check_setting(setting, value).is_ok(), "{setting}");
        }
        for (setting, value) in
            [("trt_engine_cache_path", "/cache"), ("session.intra_op.allow_spinning", "0")]
        {
            assert!(rules.check_setting(setting, value).is_ok(), "{setting}");
        }
    }
}
