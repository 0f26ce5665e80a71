//! Inspects a model's files without the library that runs it.

use std::path::Path;

use galatea_config::{ConfigDraft, ModelConfig};
use galatea_types::{Error, Result};

use crate::CompletionContext;

/// The largest number of disagreements reported for one version.
pub const MOST_MISTAKES: usize = 50;

/// Inspects the files of a backend's models without loading them: no library is opened, and no code of a model runs. Used to
/// inspect a repository before a server is started.
pub trait Inspector: Send + Sync {
    /// Does what [`Backend::has_runtime`](crate::Backend::has_runtime) does.
    fn has_runtime(&self, runtime: &str) -> bool;

    /// Does what [`Backend::default_runtime`](crate::Backend::default_runtime) does.
    fn default_runtime(&self) -> Option<&str> {
        None
    }

    /// Returns the file that runs a model with these folders, in quotes and with what it tells, if it is none of the program's:
    /// all that a reader of the model's configuration cannot see. The default returns none.
    fn program(&self, folders: &[&Path]) -> Option<String> {
        let _ = folders;
        None
    }

    /// Completes a configuration like [`Backend::complete_config`](crate::Backend::complete_config).
    ///
    /// # Errors
    /// Those of the backend, and [`MissingModelInfo`] if only the library that runs the model knows. The default
    /// leaves the configuration as it is.
    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        let _ = context;
        Ok(config)
    }

    /// Checks that the files of a version fit its configuration, as far as they can be read.
    ///
    /// # Errors
    /// The reason why [`Backend::load`](crate::Backend::load) would fail, and [`MissingModelInfo`].
    fn inspect(&self, config: &ModelConfig, context: &CompletionContext<'_>) -> Result<()>;

    /// Returns all disagreements between a configuration and the files of a version, at most [`MOST_MISTAKES`].
    /// [`Inspector::inspect`] returns the first of them. The default finds none.
    fn mistakes(&self, config: &ModelConfig, context: &CompletionContext<'_>) -> Vec<Error> {
        let _ = (config, context);
        Vec::new()
    }
}

/// Information that the files of a model do not contain. It is not a mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MissingModelInfo(pub String);

impl From<MissingModelInfo> for Error {
    fn from(reason: MissingModelInfo) -> Self {
        Error::unavailable(reason.to_string()).with_source(reason)
    }
}

impl MissingModelInfo {
    /// Returns true if this is the cause of an error.
    pub fn is_in(error: &Error) -> bool {
        std::error::Error::source(error).is_some_and(|source| source.is::<Self>())
    }
}
