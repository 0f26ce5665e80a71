//! Errors of certificate and key files, with advice.

use std::{io, path::PathBuf};

/// The reason why the server cannot use TLS with these files.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "their texts say what they are")]
pub enum TlsError {
    #[error("failed to set up TLS: {0}")]
    SetUp(rustls::Error),
    #[error("failed to read '{file}': {error}")]
    Unreadable { file: PathBuf, error: io::Error },
    #[error("'{file}' is longer than {most} bytes: it is not a file of certificates or of a key")]
    TooLong { file: PathBuf, most: u64 },
    #[error(
        "'{file}' holds no certificate: it must be PEM, with lines '-----BEGIN CERTIFICATE-----'{hint}"
    )]
    NoCertificate { file: PathBuf, hint: &'static str },
    #[error(
        "'{file}' holds no private key: it must be PEM, with a line '-----BEGIN PRIVATE KEY-----' (or RSA, or EC){hint}"
    )]
    NoKey { file: PathBuf, hint: &'static str },
    #[error(
        "the key in '{file}' is encrypted, and the server has no password for it: write it without one, 'openssl \
         pkey -in ENCRYPTED -out PLAIN', to a file that only the server may read"
    )]
    EncryptedKey { file: PathBuf },
    #[error("'{file}' is not usable for TLS: {reason}")]
    Unusable { file: PathBuf, reason: String },
    #[error(
        "the key in '{key}' does not belong to the certificate in '{certificates}' ({subject}): name two files that \
         belong together"
    )]
    WrongKey { key: PathBuf, certificates: PathBuf, subject: Box<str> },
    #[error(
        "the certificate in '{certificates}' that the key belongs to ({subject}) is number {position} of the file: it must be \
         the first, then the one that signed it, and so on"
    )]
    WrongOrder { certificates: PathBuf, subject: Box<str>, position: usize },
    #[error(
        "the certificate in '{certificates}' ({subject}) expired on {date}: clients refuse it; renew it"
    )]
    Expired { certificates: PathBuf, subject: Box<str>, date: String },
}
