//! The authorities that encrypted connections trust.

use std::{io, path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::failure::{HttpFailure, Problem};

/// Longest file of authorities that is read, in bytes. A bundle of all public ones has some 300 KB.
const LONGEST_BUNDLE: u64 = 16 << 20;

/// The authorities whose certificates are trusted.
#[derive(Clone, Debug, Default)]
pub enum Roots {
    /// Authorities of this machine, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name instead.
    #[default]
    Machine,
    /// Authorities of this machine, and these.
    MachineAnd(Vec<CertificateDer<'static>>),
    /// Only these.
    Only(Vec<CertificateDer<'static>>),
}

/// Reads a file of certificates.
///
/// # Errors
/// When it cannot be read or contains none.
pub fn read_certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let pem = galatea_regular_files::read(path, LONGEST_BUNDLE)?;
    let certificates: Vec<_> =
        CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    match certificates.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, "the file holds none")),
        false => Ok(certificates),
    }
}

pub(crate) fn tls(trusted: &Roots) -> Result<ClientConfig, HttpFailure> {
    let mut roots = RootCertStore::empty();
    if matches!(trusted, Roots::Machine | Roots::MachineAnd(_)) {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            log::debug!("a certificate of the system cannot be read: {error}");
        }
        roots.add_parsable_certificates(found.certs);
    }
    if let Roots::MachineAnd(more) | Roots::Only(more) = trusted {
        roots.add_parsable_certificates(more.iter().cloned());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpFailure::new(Problem::Local, format!("TLS: {error}")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
