//! The errors of a command line, in perf_analyzer's words where it has some.

use galatea_command_line::{BadValue, CommandLineError, ValueError};

use super::intervals::IntervalsError;

/// The error of a command line.
#[derive(Debug, thiserror::Error)]
pub enum OptionError {
    #[error(transparent)]
    CommandLine(#[from] CommandLineError),
    /// The option does not allow this value. The requirement says which it allows.
    #[error("Failed to parse {label}. {requirement}")]
    Unmet {
        /// All names of the option.
        label: String,
        /// The requirement as a sentence.
        requirement: String,
    },
    /// The value cannot be read.
    #[error("Failed to parse {option}. Invalid value provided: {value} (expected {expected})")]
    Invalid {
        /// The option as typed.
        option: String,
        value: String,
        /// The form that can be read.
        expected: String,
    },
    #[error("Failed to parse --request-intervals. {0}")]
    Intervals(#[from] IntervalsError),
    /// A rule about several options, or one whose text names its option.
    #[error("{0}")]
    Rule(String),
}

impl OptionError {
    /// Makes an error from the text of a rule.
    pub fn rule(text: impl Into<String>) -> Self {
        Self::Rule(text.into())
    }

    /// Returns true if a word is not an option of this command. getopt reports such errors itself.
    pub fn is_syntax(&self) -> bool {
        use CommandLineError::{BadValue, Refused};
        match self {
            Self::CommandLine(error) => !matches!(error, BadValue(_) | Refused { .. }),
            _ => false,
        }
    }
}

impl From<BadValue> for OptionError {
    fn from(error: BadValue) -> Self {
        Self::CommandLine(error.into())
    }
}

/// Replaces the text of the table's own check with perf_analyzer's form.
pub fn in_own_words(error: OptionError) -> OptionError {
    match error {
        OptionError::CommandLine(CommandLineError::BadValue(BadValue {
            option,
            reason: ValueError::NotBool(value),
        })) => OptionError::Invalid { option, value, expected: "'true' or 'false'".to_owned() },
        other => other,
    }
}
