//! The model repository: index, load, unload. What reads files or waits for a model runs on a blocking thread.

use bytes::Bytes;
use galatea_engine::{IndexEntry, LoadOverrides};
use galatea_protocol::http::{self as protocol, IndexRow, LoadRequest};
use galatea_types::{Error, Result};
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::task::spawn_blocking;

use crate::{body::Body, request_body, responses::ok_or_failure, state::ServerState};

pub(crate) async fn index(state: &ServerState, request: &mut Request<Incoming>) -> Response<Body> {
    let engine = state.engine.clone();
    let body = body_of(state, request).await;
    let list = move || {
        let rows = engine.repository_index(protocol::decode_index(&body?)?);
        Ok(index_document(&rows))
    };
    ok_or_failure(on_blocking_thread(list).await)
}

fn index_document(entries: &[IndexEntry]) -> Vec<u8> {
    let rows: Vec<_> = entries
        .iter()
        .map(|entry| IndexRow {
            name: &entry.name,
            version: entry.version,
            state: entry.state,
            reason: &entry.reason,
        })
        .collect();
    protocol::repository_index(&rows)
}

pub(crate) async fn load(
    state: &ServerState,
    name: String,
    request: &mut Request<Incoming>,
) -> Response<Body> {
    let engine = state.engine.clone();
    let body = body_of(state, request).await;
    let load = move || {
        let LoadRequest { config, files } = protocol::decode_load(&body?)?;
        engine.load_model(&name, LoadOverrides { config, files })?;
        Ok(Vec::new())
    };
    ok_or_failure(on_blocking_thread(load).await)
}

pub(crate) async fn unload(
    state: &ServerState,
    name: String,
    request: &mut Request<Incoming>,
) -> Response<Body> {
    let engine = state.engine.clone();
    let body = body_of(state, request).await;
    let unload = move || {
        engine.unload_model(&name, protocol::decode_unload(&body?)?)?;
        Ok(Vec::new())
    };
    ok_or_failure(on_blocking_thread(unload).await)
}

async fn body_of(state: &ServerState, request: &mut Request<Incoming>) -> Result<Bytes> {
    Ok(request_body::read(request.body_mut(), None, state.options.max_input_size).await?)
}

async fn on_blocking_thread(
    work: impl FnOnce() -> Result<Vec<u8>> + Send + 'static,
) -> Result<Vec<u8>> {
    spawn_blocking(work)
        .await
        .unwrap_or_else(|e| Err(Error::internal("the model control request failed").with_source(e)))
}
