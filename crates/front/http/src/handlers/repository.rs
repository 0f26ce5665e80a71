//! The model repository: index, load, unload. Calls that read files or wait for a model run on the engine's control
//! threads.

use bytes::Bytes;
use galatea_engine::LoadOverrides;
use galatea_frontend::{Action, Caller};
use galatea_protocol::{
    http::{self as protocol, LoadRequest},
    index_row,
};
use galatea_types::Result;

use crate::{
    request::received_request::ReceivedRequest,
    response::{Response, answers::ok_or_failure},
    state::ServerState,
};

pub(crate) async fn index(state: &ServerState, received: &mut ReceivedRequest<'_>) -> Response {
    let (engine, caller) = (state.engine.clone(), received.sender.caller.clone());
    let body = body_of(state, received).await;
    let list = move || {
        let entries = engine.repository_index(protocol::decode_index(&body?)?)?.into_iter();
        let shown = entries.filter(|entry| caller.may_read(&entry.name));
        let rows = shown.map(|e| index_row(e.name, e.version, e.state, e.reason));
        Ok(protocol::to_json(&rows.collect::<Vec<_>>()))
    };
    ok_or_failure(state.engine.control().query(list).await.flatten())
}

pub(crate) async fn load(
    state: &ServerState,
    name: String,
    received: &mut ReceivedRequest<'_>,
) -> Response {
    let body = body_of(state, received).await;
    ok_or_failure(load_now(state, name, body).await)
}

/// Decodes the body as heavy work, because its files may be large.
async fn load_now(state: &ServerState, name: String, body: Result<Bytes>) -> Result<Vec<u8>> {
    let body = body?;
    let decode = {
        let size = body.len();
        state.options.heavy_work.run_sized(size, move || protocol::decode_load(&body))
    };
    let LoadRequest { config, files } = decode.await??;
    let control = state.engine.control();
    control.load(name, LoadOverrides { config, files }).await?;
    Ok(Vec::new())
}

pub(crate) async fn unload(
    state: &ServerState,
    name: String,
    received: &mut ReceivedRequest<'_>,
) -> Response {
    let body = body_of(state, received).await;
    ok_or_failure(unload_now(state, name, body, &received.sender.caller).await)
}

async fn unload_now(
    state: &ServerState,
    name: String,
    body: Result<Bytes>,
    caller: &Caller,
) -> Result<Vec<u8>> {
    let body = body?;
    let size = body.len();
    let decode = move || protocol::decode_unload(&body);
    let with_dependents = state.options.heavy_work.run_sized(size, decode).await??;
    if with_dependents {
        // Dependents may be any models.
        caller.check(&Action::ControlServer)?;
    }
    state.engine.control().unload(name, with_dependents).await?;
    Ok(Vec::new())
}

async fn body_of(state: &ServerState, received: &mut ReceivedRequest<'_>) -> Result<Bytes> {
    Ok(received.body(None, state.json_limit()).await?)
}
