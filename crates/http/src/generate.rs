//! The generate extension: flat JSON in, flat JSON or server-sent events out. What fails before inference is answered
//! with a plain error.

use std::sync::Arc;

use galatea_engine::ServedModel;
use galatea_protocol::http::{encode_generate, error_body, server_sent_event};
use galatea_types::{Error, InferResponse, Result};
use http::{HeaderMap, HeaderValue, StatusCode, header::CONTENT_ENCODING};

use crate::{
    body::Body,
    load_report,
    received::Received,
    response_stream::ResponseStream,
    responses::{JSON, failure, reply},
    route::ModelPath,
    state::ServerState,
    streamed::{StreamedBody, bytes_of},
    work,
};

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");

/// Answers with the one response of the model.
pub(crate) async fn respond(
    state: &ServerState,
    path: ModelPath<'_>,
    received: &mut Received,
) -> http::Response<Body> {
    match submit(state, path, received).await {
        Ok((_model, responses)) => {
            let response = in_one(state, responses).await;
            load_report::added_to(response, &state.engine, received.headers())
        }
        Err(error) => failure(&error, JSON),
    }
}

/// Answers with an event per response.
pub(crate) async fn respond_with_events(
    state: &ServerState,
    path: ModelPath<'_>,
    received: &mut Received,
) -> http::Response<Body> {
    match submit(state, path, received).await {
        Ok((model, responses)) => {
            let response = in_events(state, model, responses).await;
            load_report::added_to(response, &state.engine, received.headers())
        }
        Err(error) => failure(&error, JSON),
    }
}

async fn submit(
    state: &ServerState,
    path: ModelPath<'_>,
    received: &mut Received,
) -> Result<(Arc<ServedModel>, ResponseStream)> {
    let version = path.version()?;
    let model = state.engine.model(path.name, version)?;
    refuse_compressed(received.headers())?;
    let body = received.body(None, state.json_limit()).await?;
    let mut context = received.context();
    let decoded = work::decode_flat(state, (&model, version), body, &mut context.memory);
    let responses = ResponseStream::submit(decoded.await?, context, &model, &state.options.memory)?;
    Ok((model, responses))
}

/// Only inference requests may be compressed.
fn refuse_compressed(headers: &HeaderMap) -> Result<()> {
    match headers.get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            Err(Error::invalid_arg("Unsupported content-encoding, only 'identity' is supported."))
        }
        _ => Ok(()),
    }
}

/// The status is that of the first response, as in Triton, even where the body is an error about their number.
async fn in_one(state: &ServerState, mut responses: ResponseStream) -> http::Response<Body> {
    let (mut status, mut body, mut count) = (StatusCode::OK, Vec::new(), 0usize);
    loop {
        let response = responses.next().await;
        let size = bytes_of(&response);
        if let Some(result) = response.result {
            if count == 0 {
                let written = state.options.heavy_work.run_sized(size, || document(result));
                (status, body) = match written.await {
                    Ok(document) => document,
                    Err(error) => return failure(&error.into(), JSON),
                };
            }
            count += 1;
        }
        if response.is_final {
            break;
        }
    }
    if count != 1 {
        body = error_body(
            "generate expects model to produce exactly 1 response, use generate stream for model that \
             generates various number of responses",
        );
    }
    reply(status, JSON, Body::one_chunk(body))
}

/// Waits for the first response, which decides the status; an error after it is an event as any other. A response that is
/// only an end makes no event.
async fn in_events(
    state: &ServerState,
    model: Arc<ServedModel>,
    mut responses: ResponseStream,
) -> http::Response<Body> {
    let first = responses.next().await;
    let is_failed = matches!(first.result, Some(Err(_)));
    let status = if is_failed { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let write = |response: galatea_types::Response| {
        response.result.map(|result| server_sent_event(&document(result).1))
    };
    let body = StreamedBody::new(state, first, responses, Arc::new(write), model);
    reply(status, EVENT_STREAM, Body::Streamed(Box::new(body)))
}

fn document(result: Result<InferResponse>) -> (StatusCode, Vec<u8>) {
    match result.and_then(|response| encode_generate(&response)) {
        Ok(json) => (StatusCode::OK, json),
        Err(error) => (StatusCode::BAD_REQUEST, error_body(error.message())),
    }
}
