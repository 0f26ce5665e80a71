//! Configurations whose inputs and outputs are not those of the package.

use galatea_config::{Diagnostic, FieldPath};
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
        let (field, advice) = error.remedy();
        let found = Diagnostic::error(error.to_string()).about(field).with_advice(advice);
        found.into_unplaced_error(code)
    }
}

impl PackageNamingError {
    /// The field of the configuration that it is about, and what to write there.
    fn remedy(&self) -> (FieldPath, &'static str) {
        let tensor = |what: &'static str, name: &str| FieldPath::from(what).named(name);
        match self {
            Self::NoTensors { .. } => {
                (FieldPath::default(), "list them with their names, types and dimensions")
            }
            Self::Unknown { what, name, .. } => {
                (tensor(what, name).field("name"), "write one of the names that the package has")
            }
            Self::Twice { what, name, .. } => {
                (tensor(what, name).field("name"), "list each tensor of the package once")
            }
            Self::Optional { name, .. } => {
                (tensor("input", name).field("optional"), "remove `optional`")
            }
            Self::InputCount { .. } => {
                ("input".into(), "list every input of the package, and no other")
            }
        }
    }
}
