//! Why a load or unload call is refused before anything is looked at.

use galatea_types::{Code, Error};

#[derive(Debug, thiserror::Error)]
pub(super) enum ControlError {
    #[error("explicit model load / unload is not allowed if polling is enabled")]
    NotExplicit,
    #[error("repository registration is not allowed if model control mode is not EXPLICIT")]
    NoRegistration,
    #[error("Model name cannot be empty")]
    EmptyName,
    #[error("invalid model name: it has {size} bytes, the limit is {limit}")]
    LongName { size: usize, limit: usize },
    #[error("invalid model name '{name}', model name must not contain path traversal characters")]
    PathTraversal { name: String },
}

impl From<ControlError> for Error {
    fn from(error: ControlError) -> Self {
        let code = match error {
            ControlError::NotExplicit => Code::Unavailable,
            ControlError::NoRegistration => Code::Unsupported,
            ControlError::EmptyName
            | ControlError::LongName { .. }
            | ControlError::PathTraversal { .. } => Code::InvalidArg,
        };
        Self::new(code, error.to_string())
    }
}
