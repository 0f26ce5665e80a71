//! Why a model failed to load, in the words of whoever reads it.

use galatea_types::Error;

/// Why a model failed to load. An ensemble that depends on it reports that in words of its own.
#[derive(Clone, Debug)]
pub(super) enum LoadFailure {
    Exiting,
    /// Its folder or configuration could not be read.
    Unreadable(Error),
    /// No version is to be loaded.
    NoVersion,
    /// Why its versions failed.
    Versions(String),
    /// An ensemble that does not fit the models of its steps.
    Invalid(String),
}

impl LoadFailure {
    /// What the client who asked for the load reads.
    pub fn into_error(self, model: &str) -> Error {
        match self {
            Self::Exiting => Error::unavailable("Server exiting"),
            Self::Unreadable(error) => Error::internal(format!(
                "failed to load '{model}', failed to poll from model repository: {error}"
            )),
            Self::NoVersion => Error::internal(no_version(model)),
            Self::Versions(text) | Self::Invalid(text) => {
                Error::invalid_arg(format!("load failed for model '{model}': {text}\n"))
            }
        }
    }

    /// Why `ensemble`, which depends on `model`, cannot be loaded either. `None`: it was not to be
    /// loaded.
    pub fn for_dependent(failure: Option<&Self>, ensemble: &str, model: &str) -> String {
        let text = match failure {
            None | Some(Self::Exiting | Self::Unreadable(_)) => {
                return format!(
                    "ensemble {ensemble} contains models that are not available or ambiguous: {model}"
                );
            }
            Some(Self::Invalid(text)) => {
                return format!(
                    "ensemble '{ensemble}' depends on '{model}' which is not valid. Model '{model}' failed \
                     with error: {text}"
                );
            }
            Some(Self::NoVersion) => format!(
                "at least one version must be available under the version policy of model '{model}'"
            ),
            Some(Self::Versions(text)) => text.clone(),
        };
        format!(
            "ensemble '{ensemble}' depends on '{model}' which has no loaded version. Model '{model}' loading \
             failed with error: {text}"
        )
    }
}

/// The reason in the index for a model without any version.
pub(super) fn no_version(model: &str) -> String {
    format!("failed to load '{model}', no version is available")
}

/// What failed, by model.
pub(super) type Failures = std::collections::BTreeMap<String, LoadFailure>;
