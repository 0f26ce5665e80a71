//! The failures of loads, as clients, the log and dependent ensembles report them.

use std::{collections::BTreeMap, fmt};

use galatea_types::{Code, Error, Result};

use crate::model_id::ModelId;

pub(crate) type Failures = BTreeMap<ModelId, LoadFailure>;

#[derive(Clone, Debug)]
pub(crate) enum LoadFailure {
    Exiting,
    /// Its folder or configuration could not be read.
    Unreadable(Error),
    /// It has no version to load, for this reason.
    NoVersion(Error),
    /// Some of its versions failed, so none is loaded.
    Versions(VersionFailures),
    /// It is an ensemble that does not fit the models of its steps.
    Invalid(Error),
}

impl LoadFailure {
    /// Returns the error for the client that requested the load.
    pub fn into_error(self, model: &ModelId) -> Error {
        let failed = |reason: &dyn fmt::Display| {
            Error::invalid_arg(format!("load failed for model '{model}': {reason}\n"))
        };
        match self {
            Self::Exiting => Error::unavailable("Server exiting"),
            Self::Unreadable(error) => Error::internal(format!(
                "failed to load '{}', failed to poll from model repository: {error}",
                model.name
            ))
            .with_source(error),
            Self::NoVersion(error) => failed(&error).with_source(error),
            Self::Versions(versions) => match versions.0.first() {
                Some(first) => failed(&versions).with_source(first.error.clone()),
                None => failed(&versions),
            },
            Self::Invalid(error) => failed(&error).with_source(error),
        }
    }

    /// Returns why an ensemble that depends on the model cannot be loaded, after the names of both. Returns `None` if the model
    /// counts as missing.
    pub fn for_dependent(&self, model: &ModelId) -> Option<String> {
        let reason = match self {
            Self::Exiting | Self::Unreadable(_) => return None,
            Self::Invalid(error) => {
                return Some(format!(
                    "which is not valid. Model '{model}' failed with error: {}",
                    error.message()
                ));
            }
            Self::NoVersion(_) => no_version(model).message().to_owned(),
            Self::Versions(versions) => versions.to_string(),
        };
        Some(format!(
            "which has no loaded version. Model '{model}' loading failed with error: {reason}"
        ))
    }
}

/// Returns the error for the client that requested the load of all models with one name. Failures of models that could be
/// read come first.
pub(crate) fn joined(failures: impl Iterator<Item = (ModelId, LoadFailure)>) -> Result<()> {
    let is_load = |(_, failure): &(_, LoadFailure)| {
        !matches!(failure, LoadFailure::Unreadable(_) | LoadFailure::Exiting)
    };
    let (loads, others): (Vec<_>, Vec<_>) = failures.partition(is_load);
    let several = loads.len() > 1;
    let mut errors = loads.into_iter().chain(others).map(|(id, failure)| failure.into_error(&id));
    let Some(first) = errors.next() else { return Ok(()) };
    if !several {
        return Err(first);
    }
    let loads = errors.take_while(|error| error.code() == Code::InvalidArg);
    let text = loads.fold(first.message().to_owned(), |text, error| text + error.message());
    Err(Error::invalid_arg(text).with_source(first))
}

/// The versions that failed, with the reasons. Never empty.
#[derive(Clone, Debug)]
pub(crate) struct VersionFailures(pub Vec<VersionFailure>);

#[derive(Clone, Debug)]
pub(crate) struct VersionFailure {
    pub version: i64,
    /// True if it is as ready as before: only a change of its instances failed.
    pub is_ready: bool,
    pub error: Error,
}

impl VersionFailure {
    /// Returns the reason for the index: code and text.
    pub fn reason(&self) -> String {
        format!("{}: {}", self.error.code().as_str(), self.error)
    }

    /// Returns the reason for the log, with its causes, such as the traceback of a Python model.
    pub fn reason_with_causes(&self) -> String {
        format!("{}: {}", self.error.code().as_str(), self.error.with_causes())
    }
}

/// Writes the failures one after the other.
impl fmt::Display for VersionFailures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.0 {
            let (version, reason) = (failure.version, failure.reason());
            let state = if failure.is_ready { "READY" } else { "UNAVAILABLE" };
            write!(f, "version {version} is at {state} state: {reason};")?;
        }
        Ok(())
    }
}

/// Returns the error of a model without any version.
pub(crate) fn no_version(model: &ModelId) -> Error {
    Error::invalid_arg(format!(
        "at least one version must be available under the version policy of model '{model}'"
    ))
}
