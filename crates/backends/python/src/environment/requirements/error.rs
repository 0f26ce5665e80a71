//! Why a file of requirements cannot be used.

use std::{io, path::PathBuf};

use galatea_types::Error;

/// What is wrong with a file of requirements.
#[derive(Debug, thiserror::Error)]
pub(in crate::environment) enum RequirementsError {
    #[error("cannot read '{}': {error}", file.display())]
    Unreadable { file: PathBuf, error: io::Error },
    #[error(
        "'{}': '{text}' of {setting} is no version of Python; write e.g. '3.12' or '>=3.10,<3.13'",
        file.display()
    )]
    PythonVersion { file: PathBuf, setting: &'static str, text: String },
    #[error("cannot read '{}': {reason}", file.display())]
    Project { file: PathBuf, reason: ProjectError },
}

/// Why a `pyproject.toml` cannot be followed.
#[derive(Debug, thiserror::Error)]
pub(in crate::environment) enum ProjectError {
    #[error("{0}")]
    Syntax(String),
    #[error("[project] is no table")]
    NoTable,
    #[error("requires-python is no text")]
    PythonIsNoText,
    #[error(
        "its dependencies are dynamic; list them in [project], or in a requirements.txt beside it"
    )]
    DynamicDependencies,
    #[error("dependencies is no list")]
    NoList,
    #[error("dependencies holds something that is no text")]
    DependencyIsNoText,
    #[error("'{0}' in dependencies is no requirement")]
    NoRequirement(String),
}

impl From<RequirementsError> for Error {
    fn from(error: RequirementsError) -> Self {
        let text = error.to_string();
        match error {
            RequirementsError::Unreadable { .. } => Error::unavailable(text),
            RequirementsError::PythonVersion { .. } | RequirementsError::Project { .. } => {
                Error::invalid_arg(text)
            }
        }
    }
}
