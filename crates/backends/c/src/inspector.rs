//! Inspects models whose backend is a library, without opening it.

use std::path::PathBuf;

use galatea_backend::{CompletionContext, Inspector, MissingModelInfo};
use galatea_config::{ConfigDraft, ModelConfig};
use galatea_triton_c::{LibraryFile, objects::OBJECTS};
use galatea_types::{Error, Result};

use crate::{
    hooks::REQUIREMENTS,
    offer::BACKEND,
    search::{find_library, library_name},
};

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
}

impl Inspector for LibraryInspector {
    fn has_runtime(&self, runtime: &str) -> bool {
        runtime == library_name(&self.name)
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
            library_name(&self.name)
        ))
        .into())
    }

    fn inspect(&self, _: &ModelConfig, context: &CompletionContext<'_>) -> Result<()> {
        let own = self.directory.join(&self.name);
        let folders = [context.version_dir, context.model_dir, &own];
        let path = find_library(&self.name, folders).ok_or_else(|| {
            let text = format!("{} is not there", library_name(&self.name));
            Error::invalid_arg(text)
        })?;
        let file = LibraryFile::read(&path).map_err(|error| {
            let text = format!("'{}' cannot be opened: {error}", path.display());
            Error::invalid_arg(text)
        })?;
        file.check(&path, &REQUIREMENTS, &[&OBJECTS, &BACKEND])
    }
}
