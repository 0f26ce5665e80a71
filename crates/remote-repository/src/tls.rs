//! Whom encrypted connections trust: the system's certificates, and those that the environment names.

use std::{path::Path, sync::Arc};

use galatea_runtimes::Environment;
use rustls::{ClientConfig, RootCertStore, crypto::ring};

use crate::error::{FailureKind, RemoteError};

/// The variable with a file of certificates that tools for AWS read.
const AWS_BUNDLE: &str = "AWS_CA_BUNDLE";

/// `SSL_CERT_FILE` and `SSL_CERT_DIR` take the place of the system's certificates; `AWS_CA_BUNDLE` adds some.
pub fn config(environment: &Environment) -> Result<ClientConfig, RemoteError> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        log::debug!("a certificate of the system cannot be read: {error}");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if let Some(bundle) = environment.path(AWS_BUNDLE) {
        add_bundle(&mut roots, &bundle)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| RemoteError::new(FailureKind::Local, format!("TLS: {error}")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn add_bundle(roots: &mut RootCertStore, bundle: &Path) -> Result<(), RemoteError> {
    let found = rustls_native_certs::load_certs_from_paths(Some(bundle), None);
    if found.certs.is_empty() {
        let reason = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        let text = format!("no certificates in '{}' ({AWS_BUNDLE}){reason}", bundle.display());
        return Err(RemoteError::new(FailureKind::Local, text));
    }
    roots.add_parsable_certificates(found.certs);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_that_is_not_there_is_named() {
        let environment = Environment::of([(AWS_BUNDLE, "/nonexistent/bundle.pem")]);
        let text = config(&environment).expect_err("refused").to_string();
        assert!(text.starts_with("no certificates in '/nonexistent/bundle.pem' (AWS_CA_BUNDLE)"));
        assert!(config(&Environment::default()).is_ok());
    }
}
