//! The errors of a command, and its exit code.

use std::io;

use galatea_client::AddressError;
use galatea_command_line::{BadValue, CommandLineError};
use galatea_types::Error;

use crate::{input::InputError, output::OutputFileError};

/// The exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded.
    Success = 0,
    /// The server refused, or could not be reached.
    Refused = 1,
    /// The command line is wrong, or does not fit the model.
    CommandLine = 2,
}

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("{0}")]
    CommandLine(#[from] CommandLineError),
    #[error("{0}")]
    Value(#[from] BadValue),
    #[error("{0}")]
    Words(String),
    #[error("cannot use the URL '{url}' (-u): {reason}")]
    Address { url: String, reason: AddressError },
    #[error(
        "cannot use the URL '{0}' (-u): with -i grpc an encrypted connection is grpcs://host:port"
    )]
    GrpcTls(String),
    #[error("{0}")]
    Input(#[from] InputError),
    #[error("{0}")]
    OutputFile(#[from] OutputFileError),
    #[error("{reason}{hint}")]
    Server { reason: Error, hint: String },
    #[error(
        "{url} has no repository index, so it cannot list its models; name one: galatea models MODEL"
    )]
    NoIndex { url: String },
    #[error("{url} has not answered within {seconds} s; --timeout gives it longer")]
    Late { url: String, seconds: f64 },
    #[error("cannot start: {0}")]
    Start(#[from] io::Error),
}

impl From<Error> for CommandError {
    fn from(reason: Error) -> Self {
        Self::Server { reason, hint: String::new() }
    }
}

impl CommandError {
    pub fn exit(&self) -> Exit {
        match self {
            Self::Server { .. } | Self::NoIndex { .. } | Self::Late { .. } | Self::Start(_) => {
                Exit::Refused
            }
            _ => Exit::CommandLine,
        }
    }
}
