//! The authorities whose clients are admitted.

use std::path::Path;

use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::{TlsError, files};

/// Reads the authorities from a file with one certificate or more.
pub fn read(file: &Path) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(file)? {
        store.add(certificate).map_err(|error| unusable(file, &error))?;
    }
    Ok(store)
}

/// Returns all certificates of a file; at least one.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = files::read(file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| unusable(file, &error))?;
    match found.is_empty() {
        false => Ok(found),
        true => Err(TlsError::NoCertificate { file: file.to_owned(), hint: hint(&text) }),
    }
}

/// Returns a hint about a file that is not a PEM certificate.
fn hint(text: &[u8]) -> &'static str {
    match text {
        [] => "; the file is empty",
        // A sequence with a length of two bytes: every DER certificate begins like this.
        [0x30, 0x82, ..] => {
            "; this one looks like DER, convert it to PEM with 'openssl x509 -inform DER -in FILE'"
        }
        _ if contains(text, b"PRIVATE KEY-----") => "; this is a key, are the two files swapped?",
        _ => "",
    }
}

pub fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

pub fn unusable(file: &Path, cause: &dyn std::fmt::Display) -> TlsError {
    TlsError::Unusable { file: file.to_owned(), reason: cause.to_string() }
}
