//! Whether one model is ready (H-04).

use galatea_engine::Readiness;
use galatea_types::Error;
use http::Response;
use tokio::task::spawn_blocking;

use crate::{
    body::Body,
    responses::{JSON, TEXT, failure},
    route::ModelPath,
    service::{Service, health},
};

pub(crate) async fn respond(service: &Service, path: ModelPath<'_>) -> Response<Body> {
    match path.version() {
        Ok(version) if is_ready(service, path.name, version).await => health(true),
        // Not 404.
        Ok(_) => failure(&Error::invalid_arg("Model version not ready"), TEXT),
        Err(error) => failure(&error, JSON),
    }
}

/// A model with a say of its own takes its time: it is asked on another thread.
async fn is_ready(service: &Service, name: &str, version: Option<i64>) -> bool {
    match service.engine.model_readiness(name, version) {
        Readiness::Known(is_ready) => is_ready,
        Readiness::Ask(model) => {
            spawn_blocking(move || model.query_readiness()).await.unwrap_or(false)
        }
    }
}
