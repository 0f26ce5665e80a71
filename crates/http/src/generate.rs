//! The generate extension: flat JSON in, flat JSON or server-sent events out. What fails before inference is answered
//! with a plain error.

use std::sync::Arc;

use galatea_engine::ServedModel;
use galatea_http1::RequestHead;
use galatea_protocol::http::{encode_generate, error_body, server_sent_event};
use galatea_types::{Error, InferResponse, Result};
use http::StatusCode;

use crate::{
    body::Body,
    load_report,
    received::Received,
    response::Response,
    response_stream::ResponseStream,
    responses::{JSON, failed, failure, reply},
    route::ModelPath,
    state::ServerState,
    streamed::{StreamedBody, bytes_of},
    work,
};

const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

/// Answers with the one response of the model.
pub(crate) async fn respond(
    state: &ServerState,
    path: ModelPath<'_>,
    received: &mut Received<'_>,
) -> Response {
    match submit(state, path, received).await {
        Ok((_model, responses)) => {
            let response = in_one(state, responses).await;
            load_report::added_to(response, &state.engine, received.head)
        }
        Err(error) => failure(&error, JSON),
    }
}

/// Answers with an event per response.
pub(crate) async fn respond_with_events(
    state: &ServerState,
    path: ModelPath<'_>,
    received: &mut Received<'_>,
) -> Response {
    match submit(state, path, received).await {
        Ok((model, responses)) => {
            let response = in_events(state, model, responses).await;
            load_report::added_to(response, &state.engine, received.head)
        }
        Err(error) => failure(&error, JSON),
    }
}

async fn submit(
    state: &ServerState,
    path: ModelPath<'_>,
    received: &mut Received<'_>,
) -> Result<(Arc<ServedModel>, ResponseStream)> {
    let version = path.version()?;
    let model = state.engine.model(path.name, version)?;
    received.exchange.is_about(model.config().name(), model.version());
    refuse_compressed(received.head)?;
    let body = received.body(None, state.json_limit()).await?;
    let mut context = received.context();
    let decoded = work::decode_flat(state, (&model, version), body, &mut context.memory);
    let request = decoded.await?;
    received.exchange.is_read(&request, &mut context);
    received.exchange.is_submitted();
    let responses = ResponseStream::submit(request, context, &model, &state.options.memory)?;
    Ok((model, responses))
}

/// Only inference requests may be compressed.
fn refuse_compressed(headers: &RequestHead) -> Result<()> {
    match headers.get("content-encoding") {
        Some(encoding) if encoding != b"identity" => {
            Err(Error::invalid_arg("Unsupported content-encoding, only 'identity' is supported."))
        }
        _ => Ok(()),
    }
}

/// The status is that of the first response, as in Triton, even where the body is an error about their number.
async fn in_one(state: &ServerState, mut responses: ResponseStream) -> Response {
    let (mut document, mut count) = (Document::default(), 0usize);
    loop {
        let response = responses.next().await;
        let size = bytes_of(&response);
        if let Some(result) = response.result {
            if count == 0 {
                let written = state.options.heavy_work.run_sized(size, || Document::of(result));
                document = match written.await {
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
    let status = document.status();
    if count != 1 {
        document.fail(Error::unsupported(
            "generate expects model to produce exactly 1 response, use generate stream for model that \
             generates various number of responses",
        ));
    }
    let Document { json, error } = document;
    let response = reply(status, JSON, Body::one_chunk(json));
    match error {
        Some(error) => failed(response, error),
        None => response,
    }
}

/// Waits for the first response, which decides the status; an error after it is an event as any other. A response that is
/// only an end makes no event.
async fn in_events(
    state: &ServerState,
    model: Arc<ServedModel>,
    mut responses: ResponseStream,
) -> Response {
    let first = responses.next().await;
    let is_failed = matches!(first.result, Some(Err(_)));
    let status = if is_failed { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let write = |response: galatea_types::Response| {
        response.result.map(|result| server_sent_event(&Document::of(result).json))
    };
    let body = StreamedBody::new(state, first, responses, Arc::new(write), model);
    reply(status, EVENT_STREAM, Body::Streamed(Box::new(body)))
}

/// A response as JSON, or why there is none.
#[derive(Default)]
struct Document {
    json: Vec<u8>,
    error: Option<Error>,
}

impl Document {
    fn of(result: Result<InferResponse>) -> Self {
        let mut document = Self::default();
        match result.and_then(|response| encode_generate(&response)) {
            Ok(json) => document.json = json,
            Err(error) => document.fail(error),
        }
        document
    }

    fn fail(&mut self, error: Error) {
        self.json = error_body(error.message());
        self.error = Some(error);
    }

    fn status(&self) -> StatusCode {
        if self.error.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK }
    }
}
