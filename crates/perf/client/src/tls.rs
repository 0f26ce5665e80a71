//! The TLS settings of a target.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use galatea_types::Error;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        VerifierBuilderError, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};

use crate::{Protocol, Tls};

/// The reason why the TLS settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("failed to set up TLS: {0}")]
    SetUp(#[source] rustls::Error),
    #[error("the trusted certificates are not usable: {0}")]
    Roots(#[source] VerifierBuilderError),
    #[error(
        "the system has no trusted certificates; name a file with the server's authority, or do not verify it"
    )]
    NoRoots,
    #[error("a client certificate needs its private key")]
    NoKey,
    #[error("a private key needs its client certificate")]
    NoCertificate,
    #[error("failed to read '{file}': {error}")]
    Unreadable {
        file: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("'{file}' is not usable for TLS: {reason}")]
    Unusable { file: PathBuf, reason: String },
    #[error("the key in '{key}' is not the one of the certificate in '{chain}'")]
    WrongKey { chain: PathBuf, key: PathBuf },
    #[error("the certificate in '{chain}' or its key in '{key}' is not usable: {error}")]
    Identity {
        chain: PathBuf,
        key: PathBuf,
        #[source]
        error: rustls::Error,
    },
}

impl From<TlsError> for Error {
    fn from(error: TlsError) -> Self {
        let text = error.to_string();
        let made = match &error {
            TlsError::SetUp(_) => Self::internal(text),
            _ => Self::invalid_arg(text),
        };
        made.with_source(error)
    }
}

type Result<T, E = TlsError> = std::result::Result<T, E>;

/// Returns the settings of every handshake; reads the files once.
pub(crate) fn client_config(tls: &Tls, protocol: Protocol) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Verifier {
        chain: match tls.skips_peer {
            true => None,
            false => Some(chain_verifier(tls, &provider)?),
        },
        verify_host: !tls.skips_host,
        provider: Arc::clone(&provider),
    });
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::SetUp)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match identity(tls)? {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            builder.with_client_auth_cert(chain, key).map_err(|error| bad_identity(tls, error))?
        }
    };
    config.alpn_protocols = vec![match protocol {
        Protocol::Http => b"http/1.1".to_vec(),
        Protocol::Grpc => b"h2".to_vec(),
    }];
    Ok(Arc::new(config))
}

fn chain_verifier(tls: &Tls, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>> {
    let roots = Arc::new(roots(tls.roots.as_deref())?);
    WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider))
        .build()
        .map_err(TlsError::Roots)
}

fn roots(file: Option<&Path>) -> Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    let Some(file) = file else {
        let found = rustls_native_certs::load_native_certs();
        store.add_parsable_certificates(found.certs);
        if store.is_empty() {
            return Err(TlsError::NoRoots);
        }
        return Ok(store);
    };
    for certificate in pem_certificates(file)? {
        store.add(certificate).map_err(|error| unusable(file, &error))?;
    }
    Ok(store)
}

/// Returns certificate chain and key of the client; `None`: it has none.
fn identity(tls: &Tls) -> Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>> {
    let (chain, key) = match (&tls.certificate_chain, &tls.private_key) {
        (Some(chain), Some(key)) => (chain, key),
        (None, None) => return Ok(None),
        (Some(_), None) => return Err(TlsError::NoKey),
        (None, Some(_)) => return Err(TlsError::NoCertificate),
    };
    let chain = match tls.certificate_is_der {
        true => vec![CertificateDer::from(read(chain)?)],
        false => pem_certificates(chain)?,
    };
    let key = match tls.private_key_is_der {
        true => PrivateKeyDer::try_from(read(key)?).map_err(|error| unusable(key, &error))?,
        false => {
            PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| unusable(key, &error))?
        }
    };
    Ok(Some((chain, key)))
}

fn pem_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let text = read(file)?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(file, &error))?;
    match certificates.is_empty() {
        true => Err(unusable(file, &"it holds no PEM certificate")),
        false => Ok(certificates),
    }
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).map_err(|error| TlsError::Unreadable { file: file.to_owned(), error })
}

fn bad_identity(tls: &Tls, error: rustls::Error) -> TlsError {
    let name = |file: &Option<PathBuf>| file.clone().unwrap_or_default();
    let (chain, key) = (name(&tls.certificate_chain), name(&tls.private_key));
    match error {
        rustls::Error::InconsistentKeys(_) => TlsError::WrongKey { chain, key },
        error => TlsError::Identity { chain, key, error },
    }
}

fn unusable(file: &Path, cause: &dyn std::fmt::Display) -> TlsError {
    TlsError::Unusable { file: file.to_owned(), reason: cause.to_string() }
}

/// Checks the server's certificate; chain and name can each be left unchecked.
#[derive(Debug)]
struct Verifier {
    /// Check of the chain; `None`: any authority is accepted.
    chain: Option<Arc<WebPkiServerVerifier>>,
    verify_host: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(chain) = &self.chain {
            // The chain is checked before the name, so a wrong name is always the last error.
            match chain.verify_server_cert(certificate, intermediates, name, ocsp, now) {
                Err(error) if !self.verify_host && is_wrong_name(&error) => {}
                result => return result,
            }
        } else if self.verify_host {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn is_wrong_name(error: &rustls::Error) -> bool {
    matches!(
        error,
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        )
    )
}
