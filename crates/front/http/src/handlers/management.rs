//! Requests answered from the state of the engine: health, metadata, configuration, statistics, log settings.

use ::http::Method;
use galatea_engine::{ModelStatisticsEntry, ServedModel};
use galatea_http1::RequestHead;
use galatea_protocol::{
    http::{self, statistics, to_json},
    model_metadata, model_statistics, server_metadata,
};
use galatea_telemetry::logger::{self, LogChange};
use galatea_trace::unknown_model;
use galatea_types::{Error, Result};

use crate::{
    request::{
        media_types,
        received_request::ReceivedRequest,
        route::{ModelAction, ModelPath, Route},
    },
    response::{
        Response,
        answers::{
            JSON, TEXT, failure, health, health_as_json, leaving, not_found, ok_json,
            ok_or_failure, ready_but,
        },
    },
    state::ServerState,
};

/// Answers a request. Its `head` may ask for JSON.
pub(crate) fn respond(state: &ServerState, route: Route<'_>, head: &RequestHead) -> Response {
    let engine = &state.engine;
    match route {
        Route::Live if wants_json(head) => health_as_json("live", state.is_live()),
        Route::Live => health(state.is_live()),
        // This differs from "not ready", which may pass: this server will not come back.
        Route::Ready if engine.availability().is_leaving() => leaving(),
        Route::Ready if wants_json(head) => {
            health_as_json("ready", state.is_live() && engine.is_ready())
        }
        Route::Ready => {
            match (state.is_live() && engine.is_ready(), engine.repository_problems().len()) {
                (true, away @ 1..) => ready_but(away),
                (is_ready, _) => health(is_ready),
            }
        }
        Route::ServerMetadata => ok_json(to_json(&server_metadata(
            &engine.options().server_id,
            engine.version(),
            engine.extensions(),
        ))),
        Route::Model(action, model) => respond_for_model(state, action, model),
        Route::NamedRepository => {
            failure(&Error::unsupported("'repository_name' specification is not supported"), JSON)
        }
        // Answered elsewhere.
        Route::AllStatistics
        | Route::TraceSetting
        | Route::RepositoryIndex
        | Route::Load(_)
        | Route::Unload(_)
        | Route::SharedMemory(..)
        | Route::Logging => not_found(),
    }
}

/// Returns `true` if the health answer has a JSON body, as in the protocol; Triton's is empty. Clients of Triton do not
/// ask for JSON. The KServe SDK does not ask either, but reads it.
fn wants_json(head: &RequestHead) -> bool {
    const OF_KSERVE: &[u8] = b"python-httpx/";
    let is_of_kserve = || head.get("user-agent").is_some_and(|agent| agent.starts_with(OF_KSERVE));
    media_types::is_named(head, JSON) || is_of_kserve()
}

/// Returns the readiness of one model. A model that is not ready or does not exist gets 400.
pub(crate) async fn model_ready(state: &ServerState, path: ModelPath<'_>) -> Response {
    let version = match path.version() {
        Ok(version) => version,
        Err(error) => return failure(&error, JSON),
    };
    match state.engine.control().is_model_ready(path.name, version).await {
        Ok(true) => health(true),
        Ok(false) => failure(&Error::invalid_arg("Model version not ready"), TEXT),
        Err(error) => failure(&error, TEXT),
    }
}

fn respond_for_model(state: &ServerState, action: ModelAction, model: ModelPath<'_>) -> Response {
    let version = match model.version() {
        Ok(version) => version,
        Err(error) => return failure(&error, JSON),
    };
    let found = || state.engine.model(model.name, version);
    match action {
        ModelAction::Metadata => ok_or_failure(found().map(|m| metadata(&m, version))),
        ModelAction::Config => ok_or_failure(
            found().map(|m| galatea_config::to_json(m.current_config().raw()).into_bytes()),
        ),
        ModelAction::Statistics => {
            let entries = state.engine.statistics(Some(model.name), version);
            ok_or_failure(entries.map(statistics_document))
        }
        // Answered elsewhere.
        ModelAction::Ready
        | ModelAction::TraceSetting
        | ModelAction::Infer
        | ModelAction::Generate
        | ModelAction::GenerateStream => not_found(),
    }
}

/// A requested version is the only one shown.
fn metadata(model: &ServedModel, version: Option<i64>) -> Vec<u8> {
    to_json(&match version {
        Some(version) => model_metadata(model.config(), &[version]),
        None => model_metadata(model.config(), &model.ready_versions()),
    })
}

/// Returns the statistics of every model, from a control thread, because there may be thousands.
pub(crate) async fn all_statistics(
    state: &ServerState,
    received: &ReceivedRequest<'_>,
) -> Response {
    let (engine, caller) = (state.engine.clone(), received.sender.caller.clone());
    let list = move || {
        let mut entries = engine.statistics(None, None)?;
        entries.retain(|entry| caller.may_read(&entry.name));
        Ok(statistics_document(entries))
    };
    ok_or_failure(state.engine.control().query(list).await.flatten())
}

fn statistics_document(entries: Vec<ModelStatisticsEntry>) -> Vec<u8> {
    let entries = entries.into_iter().map(|e| model_statistics(e.name, e.version, &e.statistics));
    statistics(&entries.collect::<Vec<_>>())
}

/// Makes the change that a POST asks for, and returns the current settings.
pub(crate) async fn log_settings(
    state: &ServerState,
    method: &Method,
    received: &mut ReceivedRequest<'_>,
) -> Response {
    let changed = match *method {
        Method::POST => change_log(state, received).await,
        _ => Ok(()),
    };
    ok_or_failure(changed.map(|()| http::log_settings(&logger::settings())))
}

/// Makes the change that a POST asks for, and returns the trace settings of the server, or of `model`.
pub(crate) async fn trace_settings(
    state: &ServerState,
    method: &Method,
    model: Option<&str>,
    received: &mut ReceivedRequest<'_>,
) -> Response {
    if let Some(name) = model
        && state.engine.model(name, None).is_err()
    {
        return failure(&unknown_model(name), JSON);
    }
    let changed = match *method {
        Method::POST => change_trace(state, model, received).await,
        _ => Ok(()),
    };
    let tracer = state.options.requests.tracer();
    ok_or_failure(changed.map(|()| http::trace_settings(&tracer.settings(model))))
}

async fn change_trace(
    state: &ServerState,
    model: Option<&str>,
    received: &mut ReceivedRequest<'_>,
) -> Result<()> {
    let body = received.body(None, state.json_limit()).await?;
    let change = http::decode_trace_change(&body)?;
    Ok(state.options.requests.tracer().change(model, &change)?)
}

async fn change_log(state: &ServerState, received: &mut ReceivedRequest<'_>) -> Result<()> {
    let body = received.body(None, state.json_limit()).await?;
    let mut wanted = LogChange::default();
    let read = http::decode_log_change(&body, &mut wanted);
    logger::change(&wanted);
    read
}
