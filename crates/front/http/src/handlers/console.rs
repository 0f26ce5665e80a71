//! The console, its events, and the document that describes the routes. Cloud platforms have none of these paths.

use std::sync::Arc;

use bytes::Bytes;
use galatea_console::{
    Console, ConsoleSources,
    openapi::{self, Models},
    page::{self, PageFile},
    traces,
};
use galatea_engine::Engine;
use galatea_frontend::{Action, ApiCategory};
use galatea_http1::{RequestHead, names, visible_text};
use galatea_types::Error;
use http::{Method, StatusCode};

use crate::{
    options::HttpOptions,
    request::{admission, received_request::ReceivedRequest, same_site},
    response::{
        Response,
        answers::{
            JSON, RefusalForm, failure, method_not_allowed, ok_or_failure, reply, restricted,
        },
        body::Body,
        events::EventBody,
    },
    state::ServerState,
};

const EVENTS: &str = "text/event-stream";
/// The groups of calls whose data the events show.
const SHOWN_BY_EVENTS: [ApiCategory; 5] = [
    ApiCategory::Health,
    ApiCategory::Metadata,
    ApiCategory::ModelConfig,
    ApiCategory::ModelRepository,
    ApiCategory::Statistics,
];
/// The groups of calls whose data the traces show: names, durations, and the settings of traces.
const SHOWN_BY_TRACES: [ApiCategory; 4] = [
    ApiCategory::Metadata,
    ApiCategory::ModelRepository,
    ApiCategory::Statistics,
    ApiCategory::Trace,
];
/// The groups of calls whose data the document shows: the models and their inputs.
const SHOWN_BY_DOCUMENT: [ApiCategory; 2] = [ApiCategory::Metadata, ApiCategory::ModelRepository];

