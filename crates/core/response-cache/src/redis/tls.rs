//! Encrypted connections to a Redis server.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};

use super::settings::TlsSettings;

/// Largest file of certificates that is read, in bytes.
const MOST_BYTES: u64 = 4 << 20;

/// The TLS configuration of every connection.
#[derive(Clone, Debug)]
pub struct Tls {
    pub config: Arc<ClientConfig>,
    pub name: ServerName<'static>,
}

impl Tls {
    /// Reads the files of the settings.
    pub fn open(settings: &TlsSettings, host: &str) -> io::Result<Self> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots(settings)?);
        let config = match (is_given(&settings.cert), is_given(&settings.key)) {
            (false, false) => builder.with_no_client_auth(),
            _ => {
                let chain = certificates(&settings.cert)?;
                let text = read(&settings.key)?;
                let key = PrivateKeyDer::from_pem_slice(&text)
                    .map_err(|error| of_file(&settings.key, error))?;
                builder.with_client_auth_cert(chain, key).map_err(io::Error::other)?
            }
        };
        let name = if settings.sni.is_empty() { host } else { &settings.sni };
        let name = ServerName::try_from(name.to_owned()).map_err(|error| {
            io::Error::other(format!("'{name}' is not the name of a server: {error}"))
        })?;
        Ok(Self { config: Arc::new(config), name })
    }
}

fn is_given(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}

fn roots(settings: &TlsSettings) -> io::Result<RootCertStore> {
    let mut files: Vec<PathBuf> = Vec::new();
    if is_given(&settings.cacert) {
        files.push(settings.cacert.clone());
    }
    if is_given(&settings.cacert_dir) {
        let listed = fs::read_dir(&settings.cacert_dir)
            .map_err(|error| of_file(&settings.cacert_dir, error))?;
        files.extend(listed.flatten().map(|entry| entry.path()).filter(|path| path.is_file()));
    }
    let mut roots = RootCertStore::empty();
    if files.is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for file in &files {
        for certificate in certificates(file)? {
            roots.add(certificate).map_err(|error| of_file(file, error))?;
        }
    }
    match roots.is_empty() {
        true => Err(io::Error::other("no certificate authority is known: give one as cacert")),
        false => Ok(roots),
    }
}

fn certificates(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let text = read(file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| of_file(file, error))?;
    match found.is_empty() {
        true => Err(of_file(file, "there is no certificate (PEM) in it")),
        false => Ok(found),
    }
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    galatea_regular_files::read(file, MOST_BYTES).map_err(|error| of_file(file, error))
}

fn of_file(file: &Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("'{}': {error}", file.display()))
}
