//! Why a request finds no model.

use galatea_types::{Code, Error};

/// In Triton's words, which clients match on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookUpError {
    #[error("Server exiting")]
    Exiting,
    #[error("Server not ready")]
    NotInitialized,
    #[error("Request for unknown model: '{model}' is not found")]
    UnknownModel { model: String },
    /// With namespaces: no model has the name.
    #[error("Request for unknown model: '{model}' is not found")]
    Unidentified { model: String },
    /// With namespaces: the models of that name were unloaded.
    #[error("Identifier of model '{model}' is not found in global map")]
    Forgotten { model: String },
    /// With namespaces: a name alone does not say which model is meant.
    #[error(
        "There are {count} identifiers of model '{model}' in global map, model namespace must be provided to resolve \
         ambiguity."
    )]
    Ambiguous { model: String, count: usize },
    #[error("Request for unknown model: '{model}' has no available versions")]
    NoVersion { model: String },
    #[error("Request for unknown model: '{model}' version {version} is not found")]
    UnknownVersion { model: String, version: i64 },
    #[error("Request for unknown model: '{model}' version {version} is not at ready state")]
    NotReady { model: String, version: i64 },
}

impl From<LookUpError> for Error {
    fn from(error: LookUpError) -> Self {
        let code = match error {
            LookUpError::Exiting | LookUpError::NotInitialized | LookUpError::NotReady { .. } => {
                Code::Unavailable
            }
            LookUpError::Unidentified { .. } | LookUpError::Ambiguous { .. } => Code::InvalidArg,
            LookUpError::Forgotten { .. }
            | LookUpError::UnknownModel { .. }
            | LookUpError::NoVersion { .. }
            | LookUpError::UnknownVersion { .. } => Code::NotFound,
        };
        Self::new(code, error.to_string())
    }
}
