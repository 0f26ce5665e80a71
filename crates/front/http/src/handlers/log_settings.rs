//! The log settings: read, and changed while the server runs.

use galatea_protocol::http::{decode_log_change, log_settings};
use galatea_telemetry::logger::{self, LogChange};
use galatea_types::Result;
use http::Method;

use crate::{
    request::received::Received,
    response::{Response, answers::ok_or_failure},
    state::ServerState,
};

/// What is in force, after the change that a POST asks for.
pub(crate) async fn respond(
    state: &ServerState,
    method: &Method,
    received: &mut Received<'_>,
) -> Response {
    let changed = match *method {
        Method::POST => change(state, received).await,
        _ => Ok(()),
    };
    ok_or_failure(changed.map(|()| log_settings(&logger::settings())))
}

async fn change(state: &ServerState, received: &mut Received<'_>) -> Result<()> {
    let body = received.body(None, state.json_limit()).await?;
    let mut wanted = LogChange::default();
    let read = decode_log_change(&body, &mut wanted);
    logger::change(&wanted);
    read
}
