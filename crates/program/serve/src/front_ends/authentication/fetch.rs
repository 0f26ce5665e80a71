//! Fetches the keys of an issuer over HTTP, within bounds of time and size.

use std::time::Duration;

use anyhow::{Result, bail};
use galatea_access::MAX_KEY_SET;
use galatea_types::{Environment, Stop};
use galatea_web_client::{ClientSettings, Get, WebClient, checked_uri};
use http::{HeaderValue, header::ACCEPT};

/// Longest time of the whole fetch.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the response of the address. Each fetch makes a new client: they are minutes apart, and the machine's certificates
/// may have changed.
pub(super) fn fetch(url: &str, environment: &Environment) -> Result<Vec<u8>> {
    let client = WebClient::new(&ClientSettings::of(environment), 1, Stop::default())?;
    let mut asked = Get::new(checked_uri(url)?, MAX_KEY_SET as u64);
    asked.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let response = client.fetch(asked, TIMEOUT, &mut || {})?;
    if !response.status().is_success() {
        bail!("it answers {}", response.status());
    }
    Ok(response.into_body().to_vec())
}
