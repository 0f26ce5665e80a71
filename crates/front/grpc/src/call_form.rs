//! Checks that a request is a gRPC call.
//!
//! A web page can make a browser send requests in its user's name, with the user's certificate. It cannot make it send
//! gRPC's content type to another site without asking first. Codes and texts are those of gRPC core, which accepts any
//! content type.

use http::{HeaderMap, HeaderValue, Method, header};
use tonic::Status;

const CONTENT_TYPE: &[u8] = b"application/grpc";

/// # Errors
/// When the request is not a gRPC call. The status names the header at fault.
pub(crate) fn check(method: &Method, headers: &HeaderMap) -> Result<(), Status> {
    if method != Method::POST {
        return Err(Status::unknown("Bad method header"));
    }
    match headers.get(header::TE).map(HeaderValue::as_bytes) {
        Some(b"trailers") => {}
        Some(_) => return Err(Status::unknown("Bad :te header")),
        None => return Err(Status::unknown("Missing :te header")),
    }
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    match content_type.is_some_and(|name| name.starts_with(CONTENT_TYPE)) {
        true => Ok(()),
        false => {
            Err(Status::unknown("Bad content-type header: a call of gRPC has 'application/grpc'"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_without_the_form_of_a_call_are_refused() {
        let checked = |method: &Method, sent: &[(&'static str, &'static str)]| {
            let sent = sent.iter().map(|&(name, value)| {
                (http::HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            match check(method, &sent.collect()) {
                Ok(()) => String::new(),
                Err(status) => format!("{:?} {}", status.code(), status.message()),
            }
        };
        let (te, grpc) = (("te", "trailers"), ("content-type", "application/grpc+proto"));
        assert_eq!(checked(&Method::POST, &[te, grpc]), "");
        assert_eq!(checked(&Method::GET, &[te, grpc]), "Unknown Bad method header");
        assert_eq!(checked(&Method::PUT, &[te, grpc]), "Unknown Bad method header");
        assert_eq!(checked(&Method::POST, &[grpc]), "Unknown Missing :te header");
        assert_eq!(checked(&Method::POST, &[("te", "gzip"), grpc]), "Unknown Bad :te header");
        let other = "Unknown Bad content-type header: a call of gRPC has 'application/grpc'";
        for sent in [&[te][..], &[te, ("content-type", "text/plain")]] {
            assert_eq!(checked(&Method::POST, sent), other);
        }
    }
}
