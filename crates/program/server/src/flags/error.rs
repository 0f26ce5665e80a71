//! The errors of the command line of `serve`. The texts are getopt's and Triton's: scripts match on them.

use galatea_command_line::{BadValue, CommandLineError};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// One of the words is wrong.
    #[error(transparent)]
    CommandLine(#[from] CommandLineError),
    /// A word that is not an option.
    #[error("Unexpected argument: {given} ({advice})", given = .0, advice = advice(.0))]
    Unexpected(String),
    /// A path, although the repositories are named by option.
    #[error(
        "Unexpected argument: {0} (options begin with --; to serve it as well: --model-repository={0})"
    )]
    PathBesideRepository(String),
    /// There is nothing to serve.
    #[error("creating server: Invalid argument - --model-repository must be specified")]
    NoRepository,
    /// A rule about several flags.
    #[error("{0}")]
    Rule(String),
}

impl FlagError {
    /// Makes a rule with this text.
    pub fn rule(text: impl Into<String>) -> Self {
        Self::Rule(text.into())
    }
}

/// The result of storing an option's value.
pub(super) type StoreResult = Result<(), FlagError>;

impl From<BadValue> for FlagError {
    fn from(error: BadValue) -> Self {
        Self::CommandLine(error.into())
    }
}

fn advice(word: &str) -> String {
    match word.starts_with('-') {
        true => "a word behind -- is not an option".to_owned(),
        false if super::names_an_option(word) => format!("options begin with --: --{word}"),
        false => "options begin with --".to_owned(),
    }
}
