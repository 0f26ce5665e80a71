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
            LookUpError::UnknownModel { .. }
            | LookUpError::NoVersion { .. }
            | LookUpError::UnknownVersion { .. } => Code::NotFound,
        };
        Self::new(code, error.to_string())
    }
}
