//! Adapts the server's HTTP client to the stores' library.

use async_trait::async_trait;
use galatea_web_client::{HttpBody, HttpClient, HttpFailure, Problem, is_plain};
use http::{Method, Request, Response, Uri};
use http_body_util::BodyExt;
use object_store::{
    ClientConfigKey, ClientOptions,
    client::{
        HttpClient as StoreClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
        HttpResponse, HttpResponseBody, HttpService,
    },
};

use super::listing;

/// Most bytes of a response without a file: a page of a listing, a token, an error.
const MOST_OTHER: u64 = 64 << 20;

/// The HTTP client for the stores' library.
#[derive(Clone, Debug)]
pub struct Connector(HttpClient);

impl Connector {
    pub fn new(client: HttpClient) -> Self {
        Self(client)
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<StoreClient> {
        let allows_plain = options.get_config_value(&ClientConfigKey::AllowHttp);
        let allows_plain = allows_plain.is_some_and(|value| value == "true");
        Ok(StoreClient::new(PendingAddress { client: self.0.clone(), allows_plain }))
    }
}

#[derive(Debug)]
struct PendingAddress {
    client: HttpClient,
    allows_plain: bool,
}

#[async_trait]
impl HttpService for PendingAddress {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if is_plain(request.uri()) && !self.allows_plain {
            let host = request.uri().host().unwrap_or_default();
            let text = format!("plain HTTP is refused for '{host}'");
            return Err(failed(HttpFailure::new(Problem::Address, text)));
        }
        let wants_listing = listing::is_wanted(&request);
        let is_of_file = request.method() == Method::GET && !wants_listing;
        let most = if is_of_file { u64::MAX } else { MOST_OTHER };
        let (parts, body) = request.into_parts();
        let asked = parts.uri.clone();
        let body = body.as_bytes().cloned().unwrap_or_default();
        let request = Request::from_parts(parts, body);
        let mut response = self.client.send(request, most).await.map_err(failed)?;
        // The library returns no other headers of a file's response.
        let headers = response.headers().clone();
        response.extensions_mut().insert(headers);
        if wants_listing && response.status().is_success() {
            return checked_listing(&asked, response).await;
        }
        Ok(response.map(|body| HttpResponseBody::new(body.map_err(failed))))
    }
}

/// Checks a listing, which the caller reads as a whole anyway.
async fn checked_listing(
    asked: &Uri,
    response: Response<HttpBody>,
) -> Result<HttpResponse, HttpError> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(failed)?.to_bytes();
    // The failure may be temporary, such as a page about maintenance.
    listing::check(asked, &parts.headers, &body)
        .map_err(|problem| HttpError::new(HttpErrorKind::Interrupted, problem))?;
    Ok(Response::from_parts(parts, body.into()))
}

fn failed(failure: HttpFailure) -> HttpError {
    let kind = match failure.problem() {
        Problem::Connect => HttpErrorKind::Connect,
        Problem::TooSlow => HttpErrorKind::Timeout,
        Problem::Broken => HttpErrorKind::Interrupted,
        Problem::TooLong => HttpErrorKind::Decode,
        Problem::Address | Problem::Local => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, failure)
}
