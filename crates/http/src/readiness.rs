//! Whether one model is ready (H-04).

use galatea_types::Error;
use http::Response;

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

/// Asked through a future, so that a model with a say of its own, which takes its time, can be asked on
/// another thread.
async fn is_ready(service: &Service, name: &str, version: Option<i64>) -> bool {
    service.engine.is_model_ready(name, version)
}
