//! Where the files of a version lie, and how errors name them.

use std::path::Path;

use galatea_config::{Diagnostic, Place};
use galatea_types::Error;

use crate::{CompletionContext, LoadContext};

/// The folders of a version, and the name of its model.
#[derive(Clone, Copy, Debug)]
pub struct VersionFiles<'a> {
    /// Name of the model, for texts.
    pub model: &'a str,
    /// Folder of the model.
    pub model_dir: &'a Path,
    /// Folder of the version.
    pub version_dir: &'a Path,
}

impl VersionFiles<'_> {
    /// Returns the place of a file as clients read it: from the repository on.
    pub fn place(&self, path: &Path) -> Place {
        let inside = path.strip_prefix(self.model_dir).unwrap_or(path);
        Place::file(format!("{}/{}", self.model, inside.display()))
    }
}

impl<'a> CompletionContext<'a> {
    /// Returns where the files of the version lie.
    pub fn files(&self) -> VersionFiles<'a> {
        let Self { model_name: model, model_dir, version_dir, .. } = *self;
        VersionFiles { model, model_dir, version_dir }
    }
}

impl LoadContext {
    /// Returns where the files of the version lie.
    pub fn files(&self) -> VersionFiles<'_> {
        let Self { config, model_dir, version_dir, .. } = self;
        VersionFiles { model: config.name(), model_dir, version_dir }
    }
}

/// Adds to the error of a runtime library what was found in the files of the model.
pub fn explain(error: Error, found: Diagnostic) -> Error {
    let advice = format!("{}; {}", found.text, found.advice.as_deref().unwrap_or_default());
    let found = Diagnostic { text: error.message().to_owned(), ..found }.with_advice(advice);
    let text = format!("{error}{}", found.appendix());
    Error::new(error.code(), text).with_source(found)
}
