//! The HTTP client of downloads, with the machine's certificates, proxy and time-outs.

use std::{fs, path::Path, sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD as BASE64};
use galatea_types::Result;
use ureq::{
    Agent, Proxy,
    tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem},
};

use crate::{error::RuntimeError, pip::PipSettings};

/// A client with the machine's certificates, proxy and time-outs.
pub(crate) fn agent(settings: &PipSettings) -> Result<Agent> {
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::Specific(Arc::new(certificates(settings)?)))
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .timeout_connect(Some(settings.timeout))
        .timeout_recv_response(Some(settings.timeout))
        .timeout_per_read(Some(settings.timeout.max(Duration::from_secs(5))))
        .user_agent(concat!("galatea/", env!("CARGO_PKG_VERSION")));
    // Without one of pip's own, the client takes the proxy from HTTPS_PROXY and its like.
    let config = match &settings.proxy {
        None => config,
        Some(proxy) => config.proxy(Some(Proxy::new(proxy).map_err(RuntimeError::Proxy)?)),
    };
    Ok(config.build().new_agent())
}

fn certificates(settings: &PipSettings) -> Result<Vec<Certificate<'static>>> {
    match &settings.certificates {
        Some(path) => read_bundle(path),
        // Also reads SSL_CERT_FILE and SSL_CERT_DIR. None at all is an error only when one is needed.
        None => Ok(rustls_native_certs::load_native_certs()
            .certs
            .iter()
            .map(|der| Certificate::from_der(der).to_owned())
            .collect()),
    }
}

fn read_bundle(path: &Path) -> Result<Vec<Certificate<'static>>> {
    let failed = |source| RuntimeError::ReadCertificates { path: path.to_path_buf(), source };
    let pem = fs::read(path).map_err(failed)?;
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(RuntimeError::NoCertificates(path.to_path_buf()).into());
    }
    Ok(certificates)
}

/// The address without user and password, for messages.
pub(crate) fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let host_end = rest.find('/').unwrap_or(rest.len());
    match rest.get(..host_end).and_then(|authority| authority.rfind('@')) {
        Some(at) => format!("{scheme}://{}", rest.get(at + 1..).unwrap_or_default()),
        None => url.to_owned(),
    }
}

/// `Basic` credentials of an address that carries some, and the address without them.
pub(crate) fn split_credentials(url: &str) -> (String, Option<String>) {
    let bare = without_credentials(url);
    let credentials = url.split_once("://").and_then(|(_, rest)| {
        let authority = rest.split('/').next()?;
        Some(format!("Basic {}", BASE64.encode(authority.rsplit_once('@')?.0)))
    });
    (bare, credentials)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_split_off() {
        assert_eq!(without_credentials("https://u:p@h/x@y"), "https://h/x@y");
        assert_eq!(split_credentials("https://h/x"), ("https://h/x".to_owned(), None));
        let (bare, credentials) = split_credentials("https://user:pass@h/x");
        assert_eq!(bare, "https://h/x");
        assert_eq!(credentials.as_deref(), Some("Basic dXNlcjpwYXNz"));
    }
}
