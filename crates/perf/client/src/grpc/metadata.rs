//! The head of a call.

use std::str::FromStr;

use galatea_types::Result;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version,
    header::{CONTENT_TYPE, TE, USER_AGENT},
    uri::{Authority, Scheme},
};

use crate::{Target, request_error::RequestError};

/// Returns the head of a call of the inference service, which every call clones.
///
/// # Errors
/// If a host or a header cannot be sent.
pub(super) fn head(target: &Target, method: &'static str) -> Result<Request<()>> {
    let authority = target.authority();
    let authority = Authority::from_str(&authority)
        .map_err(|cause| RequestError::Address { authority, cause })?;
    let path = format!("/inference.GRPCInferenceService/{method}");
    let uri = Uri::builder()
        .scheme(if target.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP })
        .authority(authority)
        .path_and_query(path)
        .build()
        .map_err(RequestError::Path)?;
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
            return Err(RequestError::Header { name: name.clone(), value: value.clone() }.into());
        };
        headers.append(key, text);
    }
    Ok(headers)
}
