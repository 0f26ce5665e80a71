//! The metrics endpoint.

use galatea_engine::Engine;
use galatea_http1::RequestHead;
use galatea_telemetry::metrics::to_open_metrics;
use galatea_types::Error;
use http::{Method, StatusCode};

use crate::{
    options::MetricsScope,
    request::media_types,
    response::{
        Response,
        answers::{TEXT, failure, method_not_allowed, reply},
        body::Body,
    },
};

/// The path of the metrics.
pub(crate) const PATH: &str = "/metrics";

const PROMETHEUS_TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers every path with 200; only `/metrics` has a body.
pub(crate) fn respond(engine: &Engine, head: &RequestHead) -> Response {
    if head.method() != Method::GET {
        return method_not_allowed(TEXT);
    }
    match head.path() {
        PATH | "/metrics/" => of_engine(engine, head, MetricsScope::All),
        _ => reply(StatusCode::OK, PROMETHEUS_TEXT, Body::default()),
    }
}

/// Answers `/metrics` of the port of inference.
pub(crate) fn respond_beside_inference(
    engine: &Engine,
    head: &RequestHead,
    scope: MetricsScope,
) -> Response {
    if head.method() != Method::GET {
        return method_not_allowed(TEXT);
    }
    of_engine(engine, head, scope)
}

/// Returns the metrics of the scope that the client asks for, else those of `default`, in the format that it asks for.
pub(crate) fn of_engine(engine: &Engine, head: &RequestHead, default: MetricsScope) -> Response {
    let scope = match scope(head.query()) {
        None => default,
        Some("all") => MetricsScope::All,
        Some("server") => MetricsScope::Server,
        Some(other) => {
            let text = format!(
                "no scope '{}' of metrics: ask for scope=all or scope=server",
                other.escape_debug()
            );
            return failure(&Error::invalid_arg(text), TEXT);
        }
    };
    let page = match scope {
        MetricsScope::All => engine.metrics_text(),
        MetricsScope::Server => engine.server_metrics_text(),
    };
    let (page, format) = match media_types::is_named(head, "application/openmetrics-text") {
        true => (to_open_metrics(&page), OPEN_METRICS),
        false => (page, PROMETHEUS_TEXT),
    };
    reply(StatusCode::OK, format, page.into_bytes().into())
}

/// Returns the parameter `scope` of a query. Others belong to proxies and collectors.
fn scope(query: Option<&str>) -> Option<&str> {
    query?.split('&').find_map(|pair| pair.strip_prefix("scope="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_is_found_among_other_parameters() {
        assert_eq!(scope(None), None);
        assert_eq!(scope(Some("")), None);
        assert_eq!(scope(Some("a=1&microscope=2")), None);
        assert_eq!(scope(Some("a=1&scope=server&b")), Some("server"));
        assert_eq!(scope(Some("scope=")), Some(""));
    }
}
