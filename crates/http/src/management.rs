//! Everything that is answered at once from what the engine knows.

use galatea_engine::ServedModel;
use galatea_protocol::http::{model_metadata, server_metadata, statistics};
use galatea_types::{Error, Result};
use http::Response;

use crate::{
    body::Body,
    responses::{JSON, failure, not_found, ok_json, ok_or_failure},
    route::{ModelAction, ModelPath, Route, SharedMemoryAction, SharedMemoryKind},
    service::{Service, health},
};

pub(crate) fn respond(service: &Service, route: Route<'_>) -> Response<Body> {
    let engine = &service.engine;
    match route {
        Route::Live => health(service.is_live()),
        Route::Ready => health(service.is_live() && engine.is_ready()),
        Route::ServerMetadata => ok_json(server_metadata(
            &engine.options().server_id,
            engine.version(),
            engine.extensions(),
        )),
        Route::AllStatistics => ok_or_failure(statistics_of(service, None, None)),
        Route::Model(action, model) => respond_for_model(service, action, model),
        Route::NamedRepository => {
            failure(&Error::unsupported("'repository_name' specification is not supported"), JSON)
        }
        Route::SharedMemory(kind, action, region) => shared_memory(kind, action, region),
        Route::TraceSetting => not_built("trace"),
        Route::Logging => not_built("logging"),
        // Answered elsewhere.
        Route::RepositoryIndex | Route::Load(_) | Route::Unload(_) => not_found(),
    }
}

fn respond_for_model(
    service: &Service,
    action: ModelAction,
    model: ModelPath<'_>,
) -> Response<Body> {
    let version = match model.version() {
        Ok(version) => version,
        Err(error) => return failure(&error, JSON),
    };
    let found = || service.engine.model(model.name, version);
    match action {
        ModelAction::Metadata => ok_or_failure(found().map(|m| metadata(&m, version))),
        ModelAction::Config => {
            ok_or_failure(found().map(|m| galatea_config::to_json(m.config().raw()).into_bytes()))
        }
        ModelAction::Statistics => ok_or_failure(statistics_of(service, Some(model.name), version)),
        ModelAction::TraceSetting => not_built("trace"),
        // Answered elsewhere.
        ModelAction::Ready
        | ModelAction::Infer
        | ModelAction::Generate
        | ModelAction::GenerateStream => not_found(),
    }
}

/// A version that is asked for is the only one shown.
fn metadata(model: &ServedModel, version: Option<i64>) -> Vec<u8> {
    match version {
        Some(version) => model_metadata(model.config(), &[version]),
        None => model_metadata(model.config(), model.ready_versions()),
    }
}

fn statistics_of(service: &Service, name: Option<&str>, version: Option<i64>) -> Result<Vec<u8>> {
    let entries = service.engine.statistics(name, version)?;
    Ok(statistics(entries.iter().map(|e| (e.name.as_str(), e.version, &e.statistics))))
}

impl ModelPath<'_> {
    /// The version as a number (H-69).
    pub fn version(&self) -> Result<Option<i64>> {
        let Some(digits) = self.version else { return Ok(None) };
        digits.parse().map(Some).map_err(|_| {
            Error::invalid_arg(format!(
                "failed to get model version from specified version string '{digits}' (details: stol), \
                 version should be an integral value > 0"
            ))
        })
    }
}

/// No region can be registered yet: there is none to tell of and none to take away.
fn shared_memory(
    kind: SharedMemoryKind,
    action: SharedMemoryAction,
    region: Option<&str>,
) -> Response<Body> {
    let kind = match kind {
        SharedMemoryKind::System => "system",
        SharedMemoryKind::Cuda => "cuda",
    };
    match (action, region) {
        (SharedMemoryAction::Status, None) => ok_json(b"[]".to_vec()),
        (SharedMemoryAction::Status, Some(region)) => {
            let text = format!("Unable to find {kind} shared memory region: '{region}'");
            failure(&Error::not_found(text), JSON)
        }
        (SharedMemoryAction::Unregister, _) => ok_json(Vec::new()),
        (SharedMemoryAction::Register, _) => not_built(&format!("{kind} shared memory")),
    }
}

fn not_built(what: &str) -> Response<Body> {
    failure(&Error::unsupported(format!("the {what} extension is not supported")), JSON)
}
