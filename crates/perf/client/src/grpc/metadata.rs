//! The head of a call.

use std::str::FromStr;

use galatea_types::{Error, Result};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version,
    header::{CONTENT_TYPE, TE, USER_AGENT},
    uri::{Authority, PathAndQuery, Scheme},
};

use crate::Target;

/// The head of a call of the inference service, to be cloned for each.
///
/// # Errors
/// A host or a header that cannot be sent.
pub(super) fn head(target: &Target, method: &'static str) -> Result<Request<()>> {
    let authority = Authority::from_str(&target.authority()).map_err(|_| {
        Error::invalid_arg(format!("'{}' is not the address of a server", target.authority()))
    })?;
    let path = format!("/inference.GRPCInferenceService/{method}");
    let uri = Uri::builder()
        .scheme(if target.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP })
        .authority(authority)
        .path_and_query(PathAndQuery::from_str(&path).map_err(|error| internal(&error))?)
        .build()
        .map_err(|error| internal(&error))?;
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = headers(target)?;
    Ok(request)
}

fn headers(target: &Target) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(TE, HeaderValue::from_static("trailers"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    let agent = concat!("galatea-client/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    let accepted = HeaderValue::from_static("identity,deflate,gzip");
    headers.insert(HeaderName::from_static("grpc-accept-encoding"), accepted);
    if let Some(encoding) = target.compression.encoding() {
        let name = HeaderName::from_static("grpc-encoding");
        headers.insert(name, HeaderValue::from_static(encoding));
    }
    for (name, value) in &target.headers {
        let pair = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value));
        let (Ok(key), Ok(text)) = pair else {
            return Err(Error::invalid_arg(format!("header '{name}: {value}' cannot be sent")));
        };
        headers.append(key, text);
    }
    Ok(headers)
}

fn internal(cause: &dyn std::fmt::Display) -> Error {
    Error::internal(format!("failed to make the path of a call: {cause}"))
}
