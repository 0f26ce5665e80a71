//! The model repository: index, load, unload. What reads files or waits for a model runs on the
//! engine's control threads.

use bytes::Bytes;
use galatea_engine::{IndexEntry, LoadOverrides};
use galatea_protocol::http::{self as protocol, IndexRow, LoadRequest};
use galatea_types::Result;
use http::{Request, Response};
use hyper::body::Incoming;

use crate::{body::Body, request_body, responses::ok_or_failure, state::ServerState};

pub(crate) async fn index(state: &ServerState, request: &mut Request<Incoming>) -> Response<Body> {
    let engine = state.engine.clone();
    let body = body_of(state, request).await;
    let list = move || {
        let rows = engine.repository_index(protocol::decode_index(&body?)?);
        Ok(index_document(&rows))
    };
    ok_or_failure(state.engine.control().query(list).await.flatten())
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
    let body = body_of(state, request).await;
    ok_or_failure(load_now(state, name, body).await)
}

/// The files in the body are decoded on a control thread too: they may be large.
async fn load_now(state: &ServerState, name: String, body: Result<Bytes>) -> Result<Vec<u8>> {
    let control = state.engine.control();
    let body = body?;
    let decoded = control.query(move || protocol::decode_load(&body)).await?;
    let LoadRequest { config, files } = decoded?;
    control.load(name, LoadOverrides { config, files }).await?;
    Ok(Vec::new())
}

pub(crate) async fn unload(
    state: &ServerState,
    name: String,
    request: &mut Request<Incoming>,
) -> Response<Body> {
    let body = body_of(state, request).await;
    ok_or_failure(unload_now(state, name, body).await)
}

async fn unload_now(state: &ServerState, name: String, body: Result<Bytes>) -> Result<Vec<u8>> {
    let with_dependents = protocol::decode_unload(&body?)?;
    state.engine.control().unload(name, with_dependents).await?;
    Ok(Vec::new())
}

async fn body_of(state: &ServerState, request: &mut Request<Incoming>) -> Result<Bytes> {
    Ok(request_body::read(request.body_mut(), None, state.options.max_input_size).await?)
}
