//! Inspects models whose backend is a library, without opening it.

use std::path::{Path, PathBuf};

use galatea_backend::{CompletionContext, Inspector, MissingModelInfo};
use galatea_config::{ConfigDraft, ModelConfig};
use galatea_types::{Error, Result};

use crate::search::{LIBRARIES, find_library};

/// The inspector for models of one backend: the library's file is read, and no code of it runs.
#[derive(Clone, Debug)]
pub struct LibraryInspector {
    name: String,
    /// The folder of all backends.
    directory: PathBuf,
}

impl LibraryInspector {
    /// Makes the inspector of the backend `name`.
    pub fn new(name: impl Into<String>, directory: PathBuf) -> Self {
        Self { name: name.into(), directory }
    }

    fn file_name(&self) -> String {
        LIBRARIES.file_name(&self.name)
    }

    /// Returns the library for a model with these folders.
    fn library(&self, folders: &[&Path]) -> Option<PathBuf> {
        let own = self.directory.join(&self.name);
        find_library(&self.name, folders.iter().copied().chain([&*own]))
    }
}

impl Inspector for LibraryInspector {
    fn has_runtime(&self, runtime: &str) -> bool {
        runtime == self.file_name()
    }

    fn program(&self, folders: &[&Path]) -> Option<String> {
        let path = self.library(folders)?;
        let facts = LIBRARIES.inspect(&path).ok()?;
        Some(format!("'{}': {facts}", path.display()))
    }

    /// Leaves a configuration with all tensors as it is. For others only the library knows.
    fn complete_config(
        &self,
        config: ConfigDraft,
        _: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        if config.has_inputs() && config.has_outputs() {
            return Ok(config);
        }
        Err(MissingModelInfo(format!(
            "only {} knows the inputs and outputs of the model, and it is not opened for a check",
            self.file_name()
        ))
        .into())
    }

    fn inspect(&self, _: &ModelConfig, context: &CompletionContext<'_>) -> Result<()> {
        let path = self
            .library(&[context.version_dir, context.model_dir])
            .ok_or_else(|| Error::invalid_arg(format!("{} is not there", self.file_name())))?;
        LIBRARIES.inspect(&path).map(drop)
    }
}
