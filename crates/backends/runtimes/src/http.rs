//! Access to package indexes, with the settings of pip.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD as BASE64};
use bytes::Bytes;
use galatea_types::{Environment, Error, Result, Stop};
use galatea_web_client::{
    Answer, ClientSettings, Get, HttpFailure, HttpVersion, Problem, Proxies, Roots, TimeLimits,
    WebClient, read_certificates,
};
use http::{HeaderValue, Response, header::ACCEPT};

use crate::{index, pip::PipSettings};

/// Longest page of an index that is read.
const PAGE_LIMIT: u64 = 64 << 20;

/// Longest time for one page.
const PAGE_TIME: Duration = Duration::from_secs(600);

/// A client with pip's settings for certificates, proxy and time-outs.
pub(crate) struct IndexClient {
    pub client: WebClient,
    proxies: Proxies,
    /// True if pip's settings name the proxy.
    has_own_proxy: bool,
}

impl IndexClient {
    pub fn new(settings: &PipSettings, environment: &Environment, stop: &Stop) -> Result<Self> {
        let proxies = match &settings.proxy {
            None => Proxies::for_all(environment),
            Some(proxy) => Proxies::only(proxy).ok_or_else(|| {
                let text = "the proxy in pip's settings is not a valid address of a proxy";
                Error::invalid_arg(text)
            })?,
        };
        let roots = settings.certificates.as_ref().map(|path| {
            read_certificates(path).map(Roots::Only).map_err(|reason| {
                let path = path.display();
                Error::unavailable(format!("cannot read the certificates in '{path}': {reason}"))
            })
        });
        let (connect, head) = (settings.timeout, settings.timeout);
        let limits = TimeLimits { connect, head, body: head.max(Duration::from_secs(5)) };
        let roots = roots.transpose()?.unwrap_or_default();
        let client =
            ClientSettings { proxies: proxies.clone(), roots, limits, version: HttpVersion::Http1 };
        let client = WebClient::new(&client, 1, stop.clone()).map_err(|failure| {
            Error::unavailable(format!("cannot reach package indexes: {failure}"))
        })?;
        Ok(Self { client, proxies, has_own_proxy: settings.proxy.is_some() })
    }

    /// Fetches the page of a project, or returns the reason against it. `waits` is called each second until it is there.
    pub fn page(&self, url: &str, waits: &mut dyn FnMut()) -> Result<Response<Bytes>, String> {
        let shown = without_credentials(url);
        let asked = asked(url, PAGE_LIMIT).map(|mut asked| {
            asked.headers.insert(ACCEPT, HeaderValue::from_static(index::ACCEPT));
            asked
        });
        let fetched = asked.and_then(|asked| self.client.fetch(asked, PAGE_TIME, waits));
        let page = fetched.map_err(|failure| match failure.problem() {
            Problem::TooLong => format!("cannot read '{shown}': {failure}"),
            _ => format!("cannot reach '{shown}'{}: {failure}", self.through(&shown)),
        })?;
        match page.status().as_u16() {
            200 => Ok(page),
            status => Err(format!("'{shown}' answers {status}")),
        }
    }

    /// Waits for the head of the response to a request. `waits` is called each second until it is there.
    pub fn get(&self, asked: Get, waits: &mut dyn FnMut()) -> Result<Answer, HttpFailure> {
        let http = self.client.http().clone();
        self.client.wait_with(async move { http.get(&asked).await }, waits)
    }

    /// Returns ` through the proxy 'HOST:PORT' (...)` for an address behind a proxy, with the setting that names it.
    fn through(&self, address: &str) -> String {
        let place = address.parse().ok().and_then(|address| self.proxies.place_for(&address));
        let named = match self.has_own_proxy {
            true => "which pip's settings name: PIP_PROXY or pip.conf",
            false => "which HTTPS_PROXY, ALL_PROXY or HTTP_PROXY names",
        };
        place.map(|place| format!(" through the proxy '{place}' ({named})")).unwrap_or_default()
    }
}

/// Makes a request with the credentials in the address. An index may use no encryption: downloads are compared with the
/// pinned content.
pub(crate) fn asked(url: &str, most: u64) -> Result<Get, HttpFailure> {
    let (address, credentials) = split_credentials(url);
    let invalid = || HttpFailure::new(Problem::Address, "the address is not valid");
    let mut asked = Get::new(address.parse().map_err(|_| invalid())?, most);
    asked.authorization = credentials.and_then(|credentials| credentials.try_into().ok());
    asked.allows_plain = true;
    Ok(asked)
}

/// Returns the address without user and password, for messages.
pub(crate) fn without_credentials(url: &str) -> String {
    split_credentials(url).0
}

/// Returns the address without user and password, and its `Basic` credentials if it has some.
fn split_credentials(url: &str) -> (String, Option<String>) {
    let Some((scheme, rest)) = url.split_once("://") else { return (url.to_owned(), None) };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((secret, host)) => {
            let credentials = format!("Basic {}", BASE64.encode(secret));
            (format!("{scheme}://{host}{path}"), Some(credentials))
        }
        None => (url.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_removed_from_the_url() {
        assert_eq!(without_credentials("https://u:p@h/x@y"), "https://h/x@y");
        assert_eq!(split_credentials("https://h/x"), ("https://h/x".to_owned(), None));
        let (bare, credentials) = split_credentials("https://user:pass@h/x");
        assert_eq!(bare, "https://h/x");
        assert_eq!(credentials.as_deref(), Some("Basic dXNlcjpwYXNz"));
    }
}
