//! Whether one model is ready. A model that is not, or not there, is answered with 400.

use galatea_engine::Readiness;
use galatea_types::Error;
use http::Response;
use tokio::task::spawn_blocking;

use crate::{
    body::Body,
    responses::{JSON, TEXT, failure, health},
    route::ModelPath,
    state::ServerState,
};

pub(crate) async fn respond(state: &ServerState, path: ModelPath<'_>) -> Response<Body> {
    match path.version() {
        Ok(version) if is_ready(state, path.name, version).await => health(true),
        Ok(_) => failure(&Error::invalid_arg("Model version not ready"), TEXT),
        Err(error) => failure(&error, JSON),
    }
}

/// A model that decides by its own code may take long: it is asked on a blocking thread.
async fn is_ready(state: &ServerState, name: &str, version: Option<i64>) -> bool {
    match state.engine.model_readiness(name, version) {
        Readiness::Known(is_ready) => is_ready,
        Readiness::Ask(model) => {
            spawn_blocking(move || model.query_readiness()).await.unwrap_or(false)
        }
    }
}
