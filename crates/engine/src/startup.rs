//! The result of loading the models that are loaded when the server starts.

use std::fmt;

use galatea_types::{Code, Error};

/// Why not every model that is loaded at start is ready.
#[derive(Clone, Debug)]
pub enum StartupError {
    /// Loading could not be carried out at all: a repository cannot be read, for example.
    Aborted(Error),
    /// Some or all models failed; the others are ready.
    Models(FailedModels),
}

/// The models that failed to load at start, out of all that were to be loaded.
#[derive(Clone, Debug)]
pub struct FailedModels {
    /// Number of models that are ready.
    pub ready_count: usize,
    /// Never empty. Sorted by name, with ensembles that fail because of another model last: the first entry is
    /// a cause, not a consequence.
    pub failures: Vec<ModelFailure>,
}

/// One model that failed to load.
#[derive(Clone, Debug)]
pub struct ModelFailure {
    /// The model's name.
    pub model: String,
    /// The reason, as a client reads it who asks for this model to be loaded. May have several lines.
    pub error: Error,
}

impl StartupError {
    /// The code that stands before the text in the program's last line.
    pub fn code(&self) -> Code {
        match self {
            Self::Aborted(error) => error.code(),
            Self::Models(_) => Code::Internal,
        }
    }
}

impl fmt::Display for StartupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aborted(error) => error.fmt(f),
            Self::Models(models) => models.fmt(f),
        }
    }
}

impl std::error::Error for StartupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Aborted(error) => Some(error),
            Self::Models(models) => models.failures.first().map(|first| &first.error as _),
        }
    }
}

/// How many models failed, which, and the first line of the first reason.
impl fmt::Display for FailedModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed = self.failures.len();
        let names: Vec<&str> = self.failures.iter().map(|failure| failure.model.as_str()).collect();
        match self.ready_count {
            0 => write!(f, "failed to load all models")?,
            ready => write!(f, "failed to load {failed} of {} models", failed + ready)?,
        }
        write!(f, " ({})", names.join(", "))?;
        match self.failures.first() {
            Some(first) => {
                let reason = first.error.message().lines().next().unwrap_or_default();
                write!(f, ": {}", reason.trim_end().trim_end_matches(';'))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(ready_count: usize, names: &[&str]) -> String {
        let failure = |name: &&str| ModelFailure {
            model: (*name).to_owned(),
            error: Error::internal(format!("{name} is broken\nin two lines\n")),
        };
        let failures = names.iter().map(failure).collect();
        StartupError::Models(FailedModels { ready_count, failures }).to_string()
    }

    #[test]
    fn all_models_failed_only_if_none_is_ready() {
        assert_eq!(failed(0, &["a", "b"]), "failed to load all models (a, b): a is broken");
        assert_eq!(failed(3, &["a"]), "failed to load 1 of 4 models (a): a is broken");
    }
}
