//! Why a model failed to load, as clients, the log and dependent ensembles report it.

use std::{collections::BTreeMap, fmt};

use galatea_types::Error;

use super::dependency_error::DependencyError;

/// What failed, by model.
pub(super) type Failures = BTreeMap<String, LoadFailure>;

/// Why a model failed to load. An ensemble that depends on it reports that as a [`DependencyError`].
#[derive(Clone, Debug)]
pub(super) enum LoadFailure {
    /// The server is stopping.
    Exiting,
    /// Its folder or configuration could not be read.
    Unreadable(Error),
    /// No version is to be loaded.
    NoVersion,
    /// Some of its versions failed, and with them all.
    Versions(VersionFailures),
    /// An ensemble that does not fit the models of its steps.
    Invalid(Error),
}

impl LoadFailure {
    /// The error for the client that requested the load.
    pub fn into_error(self, model: &str) -> Error {
        let failed = |reason: &dyn fmt::Display| {
            Error::invalid_arg(format!("load failed for model '{model}': {reason}\n"))
        };
        match self {
            Self::Exiting => Error::unavailable("Server exiting"),
            Self::Unreadable(error) => Error::internal(format!(
                "failed to load '{model}', failed to poll from model repository: {error}"
            ))
            .with_source(error),
            Self::NoVersion => Error::internal(no_version(model)),
            Self::Versions(versions) => failed(&versions),
            Self::Invalid(error) => failed(&error).with_source(error),
        }
    }

    /// Why `ensemble`, which depends on `model`, cannot be loaded either. `None`: the model was not to be loaded.
    pub fn for_dependent(failure: Option<&Self>, ensemble: &str, model: &str) -> DependencyError {
        let (ensemble, model) = (ensemble.to_owned(), model.to_owned());
        let reason = match failure {
            None | Some(Self::Exiting | Self::Unreadable(_)) => {
                return DependencyError::Unavailable { ensemble, model };
            }
            Some(Self::Invalid(error)) => {
                let reason = error.message().to_owned();
                return DependencyError::Invalid { ensemble, model, reason };
            }
            Some(Self::NoVersion) => no_version_by_policy(&model),
            Some(Self::Versions(versions)) => versions.to_string(),
        };
        DependencyError::NotLoaded { ensemble, model, reason }
    }
}

/// The versions that failed, and why. Never empty.
#[derive(Clone, Debug)]
pub(super) struct VersionFailures(pub Vec<VersionFailure>);

/// Why one version failed to load.
#[derive(Clone, Debug)]
pub(super) struct VersionFailure {
    pub version: i64,
    pub error: Error,
}

impl VersionFailure {
    /// The reason in the index: code and text.
    pub fn reason(&self) -> String {
        format!("{}: {}", self.error.code().as_str(), self.error)
    }

    /// The reason in the log: with its causes, such as the traceback of a Python model.
    pub fn reason_with_causes(&self) -> String {
        format!("{}: {}", self.error.code().as_str(), self.error.with_causes())
    }
}

/// One line for each version.
impl fmt::Display for VersionFailures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, failure) in self.0.iter().enumerate() {
            let separator = if i > 0 { "\n" } else { "" };
            let (version, reason) = (failure.version, failure.reason());
            write!(f, "{separator}version {version} is at UNAVAILABLE state: {reason};")?;
        }
        Ok(())
    }
}

/// The reason in the index for a model without any version.
pub(super) fn no_version(model: &str) -> String {
    format!("failed to load '{model}', no version is available")
}

/// The same in the log, and for ensembles that need the model.
pub(super) fn no_version_by_policy(model: &str) -> String {
    format!("at least one version must be available under the version policy of model '{model}'")
}
