//! The TLS settings of a target.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use galatea_types::{Error, Result};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};

use crate::{Protocol, Tls};

/// What every connection's handshake uses; files are read here, once.
pub(crate) fn client_config(tls: &Tls, protocol: Protocol) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Verifier {
        chain: match tls.verify_peer {
            true => Some(chain_verifier(tls, &provider)?),
            false => None,
        },
        verify_host: tls.verify_host,
        provider: Arc::clone(&provider),
    });
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::internal(format!("failed to set up TLS: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match identity(tls)? {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            builder.with_client_auth_cert(chain, key).map_err(|error| bad_identity(tls, &error))?
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
    WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider)).build().map_err(
        |error| Error::invalid_arg(format!("the trusted certificates are not usable: {error}")),
    )
}

fn roots(file: Option<&Path>) -> Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    let Some(file) = file else {
        let found = rustls_native_certs::load_native_certs();
        store.add_parsable_certificates(found.certs);
        if store.is_empty() {
            return Err(Error::invalid_arg(
                "the system has no trusted certificates; name a file with the server's authority, or do \
                 not verify it",
            ));
        }
        return Ok(store);
    };
    for certificate in pem_certificates(file)? {
        store.add(certificate).map_err(|error| unusable(file, &error))?;
    }
    Ok(store)
}

/// Certificate chain and key of the client; `None`: it has none.
fn identity(tls: &Tls) -> Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>> {
    let (chain, key) = match (&tls.certificate_chain, &tls.private_key) {
        (Some(chain), Some(key)) => (chain, key),
        (None, None) => return Ok(None),
        (Some(_), None) => {
            return Err(Error::invalid_arg("a client certificate needs its private key"));
        }
        (None, Some(_)) => {
            return Err(Error::invalid_arg("a private key needs its client certificate"));
        }
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
    fs::read(file).map_err(|error| {
        Error::invalid_arg(format!("failed to read '{}': {error}", file.display()))
    })
}

fn bad_identity(tls: &Tls, cause: &rustls::Error) -> Error {
    let name = |file: &Option<PathBuf>| {
        file.as_deref().map(|file| file.display().to_string()).unwrap_or_default()
    };
    let (chain, key) = (name(&tls.certificate_chain), name(&tls.private_key));
    Error::invalid_arg(match cause {
        rustls::Error::InconsistentKeys(_) => {
            format!("the key in '{key}' is not the one of the certificate in '{chain}'")
        }
        _ => format!("the certificate in '{chain}' or its key in '{key}' is not usable: {cause}"),
    })
}

fn unusable(file: &Path, cause: &dyn std::fmt::Display) -> Error {
    Error::invalid_arg(format!("'{}' is not usable for TLS: {cause}", file.display()))
}

/// Checks of the server's certificate, of which either may be switched off.
#[derive(Debug)]
struct Verifier {
    /// `None`: any authority will do.
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
            // The chain is checked before the name, so a wrong name is the last thing that can be found.
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