#[derive(Clone, Copy, Debug)]
pub(crate) enum ConsoleRoute {
    File(&'static PageFile),
    Events,
    Traces,
    Document,
}

/// Returns the console route of `path`. Without `has_console` only the document has one.
pub(crate) fn parse(path: &str, has_console: bool) -> Option<ConsoleRoute> {
    match path {
        "/openapi.json" => Some(ConsoleRoute::Document),
        _ if !has_console => None,
        "/" | "/docs" => page::file(page::INDEX).map(ConsoleRoute::File),
        "/console/events" => Some(ConsoleRoute::Events),
        "/console/traces" => Some(ConsoleRoute::Traces),
        _ => page::file(path.strip_prefix("/console/")?).map(ConsoleRoute::File),
    }
}

pub(crate) fn of(engine: &Arc<Engine>, options: &HttpOptions) -> Console {
    let sources = ConsoleSources {
        connections: options.limits.clone(),
        about: options.about.clone(),
        restricted: options.restricted_apis.restricted_names(),
        traces: options.requests.tracer().recent().cloned(),
    };
    Console::new(engine, sources)
}

pub(crate) async fn respond(
    state: &ServerState,
    route: ConsoleRoute,
    received: &mut ReceivedRequest<'_>,
) -> Response {
    let form = RefusalForm { content_type: JSON, is_page: true };
    if let Some(refusal) = admission::refusal(state, received, Action::ReadEverything, form) {
        return refusal;
    }
    received.exchange.mark_routine();
    if !matches!(*received.sender.head.method(), Method::GET | Method::HEAD) {
        return method_not_allowed(JSON);
    }
    match route {
        ConsoleRoute::File(file) => send_file(file, received.sender.head),
        ConsoleRoute::Events => refused(state, &SHOWN_BY_EVENTS, received.sender.head)
            .unwrap_or_else(|| send_events(state, received)),
        ConsoleRoute::Traces => match refused(state, &SHOWN_BY_TRACES, received.sender.head) {
            Some(refusal) => refusal,
            None => send_traces(state, received).await,
        },
        ConsoleRoute::Document => match refused(state, &SHOWN_BY_DOCUMENT, received.sender.head) {
            Some(refusal) => refusal,
            None => send_document(state, received).await,
        },
    }
}

/// Returns a refusal if the client may not read data of these groups of calls, or if the server shuts down.
fn refused(
    state: &ServerState,
    categories: &[ApiCategory],
    headers: &RequestHead,
) -> Option<Response> {
    let value_of = |name: &str| headers.get(name);
    let apis = &state.options.restricted_apis;
    let unmet = categories.iter().find_map(|category| apis.check(*category, value_of).err());
    if let Some(unmet) = unmet {
        return Some(restricted(unmet));
    }
    if let Some(refusal) = same_site::refusal(headers) {
        return Some(refusal);
    }
    let is_over = state.in_flight.is_closed();
    is_over.then(|| failure(&Error::unavailable("Server exiting"), JSON))
}

fn send_file(file: &'static PageFile, headers: &RequestHead) -> Response {
    let validators = headers.get("if-none-match").and_then(visible_text);
    let mut response = match validators.is_some_and(|known| page::is_known(file, known)) {
        true => Response::new(StatusCode::NOT_MODIFIED, Body::default()),
        false => {
            let takes_gzip = headers.get("accept-encoding").is_some_and(takes_gzip);
            let content = if takes_gzip { file.gzip } else { &file.content };
            let content = Body::pieces(Bytes::from_static(content), Vec::new());
            let mut response = reply(StatusCode::OK, file.content_type, content);
            if takes_gzip {
                response.head.set(names::CONTENT_ENCODING, "gzip");
            }
            response
        }
    };
    response.head.set(names::VARY, "accept-encoding");
    response.head.set(names::ETAG, file.etag.as_str());
    protected(response)
}

/// Browsers list `gzip` without a weight. With one, which might be 0, the plain text is sent.
fn takes_gzip(accepted: &[u8]) -> bool {
    visible_text(accepted).is_some_and(|all| all.split(',').any(|one| one.trim() == "gzip"))
}

/// Adds the security headers for browsers.
fn protected(mut response: Response) -> Response {
    for (name, value) in page::HEADERS {
        response.head.set(name, value);
    }
    response
}

fn send_events(state: &ServerState, received: &ReceivedRequest<'_>) -> Response {
    let Some(console) = &state.console else { return crate::response::answers::not_found() };
    if received.sender.head.method() == Method::HEAD {
        return protected(reply(StatusCode::OK, EVENTS, Body::default()));
    }
    match console.watch() {
        Ok(watcher) => {
            let mut closing = received.connection.closing.clone();
            let drain = Box::pin(async move { closing.wait_for_drain().await });
            let body = EventBody::new(watcher, drain);
            protected(reply(StatusCode::OK, EVENTS, Body::Events(Box::new(body))))
        }
        Err(error) => failure(&Error::unavailable(error.to_string()), JSON),
    }
}

/// Writes the traces on a control thread, because one may have many steps and calls.
async fn send_traces(state: &ServerState, received: &ReceivedRequest<'_>) -> Response {
    let model = match traces::model_of(received.sender.head.query().unwrap_or_default()) {
        Ok(model) => model,
        Err(error) => return protected(failure(&error, JSON)),
    };
    let tracer = state.options.requests.tracer().clone();
    let may_change = received.sender.caller.check(&Action::Control(&model)).is_ok();
    let write = move || traces::document(&tracer, &model, may_change);
    let written = state.engine.control().query(write).await.flatten();
    protected(ok_or_failure(written))
}

/// Writes the document on a control thread, because it visits all models.
async fn send_document(state: &ServerState, received: &ReceivedRequest<'_>) -> Response {
    let engine = state.engine.clone();
    let models = Models::of_query(received.sender.head.query().unwrap_or_default());
    let has_console = state.console.is_some();
    let write = move || openapi::document(&engine, &models?, has_console);
    let written = state.engine.control().query(write).await.flatten();
    protected(ok_or_failure(written))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::request::route;

    /// Paths and methods that the document names whatever models there are, methods in capitals.
    fn base_routes() -> Vec<(String, String)> {
        let document: Value = serde_json::from_str(openapi::BASE).expect("JSON");
        let paths = document["paths"].as_object().into_iter().flatten();
        let methods = |(path, item): (&String, &Value)| {
            let path = path.clone();
            let methods = item.as_object().into_iter().flatten().map(|(method, _)| method);
            let methods = methods.filter(|name| *name != "parameters");
            methods.map(move |name| (path.clone(), name.to_ascii_uppercase())).collect::<Vec<_>>()
        };
        paths.flat_map(methods).collect()
    }

    #[test]
    fn every_documented_route_exists() {
        let routes = base_routes();
        assert!(routes.len() > 25);
        for (path, method) in routes {
            let filled = path.replace("{model_name}", "m").replace("{model_version}", "3");
            let method: Method = method.parse().expect("a method");
            match route::parse(&filled) {
                Some(route) => assert!(route.rules().methods.contains(&method), "{method} {path}"),
                None => assert!(parse(&filled, true).is_some() && method == Method::GET, "{path}"),
            }
        }
    }

    #[test]
    fn every_route_is_documented() {
        let described: BTreeSet<(String, String)> = base_routes().into_iter().collect();
        let model = "/v2/models/{model_name}";
        let actions =
            ["", "/ready", "/config", "/stats", "/infer", "/generate", "/generate_stream"];
        let of_versions = actions.iter().map(|a| format!("{model}/versions/{{model_version}}{a}"));
        let of_models = actions.iter().map(|action| format!("{model}{action}"));
        let others = [
            "/v2",
            "/v2/health/live",
            "/v2/health/ready",
            "/v2/models/stats",
            "/v2/logging",
            "/v2/trace/setting",
            "/v2/models/{model_name}/trace/setting",
        ];
        let repository = ["index", "models/{model_name}/load", "models/{model_name}/unload"];
        let repository = repository.map(|path| format!("/v2/repository/{path}"));
        let regions = ["system", "cuda"].iter().flat_map(|kind| {
            let calls = ["status", "unregister", "region/{region_name}/status"];
            let changes = ["region/{region_name}/register", "region/{region_name}/unregister"];
            let calls = calls.into_iter().chain(changes);
            calls.map(move |call| format!("/v2/{kind}sharedmemory/{call}"))
        });
        let paths = of_versions.chain(of_models).chain(others.map(str::to_owned));
        for path in paths.chain(repository).chain(regions) {
            let filled = path.replace("{model_name}", "m").replace("{model_version}", "3");
            let route = route::parse(&filled).expect("a route");
            for method in [Method::GET, Method::POST] {
                let key = (path.clone(), method.to_string());
                assert_eq!(
                    described.contains(&key),
                    route.rules().methods.contains(&method),
                    "{method} {path}"
                );
            }
        }
    }

    #[test]
    fn without_a_console_only_the_openapi_document_is_served() {
        for path in ["/", "/docs", "/console/events", "/console/traces", "/console/index.html"] {
            assert!(parse(path, true).is_some() && parse(path, false).is_none(), "{path}");
        }
        assert!(matches!(parse("/openapi.json", false), Some(ConsoleRoute::Document)));
        for path in ["", "/console", "/console/", "/docs/", "/v2/docs", "/openapi.json/"] {
            assert!(parse(path, true).is_none(), "{path}");
        }
    }
}
