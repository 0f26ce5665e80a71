//! The result of loading the models that are loaded when the server starts.

use std::fmt;

use galatea_types::{Code, Error};

/// The reason why not every model that is loaded at start is ready.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StartupError {
    /// Nothing could be loaded, for example because a repository cannot be read.
    #[error("{0}")]
    Aborted(#[source] Error),
    /// Some or all models failed; the others are ready.
    #[error(transparent)]
    Models(FailedModels),
}

/// The models that failed to load at start, and the number of those that did not.
#[derive(Clone, Debug)]
pub struct FailedModels {
    /// Number of models that are ready.
    pub ready_count: usize,
    /// Never empty. Sorted by name, with ensembles that fail because of another model last: the first entry is a cause, not a
    /// consequence.
    pub failures: Vec<ModelFailure>,
}

/// One model that failed to load.
#[derive(Clone, Debug)]
pub struct ModelFailure {
    /// The model's name.
    pub model: String,
    /// The reason, as a client reads it that requests a load of this model. May have several lines.
    pub error: Error,
}

impl StartupError {
    /// Returns the code before the text in the program's last line.
    pub fn code(&self) -> Code {
        match self {
            Self::Aborted(error) => error.code(),
            Self::Models(_) => Code::Internal,
        }
    }
}

impl std::error::Error for FailedModels {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.failures.first().map(|first| &first.error as _)
    }
}

/// Writes the number of failed models, their names, and the first line of the first reason.
impl fmt::Display for FailedModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed = self.failures.len();
        let names: Vec<&str> = self.failures.iter().map(|failure| failure.model.as_str()).collect();
        match self.ready_count {
            0 => write!(f, "failed to load all models")?,
            ready => write!(f, "failed to load {failed} of {} models", failed + ready)?,
        }
        write!(f, " ({})", names.join(", "))?;
        let Some(first) = self.failures.first() else { return Ok(()) };
        let message = first.error.message();
        let reason = message.lines().next().unwrap_or_default();
        let reason = reason.trim_end().trim_end_matches("; its last lines:");
        write!(f, ": {}", reason.trim_end_matches([';', ':']))?;
        frame_in(message).map_or(Ok(()), |frame| write!(f, " ({frame})"))
    }
}

/// Returns where an error of Python code was raised, such as `m/1/model.py:12`.
fn frame_in(message: &str) -> Option<String> {
    let (_, frames) = message.split_once("\nAt:\n")?;
    let (file, rest) = frames.lines().next()?.trim_start().rsplit_once('(')?;
    let (line, _) = rest.split_once(')')?;
    line.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("{file}:{line}"))
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
    fn the_line_ends_with_the_reason() {
        let error = "pip failed (exit status: 1): ERROR: none; its last lines:\nCollecting\n";
        let failures = vec![ModelFailure { model: "m".to_owned(), error: Error::internal(error) }];
        let text = StartupError::Models(FailedModels { ready_count: 0, failures }).to_string();
        assert!(text.ends_with("pip failed (exit status: 1): ERROR: none"), "{text}");
    }

    #[test]
    fn the_line_of_a_python_error_is_named() {
        let at =
            "ValueError: bad weights\n\nAt:\n  m/1/model (2).py(3): initialize\n  m/1/a.py(9): b\n";
        assert_eq!(frame_in(at).as_deref(), Some("m/1/model (2).py:3"));
        for other in ["", "a\nAt:\n", "a\nAt:\nb", "a\nAt:\n b(c): d"] {
            assert_eq!(frame_in(other), None, "{other}");
        }
    }

    #[test]
    fn all_models_failed_only_if_none_is_ready() {
        assert_eq!(failed(0, &["a", "b"]), "failed to load all models (a, b): a is broken");
        assert_eq!(failed(3, &["a"]), "failed to load 1 of 4 models (a): a is broken");
    }
}
