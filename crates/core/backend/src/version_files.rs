//! Locates the files of a version, and makes errors about them and their configuration.

use std::path::{Path, PathBuf};

use galatea_config::{Diagnostic, FieldPath, Place};
use galatea_types::{Code, Error};

use crate::{CompletionContext, LoadContext, PathError};

impl CompletionContext<'_> {
    /// Returns the place of a file as clients read it: its path in the repository.
    pub fn place(&self, path: &Path) -> Place {
        let inside = path.strip_prefix(self.model_dir).unwrap_or(path);
        Place::file(format!("{}/{}", self.model_name, inside.display()))
    }

    /// Returns the path of a library that `setting` names. A relative path is looked up in the version's folder, then in the
    /// model's. After that the loader resolves it, if the configuration may name libraries of the system.
    ///
    /// # Errors
    /// The path leads out of the model's folder and is not trusted.
    pub fn find_library(&self, setting: &str, name: &str) -> Result<PathBuf, PathError> {
        let at = |folder| self.paths.resolve(setting, folder, name);
        let (of_version, of_model) = (at(self.version_dir)?, at(self.model_dir)?);
        Ok(match () {
            () if of_version.exists() => of_version,
            () if of_model.exists() => of_model,
            () if self.paths.trusts(name) => PathBuf::from(name),
            () => of_version,
        })
    }
}

impl LoadContext {
    /// Returns the context for [`Backend::complete_config`](crate::Backend::complete_config) for the version to load.
    pub fn files(&self) -> CompletionContext<'_> {
        CompletionContext {
            model_name: self.config.name(),
            model_dir: &self.model_dir,
            version: self.version,
            version_dir: &self.version_dir,
            backend_config: &self.backend_config,
            paths: &self.paths,
        }
    }
}

/// Makes the error of a field of the configuration. `advice` says what to write there.
pub fn misconfigured(
    code: Code,
    text: impl Into<String>,
    field: impl Into<FieldPath>,
    advice: impl Into<String>,
) -> Error {
    Diagnostic::error(text).about(field).with_advice(advice).into_unplaced_error(code)
}

/// Adds a finding in the files of the model to the error of a runtime library.
pub fn explain(error: Error, found: Diagnostic) -> Error {
    let advice = format!("{}; {}", found.text, found.advice.as_deref().unwrap_or_default());
    let found = Diagnostic { text: error.message().to_owned(), ..found }.with_advice(advice);
    let text = format!("{error}{}", found.appendix());
    Error::new(error.code(), text).with_source(found)
}
