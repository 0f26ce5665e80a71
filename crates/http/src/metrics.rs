//! The metrics endpoint.

use galatea_engine::Engine;
use http::{HeaderValue, Method, Request, Response, StatusCode};

use crate::{
    body::Body,
    responses::{TEXT, method_not_allowed, reply},
};

const PROMETHEUS_TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Every path is answered with 200; only that of `/metrics` has a body.
pub(crate) fn respond<B>(engine: &Engine, request: &Request<B>) -> Response<Body> {
    if request.method() != Method::GET {
        return method_not_allowed(TEXT);
    }
    match request.uri().path() {
        "/metrics" | "/metrics/" => of_engine(engine),
        _ => reply(StatusCode::OK, PROMETHEUS_TEXT, Body::default()),
    }
}

/// All metrics.
pub(crate) fn of_engine(engine: &Engine) -> Response<Body> {
    reply(StatusCode::OK, PROMETHEUS_TEXT, engine.metrics_text().into_bytes().into())
}
