//! GET requests, which follow redirects.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode, Uri,
    header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, LOCATION, RANGE},
};

use crate::{
    address::{host, is_same, redirected, shown},
    body::HttpBody,
    client::HttpClient,
    failure::{HttpFailure, Problem},
};

/// Most redirects in a row.
const MAX_REDIRECTS: usize = 5;

/// A request.
#[derive(Clone, Debug)]
pub struct Get {
    /// The address.
    pub uri: Uri,
    /// Header that is sent to the first server only, never to one that it redirects to.
    pub authorization: Option<HeaderValue>,
    /// First byte of the requested range.
    pub from: u64,
    /// Most bytes of the body.
    pub most: u64,
    /// Further headers for all servers.
    pub headers: HeaderMap,
    /// True if a plain address may redirect to a plain one of another machine. Use it only for data that is checked
    /// otherwise.
    pub allows_plain: bool,
}

/// The response of the last server.
#[derive(Debug)]
pub struct Answer {
    /// Status of the response, which is not a redirect.
    pub status: StatusCode,
    /// Headers of the first server's response, which may have been a redirect.
    pub first: HeaderMap,
    /// The last server's response.
    pub response: Response<HttpBody>,
}

impl Answer {
    /// Returns the bytes of the body, if the server sends the number.
    pub fn length(&self) -> Option<u64> {
        self.response.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// Returns the first byte of a part of a file: `Content-Range: bytes 5-9/10`.
    pub fn range_start(&self) -> Option<u64> {
        let text = self.response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
        text.strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
    }
}

impl Get {
    /// Makes a request for a whole file of at most `most` bytes.
    pub fn new(uri: Uri, most: u64) -> Self {
        let headers = HeaderMap::new();
        Self { uri, authorization: None, from: 0, most, headers, allows_plain: false }
    }

    fn request(&self, uri: &Uri) -> Result<Request<Bytes>, HttpFailure> {
        // Ranges and checksums are of the bytes themselves.
        let mut request = Request::get(uri.clone()).header(ACCEPT_ENCODING, "identity");
        if self.from > 0 {
            request = request.header(RANGE, format!("bytes={}-", self.from));
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(secret) = self.authorization.as_ref().filter(|_| is_same(uri, &self.uri)) {
            request = request.header(AUTHORIZATION, secret);
        }
        let request = request.body(Bytes::new());
        request.map_err(|error| HttpFailure::new(Problem::Address, format!("request: {error}")))
    }
}

impl HttpClient {
    /// Returns the response of the last server, with any status that is not a redirect.
    ///
    /// # Errors
    /// When no response comes in time, or a redirect leads to a forbidden address.
    pub async fn get(&self, asked: &Get) -> Result<Answer, HttpFailure> {
        let mut uri = asked.uri.clone();
        let mut first = None;
        for _ in 0..=MAX_REDIRECTS {
            let sent = self.send(asked.request(&uri)?, asked.most).await;
            let response = sent.map_err(|failure| {
                failure.within(format!("{}://{}", uri.scheme_str().unwrap_or_default(), host(&uri)))
            })?;
            let status = response.status();
            let first = first.get_or_insert_with(|| response.headers().clone());
            match status.is_redirection().then(|| response.headers().get(LOCATION)).flatten() {
                Some(location) => uri = redirected(&uri, location, asked.allows_plain)?,
                None => return Ok(Answer { status, first: std::mem::take(first), response }),
            }
        }
        let uri = asked.uri.to_string();
        let text = format!("{}: more than {MAX_REDIRECTS} redirects", shown(&uri));
        Err(HttpFailure::new(Problem::Address, text))
    }
}
