//! What is wrong with a command line, in perf_analyzer's words where it has some.

use galatea_command_line::{BadValue, CommandLineError, ValueError};

use super::intervals::IntervalsError;

/// What is wrong with a command line.
#[derive(Debug, thiserror::Error)]
pub enum OptionError {
    #[error(transparent)]
    CommandLine(#[from] CommandLineError),
    /// A value that its option cannot have, and what it must be.
    #[error("Failed to parse {label}. {requirement}")]
    Unmet {
        /// All names of the option.
        label: String,
        /// A sentence.
        requirement: String,
    },
    /// A value that cannot be read.
    #[error("Failed to parse {option}. Invalid value provided: {value} (expected {expected})")]
    Invalid {
        /// The option as typed.
        option: String,
        value: String,
        /// What would be read.
        expected: String,
    },
    #[error("Failed to parse --request-intervals. {0}")]
    Intervals(#[from] IntervalsError),
    /// A rule that concerns several options, or whose text names its option.
    #[error("{0}")]
    Rule(String),
}

impl OptionError {
    /// A rule, in words of its own.
    pub fn rule(text: impl Into<String>) -> Self {
        Self::Rule(text.into())
    }

    /// Whether the words are no options of this command, which getopt itself reports.
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

/// The texts of the table's own checks are another program's.
pub fn in_own_words(error: OptionError) -> OptionError {
    match error {
        OptionError::CommandLine(CommandLineError::BadValue(BadValue {
            option,
            reason: ValueError::NotBool(value),
        })) => OptionError::Invalid { option, value, expected: "'true' or 'false'".to_owned() },
        other => other,
    }
}
