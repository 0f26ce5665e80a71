//! The client that all remote repositories share.

use galatea_types::{Environment, Stop};
use galatea_web_client::{ClientSettings, Roots, WebClient, read_certificates};

use crate::error::{FailureKind, RemoteError};

/// Number of threads. They also write files, so there are several.
const THREADS: usize = 4;

/// The variable with a file of certificates, which AWS tools read.
const AWS_BUNDLE: &str = "AWS_CA_BUNDLE";

/// Starts a client for repositories. It trusts the certificates in `AWS_CA_BUNDLE` too. A request to `stop` ends all
/// fetches.
///
/// # Errors
/// When no threads can be started, or the certificates that the environment names cannot be read.
pub fn client(environment: &Environment, stop: Stop) -> Result<WebClient, RemoteError> {
    let mut settings = ClientSettings::of(environment);
    if let Some(bundle) = environment.path(AWS_BUNDLE) {
        let found = read_certificates(&bundle).map_err(|error| {
            let text = format!("no certificates in '{}' ({AWS_BUNDLE}): {error}", bundle.display());
            RemoteError::new(FailureKind::Local, text)
        });
        settings.roots = Roots::MachineAnd(found?);
    }
    Ok(WebClient::new(&settings, THREADS, stop)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_certificate_bundle_is_named() {
        let environment = Environment::of([(AWS_BUNDLE, "/nonexistent/bundle.pem")]);
        let text = client(&environment, Stop::default()).expect_err("refused").to_string();
        assert!(text.starts_with("no certificates in '/nonexistent/bundle.pem' (AWS_CA_BUNDLE)"));
        assert!(client(&Environment::default(), Stop::default()).is_ok());
    }
}
