//! Inference answered with a line of JSON per response, where the client asks for it: beyond Triton, which
//! refuses decoupled models here.

use std::sync::Arc;

use galatea_engine::ServedModel;
use galatea_frontend::Exchange;
use galatea_http1::{RequestHead, visible_text};
use galatea_protocol::{
    AnswerPlan,
    http::{decode_for_lines, error_line, response_line},
    http_status,
};
use galatea_types::{InferResponse, RequestContext, Response, Result};
use http::StatusCode;

use crate::{
    body::Body,
    response::Response as HttpResponse,
    response_stream::ResponseStream,
    responses::{JSON, failure, reply},
    state::ServerState,
    streamed::StreamedBody,
    work::{self, InferBody},
};

const MEDIA_TYPE: &str = "application/x-ndjson";

/// Whether the client names the media type, which `*/*` does not.
pub(crate) fn are_accepted(headers: &RequestHead) -> bool {
    let values = headers.get_all("accept").filter(|value| value.len() >= MEDIA_TYPE.len());
    let values = values.filter_map(visible_text);
    values.flat_map(|value| value.split(',')).any(names_lines)
}

/// An element of `Accept`; a weight of 0 excludes it.
fn names_lines(range: &str) -> bool {
    let mut parts = range.split(';').map(str::trim);
    let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(MEDIA_TYPE));
    let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
    is_named && weight.and_then(|q| q.parse().ok()).is_none_or(|q: f32| q > 0.0)
}

/// Waits for the first response, whose error decides the status; later errors are lines.
pub(crate) async fn respond(
    state: &ServerState,
    (model, version): (Arc<ServedModel>, Option<i64>),
    body: InferBody,
    context: RequestContext,
    (headers, exchange): (&RequestHead, &mut Exchange),
) -> HttpResponse {
    let submitted = submit(state, (&model, version), body, context, (headers, exchange)).await;
    let (mut responses, plan, empty) = match submitted {
        Ok(submitted) => submitted,
        Err(error) => return failure(&error, JSON),
    };
    let first = responses.next().await;
    let status = status_for(&first);
    let labels = model.clone();
    let write = move |response: Response| write_line(response, &plan, &empty, &labels);
    let body = StreamedBody::new(state, first, responses, Arc::new(write), model);
    reply(status, MEDIA_TYPE, Body::Streamed(Box::new(body)))
}

async fn submit(
    state: &ServerState,
    (model, version): (&Arc<ServedModel>, Option<i64>),
    body: InferBody,
    mut context: RequestContext,
    (headers, exchange): (&RequestHead, &mut Exchange),
) -> Result<(ResponseStream, AnswerPlan, InferResponse)> {
    let memory = &mut context.memory;
    let decoded = work::decode_infer(state, (model, version), body, memory, decode_for_lines);
    let (mut request, plan) = decoded.await?;
    state.forward_headers(headers, &mut request)?;
    exchange.is_read(&request, &mut context);
    exchange.is_submitted();
    let empty = end_of(model, request.id.clone());
    let responses = ResponseStream::submit(request, context, model, &state.options.memory)?;
    Ok((responses, plan, empty))
}

fn status_for(first: &Response) -> StatusCode {
    match first {
        Response { result: Some(Err(error)), .. } => {
            let status = StatusCode::from_u16(http_status(error.code()));
            status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        }
        _ => StatusCode::OK,
    }
}

/// The response that stands for an end without outputs.
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
    use crate::sent_head;

    fn accepted(values: &[&'static str]) -> bool {
        let headers: Vec<_> = values.iter().map(|value| ("Accept", *value)).collect();
        are_accepted(&sent_head::with(&headers))
    }

    #[test]
    fn lines_are_for_those_who_name_them() {
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
