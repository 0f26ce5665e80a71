//! What can be wrong with a model repository, or with a model's folder in one.

use std::{error, io};

use galatea_config::{Diagnostic, Place};
use galatea_types::{Code, Error};

use super::text_file;

/// Every text names the model or the path it is about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RepositoryError {
    #[error("failed to stat file {path}: {source}")]
    Stat { path: String, source: io::Error },
    #[error("model repository '{path}' is not a folder")]
    NotAFolder { path: String },
    #[error("failed to read model repository {path}: {source}")]
    UnreadableRoot { path: String, source: io::Error },
    #[error("no folder named '{model}' in the model repositories")]
    NoSuchModel { model: String },
    #[error("failed to poll model '{model}': not unique across all model repositories")]
    NotUnique { model: String },
    #[error("failed to read the folder of model '{model}': {source}")]
    UnreadableModel { model: String, source: io::Error },
    #[error("failed to register '{place}', repository not found")]
    NotRegistered { place: String },
    #[error("model repository '{place}' has already been registered")]
    Registered { place: String },
    #[error("failed to register '{model}', there is a conflicting mapping for '{model}'")]
    NameTaken { model: String },
}

impl RepositoryError {
    fn code(&self) -> Code {
        match self {
            Self::Stat { .. } | Self::NotAFolder { .. } | Self::UnreadableModel { .. } => {
                Code::Internal
            }
            Self::UnreadableRoot { .. } | Self::NotUnique { .. } | Self::NotRegistered { .. } => {
                Code::InvalidArg
            }
            Self::Registered { .. } | Self::NameTaken { .. } => Code::AlreadyExists,
            Self::NoSuchModel { .. } => Code::NotFound,
        }
    }
}

impl RepositoryError {
    /// Where somebody can do something about it, and what.
    fn remedy(&self) -> Option<(&str, &'static str)> {
        match self {
            Self::NotUnique { model } => Some((
                model,
                "rename its folder in one of the repositories, or start the server with --model-namespacing",
            )),
            Self::UnreadableModel { model, source } => Some((model, text_file::advice(source)?)),
            Self::UnreadableRoot { path, source } => Some((path, text_file::advice(source)?)),
            _ => None,
        }
    }
}

impl From<RepositoryError> for Error {
    fn from(error: RepositoryError) -> Self {
        let text = error.to_string();
        if let Some((place, advice)) = error.remedy() {
            let found = Diagnostic::error(&*text).with_advice(advice).at(Place::file(place));
            return Error::new(error.code(), format!("{text}{}", found.appendix()))
                .with_source(found);
        }
        let plain = Error::new(error.code(), text);
        match error::Error::source(&error) {
            Some(_) => plain.with_source(error),
            None => plain,
        }
    }
}
