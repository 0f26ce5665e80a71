//! Fetching the keys of an issuer over HTTP, with bounds on time and size.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use galatea_access::MAX_KEY_SET;
use ureq::{
    Agent,
    tls::{Certificate, RootCerts, TlsConfig, TlsProvider},
};

/// For the whole of it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// An address that sends elsewhere may do so a few times.
const MAX_REDIRECTS: u32 = 3;

/// What the address answers. Encrypted stays encrypted, whatever it redirects to.
pub(super) fn fetch(url: &str) -> Result<Vec<u8>> {
    let mut response = agent(url).get(url).header("accept", "application/json").call()?;
    let status = response.status();
    if !status.is_success() {
        bail!("it answers {status}");
    }
    let body = response.body_mut().with_config().limit(MAX_KEY_SET as u64);
    body.read_to_vec().context("its answer could not be read")
}

/// Made for each fetch: they are minutes apart, and certificates of the machine may have changed.
fn agent(url: &str) -> Agent {
    let is_encrypted = url.starts_with("https://");
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(TIMEOUT))
        .https_only(is_encrypted)
        .max_redirects(if is_encrypted { MAX_REDIRECTS } else { 0 })
        .user_agent(concat!("galatea/", env!("CARGO_PKG_VERSION")));
    if is_encrypted {
        let roots = rustls_native_certs::load_native_certs().certs;
        let roots = roots.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(RootCerts::Specific(Arc::new(roots)))
            .build();
        config = config.tls_config(tls);
    } else {
        // This machine itself: no proxy reaches it.
        config = config.proxy(None);
    }
    config.build().new_agent()
}
