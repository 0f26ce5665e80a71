//! What a model's files tell without what runs it.

use galatea_config::{ConfigDraft, ModelConfig};
use galatea_types::{Error, Result};

use crate::CompletionContext;

/// Disagreements that are told of one version.
pub const MOST_MISTAKES: usize = 50;

/// Looks at the files of a backend's models without loading them: no library is opened, and no code of a model runs. For
/// the inspection of a repository before a server is started.
pub trait Inspector: Send + Sync {
    /// As [`Backend::has_runtime`](crate::Backend::has_runtime).
    fn has_runtime(&self, runtime: &str) -> bool;

    /// Fills in what the configuration leaves out, as [`Backend::complete_config`](crate::Backend::complete_config) does.
    ///
    /// # Errors
    /// Those of the backend; and [`NotDeclared`] where only what runs the model knows. The default leaves the
    /// configuration as it is.
    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        let _ = context;
        Ok(config)
    }

    /// Whether the files of a version fit its configuration, as far as they tell.
    ///
    /// # Errors
    /// Why [`Backend::load`](crate::Backend::load) would fail, and [`NotDeclared`].
    fn inspect(&self, config: &ModelConfig, context: &CompletionContext<'_>) -> Result<()>;

    /// All disagreements between a configuration and the files of a version, of which [`Inspector::inspect`] tells the
    /// first; at most [`MOST_MISTAKES`]. The default finds none.
    fn mistakes(&self, config: &ModelConfig, context: &CompletionContext<'_>) -> Vec<Error> {
        let _ = (config, context);
        Vec::new()
    }
}

/// Something that the files of a model do not tell: no mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotDeclared(pub String);

impl From<NotDeclared> for Error {
    fn from(reason: NotDeclared) -> Self {
        Error::unavailable(reason.to_string()).with_source(reason)
    }
}

impl NotDeclared {
    /// Whether that is what an error says.
    pub fn is_in(error: &Error) -> bool {
        std::error::Error::source(error).is_some_and(|source| source.is::<Self>())
    }
}
