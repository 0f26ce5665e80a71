//! The metrics endpoint.

use galatea_engine::Engine;
use galatea_http1::RequestHead;
use galatea_telemetry::metrics::to_open_metrics;
use http::{Method, StatusCode};

use crate::{
    request::media_types,
    response::{
        Response,
        answers::{TEXT, method_not_allowed, reply},
        body::Body,
    },
};

const PROMETHEUS_TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers every path with 200; only `/metrics` has a body.
pub(crate) fn respond(engine: &Engine, head: &RequestHead) -> Response {
    if head.method() != Method::GET {
        return method_not_allowed(TEXT);
    }
    match head.path() {
        "/metrics" | "/metrics/" => of_engine(engine, head),
        _ => reply(StatusCode::OK, PROMETHEUS_TEXT, Body::default()),
    }
}

/// Returns all metrics, in the format that the client asks for.
pub(crate) fn of_engine(engine: &Engine, head: &RequestHead) -> Response {
    let (page, format) = match media_types::is_named(head, "application/openmetrics-text") {
        true => (to_open_metrics(&engine.metrics_text()), OPEN_METRICS),
        false => (engine.metrics_text(), PROMETHEUS_TEXT),
    };
    reply(StatusCode::OK, format, page.into_bytes().into())
}
