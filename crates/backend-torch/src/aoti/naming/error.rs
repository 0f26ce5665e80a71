//! Configurations whose inputs and outputs are not those of the package.

use galatea_types::{Code, Error};

/// Each names the model; `known` lists the names that the package has.
#[derive(Debug, thiserror::Error)]
pub(in crate::aoti) enum PackageNamingError {
    #[error(
        "model configuration must contain at least one {what}, none were specified: model '{model}' has {known}, of \
         types and dimensions that its package does not tell"
    )]
    NoTensors { what: &'static str, model: String, known: String },
    #[error(
        "unable to load model '{model}', {what} '{name}' is not in the package, which has {known}"
    )]
    Unknown { what: &'static str, model: String, name: String, known: String },
    #[error(
        "unable to load model '{model}', {what} '{name}' is another name of one that is there already"
    )]
    Twice { what: &'static str, model: String, name: String },
    #[error(
        "unable to load model '{model}', input '{name}' is optional, but a package takes all its inputs"
    )]
    Optional { model: String, name: String },
    #[error(
        "unable to load model '{model}', configuration expects {configured} inputs, model provides {provided}: {known}"
    )]
    InputCount { model: String, configured: usize, provided: usize, known: String },
}

impl From<PackageNamingError> for Error {
    fn from(error: PackageNamingError) -> Self {
        let code = match error {
            PackageNamingError::NoTensors { .. } => Code::Internal,
            _ => Code::InvalidArg,
        };
        Error::new(code, error.to_string())
    }
}
