//! The metrics endpoint.

use galatea_engine::Engine;
use galatea_http1::RequestHead;
use http::{Method, StatusCode};

use crate::{
    body::Body,
    response::Response,
    responses::{TEXT, method_not_allowed, reply},
};

const PROMETHEUS_TEXT: &str = "text/plain; charset=utf-8";

/// Every path is answered with 200; only that of `/metrics` has a body.
pub(crate) fn respond(engine: &Engine, head: &RequestHead) -> Response {
    if head.method() != Method::GET {
        return method_not_allowed(TEXT);
    }
    match head.path() {
        "/metrics" | "/metrics/" => of_engine(engine),
        _ => reply(StatusCode::OK, PROMETHEUS_TEXT, Body::default()),
    }
}

/// All metrics.
pub(crate) fn of_engine(engine: &Engine) -> Response {
    reply(StatusCode::OK, PROMETHEUS_TEXT, engine.metrics_text().into_bytes().into())
}
