//! Whether one model is ready. A model that is not, or not there, is answered with 400.

use galatea_types::Error;

use crate::{
    response::Response,
    responses::{JSON, TEXT, failure, health},
    route::ModelPath,
    state::ServerState,
};

pub(crate) async fn respond(state: &ServerState, path: ModelPath<'_>) -> Response {
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
