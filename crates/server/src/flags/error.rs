//! What is wrong with the command line of `serve`. The texts are getopt's and Triton's: scripts match on them.

use galatea_command_line::{BadValue, CommandLineError};

/// What is wrong with the command line of `serve`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// One of its words.
    #[error(transparent)]
    CommandLine(#[from] CommandLineError),
    /// A word that is no option.
    #[error("Unexpected argument: {given} ({advice})", given = .0, advice = advice(.0))]
    Unexpected(String),
    /// A rule that concerns several flags.
    #[error("{0}")]
    Rule(String),
}

impl From<BadValue> for FlagError {
    fn from(error: BadValue) -> Self {
        Self::CommandLine(error.into())
    }
}

fn advice(word: &str) -> &'static str {
    match word.starts_with('-') {
        true => "what stands behind -- is no option",
        false => "options begin with --",
    }
}
