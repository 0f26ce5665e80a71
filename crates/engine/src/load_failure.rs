use galatea_types::{Error, Result};

/// Why a model did not load. Whoever depends on it is told in words of its own.
#[derive(Clone, Debug)]
pub(crate) enum LoadFailure {
    Exiting,
    /// Its folder or configuration could not be read.
    Unreadable(Error),
    /// No version is to be served.
    NoVersion,
    /// What became of its versions.
    Versions(String),
    /// An ensemble that does not fit what it depends on.
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

    /// Why `ensemble`, which depends on `model`, cannot be loaded either. `None`: nobody tried to
    /// load it.
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

/// The reason a model without any version is listed with.
pub(crate) fn no_version(model: &str) -> String {
    format!("failed to load '{model}', no version is available")
}

/// What became of models that were to be loaded.
pub(crate) type Outcome = Result<(), LoadFailure>;
