//! The generate extension: flat JSON as input, flat JSON or server-sent events as output. Failures before inference get
//! a plain error.

use std::sync::Arc;

use galatea_http1::RequestHead;
use galatea_protocol::http::{encode_generate, error_body, server_sent_event};
use galatea_types::{Error, InferResponse, Result};
use http::StatusCode;

use crate::{
    handlers::{codec, load_report},
    request::{received_request::ReceivedRequest, route::ModelPath},
    response::{
        Response,
        answers::{JSON, failed, failure, reply},
        body::Body,
        stream::ResponseStream,
        streamed_body::{StreamedBody, bytes_of},
    },
    state::ServerState,
};

const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

/// Answers with the only response of the model, or, if `has_events`, with an event per response.
pub(crate) async fn respond(
    state: &ServerState,
    path: ModelPath<'_>,
    received: &mut ReceivedRequest<'_>,
    has_events: bool,
) -> Response {
    let response = match submit(state, path, received).await {
        Ok(responses) if has_events => in_events(state, responses).await,
        Ok(responses) => in_one(state, responses).await,
        Err(error) => failure(&error, JSON),
    };
    load_report::added_to_generated(response, state, &received.sender)
}

async fn submit(
    state: &ServerState,
    path: ModelPath<'_>,
    received: &mut ReceivedRequest<'_>,
) -> Result<ResponseStream> {
    let found = received.find_model(state, path)?;
    refuse_compressed(received.sender.head)?;
    let body = received.body(None, state.json_limit()).await?;
    let decoded = codec::decode_flat(state, received, found, body).await?;
    let exchange = &mut received.exchange;
    Ok(ResponseStream::start(decoded, exchange, &state.options.memory)?.0)
}

/// Refuses a compressed body: only inference requests may be compressed.
fn refuse_compressed(headers: &RequestHead) -> Result<()> {
    match headers.get("content-encoding") {
        Some(encoding) if encoding != b"identity" => {
            Err(Error::invalid_arg("Unsupported content-encoding, only 'identity' is supported."))
        }
        _ => Ok(()),
    }
}

/// Returns the only response. The status is that of the first response, as in Triton, even if the body is an error
/// about their number.
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

/// Waits for the first response, which decides the status. A later error is an ordinary event. A response that only
/// marks the end makes no event.
async fn in_events(state: &ServerState, mut responses: ResponseStream) -> Response {
    let first = responses.next().await;
    let is_failed = matches!(first.result, Some(Err(_)));
    let status = if is_failed { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let write = |response: galatea_types::Response| {
        response.result.map(|result| server_sent_event(&Document::of(result).json))
    };
    let body = StreamedBody::new(state, first, responses, Arc::new(write));
    reply(status, EVENT_STREAM, Body::Streamed(Box::new(body)))
}

/// A response as JSON, or the error in its place.
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
