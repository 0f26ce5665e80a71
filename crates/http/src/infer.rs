//! Inference requests: body in, one response or lines of responses out.

use bytes::Bytes;
use galatea_engine::ServedModel;
use galatea_frontend::CancelOnDrop;
use galatea_protocol::{
    AnswerPlan, NoRegions,
    http::{EncodedResponse, decode, encode},
};
use galatea_types::{Error, InferResponse, Refused, RequestContext, Responder, Result};
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING},
};
use hyper::body::{Body as _, Incoming};

use crate::{
    body::Body,
    body_error::BodyError,
    compression::{self, Coding},
    lines, request_body,
    responses::{JSON, TEXT, failure, ok_json, reply},
    route::ModelPath,
    state::ServerState,
};

const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");
const OCTET_STREAM: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// Below this one copy is cheaper than another piece to write.
const MAX_JOINED: usize = 16 << 10;

/// Answers an inference request. An error carries the content type that Triton has set by then.
pub(crate) async fn respond(
    state: &ServerState,
    path: ModelPath<'_>,
    request: &mut Request<Incoming>,
) -> Response<Body> {
    let is_in_lines = lines::are_accepted(request.headers());
    let checked = (|| {
        let version = path.version()?;
        let model = state.engine.model(path.name, version)?;
        if !is_in_lines {
            check_unary(&model)?;
        }
        Ok((model, version))
    })();
    let (model, version) = match checked {
        Ok(found) => found,
        Err(error) => return failure(&error, TEXT),
    };
    let Some(coding) = Coding::of_request(request.headers()) else { return unknown_coding() };
    let limit = state.options.max_input_size;
    let (body, header_length) = match read(request, coding, limit).await {
        Ok(read) => read,
        Err((error, content_type)) => return failure(&error, content_type),
    };
    if is_in_lines {
        return lines::respond(state, model, version, (body, header_length)).await;
    }
    match infer(&model, version, &body, header_length).await {
        Ok((response, plan)) => {
            drop(body);
            let label = |output: &str, class| model.label(output, class);
            match encode(response, &plan, label) {
                Ok(encoded) => success_as(Coding::for_response(request.headers()), encoded).await,
                Err(error) => failure(&error, TEXT),
            }
        }
        Err(error) => failure(&error, JSON),
    }
}

async fn infer(
    model: &ServedModel,
    version: Option<i64>,
    body: &Bytes,
    header_length: Option<usize>,
) -> Result<(InferResponse, AnswerPlan)> {
    let header_length = header_length.unwrap_or(body.len());
    let context = RequestContext::new();
    let (request, plan) = decode(body, header_length, model.config(), version, &NoRegions)?;
    let cancel = CancelOnDrop::new(context.cancellation.clone());
    let (responder, answer) = Responder::unary();
    model.infer(request, context, responder).map_err(Refused::into_error)?;
    let answer = answer.await;
    cancel.disarm();
    let response =
        answer.map_err(|_| Error::internal("the request was dropped without a response"))??;
    Ok((response, plan))
}

fn check_unary(model: &ServedModel) -> Result<()> {
    if model.config().is_decoupled() {
        return Err(Error::unsupported(
            "HTTP end point doesn't support models with decoupled transaction policy",
        ));
    }
    Ok(())
}

/// A compression that we do not have is refused with the list of those we have.
fn unknown_coding() -> Response<Body> {
    let mut response = failure(&Error::unsupported("Unsupported compression type"), TEXT);
    let accepted = HeaderValue::from_static("gzip, deflate");
    response.headers_mut().insert(ACCEPT_ENCODING, accepted);
    response
}

/// The body and where its JSON ends. An error comes with its content type.
async fn read(
    request: &mut Request<Incoming>,
    coding: Coding,
    limit: usize,
) -> Result<(Bytes, Option<usize>), (Error, HeaderValue)> {
    let as_text = |error: BodyError| (error.into(), TEXT);
    if coding != Coding::Identity {
        let body = request_body::read(request.body_mut(), None, limit).await;
        // Only for alignment here: its limits are those of the content.
        let hint = header_length(request.headers(), None).unwrap_or_default();
        let body = compression::decompress(body.map_err(as_text)?, hint, limit).await;
        let body = body.map_err(as_text)?;
        let header_length = header_length(request.headers(), Some(body.len() as u64));
        return Ok((body, header_length.map_err(|error| (error, TEXT))?));
    }
    let content_length = request.body().size_hint().exact();
    let header_length =
        header_length(request.headers(), content_length).map_err(|error| (error, TEXT))?;
    let body = request_body::read(request.body_mut(), header_length, limit).await;
    Ok((body.map_err(|error| (error.into(), JSON))?, header_length))
}

/// Where the JSON of the body ends; `None` without the header: the body is JSON to its end.
fn header_length(headers: &HeaderMap, content_length: Option<u64>) -> Result<Option<usize>> {
    let Some(value) = headers.get(HEADER_LENGTH) else { return Ok(None) };
    let text = String::from_utf8_lossy(value.as_bytes());
    let unparsable = |_| {
        Error::invalid_arg(format!("Unable to parse Inference-Header-Content-Length, got: {text}"))
    };
    let length: i128 = text.trim().parse().map_err(unparsable)?;
    // The length of a chunked body is not known yet; decoding checks it then.
    let end = content_length.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    usize::try_from(length).ok().filter(|&n| n <= end).map(Some).ok_or_else(|| {
        let text = format!("inference header size should be in range (0, {end}), got: {length}");
        Error::invalid_arg(text)
    })
}

/// The response in the coding the client asked for. Its header length is that of the JSON before it is compressed.
async fn success_as(coding: Coding, encoded: EncodedResponse) -> Response<Body> {
    if coding == Coding::Identity {
        return success(encoded);
    }
    let EncodedResponse { json, binary } = encoded;
    let header_length = (!binary.is_empty()).then(|| HeaderValue::from(json.len()));
    let mut pieces = vec![Bytes::from(json)];
    pieces.extend(binary);
    let Some(content) = compression::compress(coding, pieces.clone()).await else {
        let binary = pieces.split_off(1);
        return success(EncodedResponse { json: pieces.concat(), binary });
    };
    let content_type = if header_length.is_some() { OCTET_STREAM } else { JSON };
    let mut response = reply(StatusCode::OK, content_type, content.into());
    if let Some(length) = header_length {
        response.headers_mut().insert(HEADER_LENGTH, length);
    }
    response.headers_mut().insert(CONTENT_ENCODING, coding.header_value());
    response
}

/// The JSON, and behind it the binary tensors in output order; a header then gives where the JSON ends.
fn success(encoded: EncodedResponse) -> Response<Body> {
    let EncodedResponse { mut json, binary } = encoded;
    if binary.is_empty() {
        return ok_json(json);
    }
    let header_length = HeaderValue::from(json.len());
    let total: usize = binary.iter().map(Bytes::len).sum();
    let body = if total <= MAX_JOINED {
        json.reserve_exact(total);
        binary.iter().for_each(|data| json.extend_from_slice(data));
        Body::from(json)
    } else {
        Body::pieces(Bytes::from(json), binary)
    };
    let mut response = reply(StatusCode::OK, OCTET_STREAM, body);
    response.headers_mut().insert(HEADER_LENGTH, header_length);
    response
}
