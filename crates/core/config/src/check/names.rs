//! Name, platform and backend of a model.

use super::{
    at::{About, At},
    context::CheckContext,
};
use crate::{
    RawModelConfig,
    backend_table::{ENSEMBLE_PLATFORM, backend_for_platform, has_platforms},
};

/// What is wrong with name, platform or backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No name, which only a configuration without defaults can lack.
    #[error("model configuration must specify 'name'")]
    NoName,
    /// The folder has another name.
    #[error(
        "unexpected directory name '{directory}' for model '{model}', directory name must equal model name"
    )]
    OtherDirectory {
        /// The name of the folder.
        directory: String,
        /// The name in the configuration.
        model: String,
    },
    /// Neither platform nor backend is given.
    #[error("must specify 'platform' or 'backend' for '{model}'")]
    NoBackend {
        /// The model.
        model: String,
    },
    /// No backend has this platform.
    #[error("unexpected platform type '{platform}' for {model}")]
    UnknownPlatform {
        /// The platform.
        platform: String,
        /// The model.
        model: String,
    },
    /// An ensemble has no backend.
    #[error("Ensemble model '{model}' must have platform type 'ensemble' and empty backend type")]
    EnsembleWithBackend {
        /// The ensemble.
        model: String,
    },
    /// The platform belongs to another backend.
    #[error("unexpected 'platform' and 'backend' pair, got:{platform}, {backend}")]
    OtherBackend {
        /// The platform.
        platform: String,
        /// The backend.
        backend: String,
    },
}

pub(super) fn check(raw: &RawModelConfig, context: &CheckContext<'_>) -> Result<(), At<NameError>> {
    let RawModelConfig { name, platform, backend, .. } = raw;
    let model = || name.clone();
    if name.is_empty() {
        return Err(NameError::NoName.at("name"));
    }
    if name != context.directory_name {
        let directory = context.directory_name.to_owned();
        return Err(NameError::OtherDirectory { directory, model: model() }.at("name"));
    }
    let is_ensemble = platform == ENSEMBLE_PLATFORM;
    match (backend.is_empty(), is_ensemble) {
        (true, false) if platform.is_empty() => Err(NameError::NoBackend { model: model() }.at("")),
        (true, false) => {
            Err(NameError::UnknownPlatform { platform: platform.clone(), model: model() }
                .at("platform"))
        }
        (false, true) => Err(NameError::EnsembleWithBackend { model: model() }.at("backend")),
        (true, true) => Ok(()),
        (false, false) => check_pair(platform, backend),
    }
}

/// A backend with platforms of its own takes only these; any other takes whatever is written.
fn check_pair(platform: &str, backend: &str) -> Result<(), At<NameError>> {
    if has_platforms(backend) && backend_for_platform(platform) != Some(backend) {
        let (platform, backend) = (platform.to_owned(), backend.to_owned());
        let field = if platform.is_empty() { "backend" } else { "platform" };
        return Err(NameError::OtherBackend { platform, backend }.at(field));
    }
    Ok(())
}
