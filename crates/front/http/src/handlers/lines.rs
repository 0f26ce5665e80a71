//! Inference answered with a line of JSON per response, if the client asks for it. This goes beyond Triton, which
//! refuses decoupled models here.

use std::sync::Arc;

use galatea_engine::{ServedModel, call::DecodedCall};
use galatea_http1::RequestHead;
use galatea_protocol::{
    AnswerPlan,
    http::{error_line, response_line},
};
use galatea_types::{InferResponse, Response, Result};
use http::StatusCode;

use crate::{
    request::{media_types, received_request::ReceivedRequest},
    response::{
        Response as HttpResponse,
        answers::{JSON, failure, reply, status_of},
        body::Body,
        stream::ResponseStream,
        streamed_body::StreamedBody,
    },
    state::ServerState,
};

const MEDIA_TYPE: &str = "application/x-ndjson";

/// Returns `true` if the client names the media type; `*/*` does not.
pub(crate) fn are_accepted(headers: &RequestHead) -> bool {
    media_types::is_named(headers, MEDIA_TYPE)
}

/// Waits for the first response, whose error decides the status. Later errors are lines.
pub(crate) async fn respond(
    state: &ServerState,
    received: &mut ReceivedRequest<'_>,
    decoded: DecodedCall<AnswerPlan>,
) -> HttpResponse {
    let empty = end_of(decoded.model(), decoded.request().id.clone());
    let started = ResponseStream::start(decoded, &mut received.exchange, &state.options.memory);
    let (mut responses, plan) = match started {
        Ok(started) => started,
        Err(error) => return failure(&error, JSON),
    };
    let first = responses.next().await;
    let status = match &first.result {
        Some(Err(error)) => status_of(error),
        _ => StatusCode::OK,
    };
    let model = responses.model().clone();
    let write = move |response: Response| write_line(response, &plan, &empty, &model);
    let body = StreamedBody::new(state, first, responses, Arc::new(write));
    reply(status, MEDIA_TYPE, Body::Streamed(Box::new(body)))
}

/// Returns the response that represents an end without outputs.
fn end_of(model: &ServedModel, id: String) -> InferResponse {
    InferResponse {
        model_name: model.config().name().clone(),
        model_version: model.version(),
        id,
        parameters: Vec::new(),
        outputs: Vec::new(),
    }
}

fn write_line(
    response: Response,
    plan: &AnswerPlan,
    empty: &InferResponse,
    model: &ServedModel,
) -> Option<Vec<u8>> {
    let result: Result<InferResponse> = match response.result {
        Some(result) => result,
        None if plan.wants_empty_final() => Ok(empty.clone()),
        None => return None,
    };
    let label = |output: &str, class| model.label(output, class);
    let line = result.and_then(|r| response_line(r, response.is_final, plan, label));
    Some(line.unwrap_or_else(|error| error_line(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::sent_head;

    fn accepted(values: &[&'static str]) -> bool {
        let headers: Vec<_> = values.iter().map(|value| ("Accept", *value)).collect();
        are_accepted(&sent_head::with(&headers))
    }

    #[test]
    fn json_lines_need_an_explicit_accept_header() {
        assert!(accepted(&["application/x-ndjson"]));
        assert!(accepted(&["application/json;q=0.5, Application/X-NDJSON ; q=0.9"]));
        assert!(accepted(&["text/html", "application/x-ndjson"]));
        assert!(!accepted(&[]));
        assert!(!accepted(&["*/*", "application/*", "application/json"]));
        assert!(!accepted(&["application/x-ndjson;q=0"]));
        assert!(!accepted(&["application/x-ndjson;q=0.000"]));
        assert!(!accepted(&["application/x-ndjson2"]));
    }
}
