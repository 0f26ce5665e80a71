//! Why certificates and keys cannot be used, and what to do about it.

use std::{io, path::PathBuf};

/// Why TLS cannot be spoken with these files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The library cannot be used.
    #[error("failed to set up TLS: {0}")]
    SetUp(rustls::Error),
    /// A file cannot be read.
    #[error("failed to read '{file}': {error}")]
    Unreadable {
        /// Which one.
        file: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// A file is longer than any of its kind.
    #[error("'{file}' is longer than {most} bytes: it is no file of certificates or of a key")]
    TooLong {
        /// Which one.
        file: PathBuf,
        /// How long it may be.
        most: u64,
    },
    /// There is no certificate in it.
    #[error(
        "'{file}' holds no certificate: it must be PEM, with lines '-----BEGIN CERTIFICATE-----'{hint}"
    )]
    NoCertificate {
        /// Which one.
        file: PathBuf,
        /// What it may be instead.
        hint: &'static str,
    },
    /// There is no key in it.
    #[error(
        "'{file}' holds no private key: it must be PEM, with a line '-----BEGIN PRIVATE KEY-----' (or RSA, or EC){hint}"
    )]
    NoKey {
        /// Which one.
        file: PathBuf,
        /// What it may be instead.
        hint: &'static str,
    },
    /// The key needs a password.
    #[error(
        "the key in '{file}' is encrypted, and nobody is there to type its password: write it without one, \
         'openssl pkey -in ENCRYPTED -out PLAIN', to a file that only the server may read"
    )]
    EncryptedKey {
        /// Where it is.
        file: PathBuf,
    },
    /// What a file holds cannot be used.
    #[error("'{file}' is not usable for TLS: {reason}")]
    Unusable {
        /// Which one.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// Key and certificate do not belong together.
    #[error(
        "the key in '{key}' is not that of the certificate in '{certificates}' ({subject}): name the files of one pair"
    )]
    WrongKey {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificates: PathBuf,
        /// Of whom the certificate is.
        subject: Box<str>,
    },
    /// The server's certificate is not the first.
    #[error(
        "the certificate in '{certificates}' that the key belongs to ({subject}) is number {position} of the file: it must be \
         the first, then the one that signed it, and so on"
    )]
    WrongOrder {
        /// The file.
        certificates: PathBuf,
        /// Of whom the certificate is.
        subject: Box<str>,
        /// Where it is.
        position: usize,
    },
    /// The server's certificate is past its end.
    #[error(
        "the certificate in '{certificates}' ({subject}) expired on {date}: clients refuse it; renew it"
    )]
    Expired {
        /// The file.
        certificates: PathBuf,
        /// Of whom the certificate is.
        subject: Box<str>,
        /// When it did.
        date: String,
    },
}
