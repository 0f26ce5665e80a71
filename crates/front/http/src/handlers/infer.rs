//! Inference requests, answered with one response or with lines of responses.

use bytes::Bytes;
use galatea_engine::call::{DecodeFor, DecodedCall, FoundModel};
use galatea_frontend::CompressionFormat;
use galatea_http1::{HeaderValue, RequestHead, names, visible_text};
use galatea_protocol::{
    AnswerPlan,
    http::{EncodedResponse, decode_for_lines},
};
use galatea_types::{Error, LockExt, Result};
use http::StatusCode;

use crate::{
    compression,
    handlers::{
        codec::{self, InferBody},
        lines, load_report,
    },
    io::body_error::{BodyError, SizeLimit},
    request::{received_request::ReceivedRequest, route::ModelPath},
    response::{
        Response,
        answers::{JSON, TEXT, failure, ok_json, reply},
        body::Body,
    },
    state::ServerState,
};

const HEADER_LENGTH: &str = "Inference-Header-Content-Length";
const DECOUPLED: &str = "HTTP end point doesn't support models with decoupled transaction policy";
const OCTET_STREAM: &str = "application/octet-stream";
/// Below this many bytes one copy is cheaper than writing another piece.
const MAX_JOINED: usize = 16 << 10;

/// Answers an inference request, with a load report if the request asks for one.
pub(crate) async fn respond(
    state: &ServerState,
    path: ModelPath<'_>,
    received: &mut ReceivedRequest<'_>,
) -> Response {
    let response = respond_alone(state, path, received).await;
    load_report::added_to(response, state, &received.sender)
}

/// Answers an inference request. An error has the content type that Triton has set by then.
async fn respond_alone(
    state: &ServerState,
    path: ModelPath<'_>,
    received: &mut ReceivedRequest<'_>,
) -> Response {
    let is_in_lines = lines::are_accepted(received.sender.head);
    let found = match received.find_model(state, path) {
        Ok(found) if is_in_lines => Ok(found),
        Ok(found) => found.check_responds_once(DECOUPLED).map(|()| found),
        Err(error) => Err(error),
    };
    let found = match found {
        Ok(found) => found,
        Err(error) => return failure(&error, TEXT),
    };
    let format = match state.binary_media_type {
        // Cloud platforms have no compressed bodies.
        Some(_) => Ok(None),
        None => compression::format_of_request(received.sender.head),
    };
    let Ok(format) = format else { return unknown_coding() };
    let body = match read(state, received, format).await {
        Ok(read) => read,
        Err((error, content_type)) => return failure(&error, content_type),
    };
    match decode(state, received, found, body, is_in_lines).await {
        Ok(decoded) if is_in_lines => lines::respond(state, received, decoded).await,
        Ok(decoded) => respond_once(state, received, decoded).await,
        Err(error) => failure(&error, JSON),
    }
}

async fn decode(
    state: &ServerState,
    received: &mut ReceivedRequest<'_>,
    found: FoundModel,
    body: InferBody,
    is_in_lines: bool,
) -> Result<DecodedCall<AnswerPlan>> {
    let connection = received.connection.clone();
    let decode = move |body: &InferBody, to: &DecodeFor<'_>| {
        let (content, length) = (&body.content, body.header_end());
        if is_in_lines {
            return decode_for_lines(content, length, to.config, to.version, to.regions);
        }
        let mut last_header = connection.last_header.lock_unpoisoned();
        last_header.decode(content, length, to.config, to.version, to.regions)
    };
    let mut decoded = codec::decode_infer(state, received, found, body, decode).await?;
    decoded.forward_headers(&received.sender)?;
    Ok(decoded)
}

async fn respond_once(
    state: &ServerState,
    received: &mut ReceivedRequest<'_>,
    decoded: DecodedCall<AnswerPlan>,
) -> Response {
    let (mut running, answer) = match decoded.submit_unary(&mut received.exchange) {
        Ok(submitted) => submitted,
        Err(error) => return failure(&error, JSON),
    };
    let answer = answer.await;
    running.end();
    let encoded = match answer {
        Ok(response) => {
            received.exchange.record_result();
            codec::render(state, running, response).await
        }
        Err(error) => Err(error),
    };
    match encoded {
        Ok(encoded) => match state.binary_media_type {
            Some(media_type) if state.answers_by_media_type => {
                success_as_media(media_type, encoded)
            }
            Some(_) => success(encoded),
            None => match compression::format_for_response(received.sender.head) {
                Some(format) => success_compressed(state, format, encoded).await,
                None => success(encoded),
            },
        },
        Err(error) => failure(&error, TEXT),
    }
}

/// Refuses an unsupported compression and lists the supported ones.
fn unknown_coding() -> Response {
    let mut response = failure(&Error::unsupported("Unsupported compression type"), TEXT);
    let accepted = "gzip, deflate";
    response.head.set(names::ACCEPT_ENCODING, accepted);
    response
}

/// Reads the body and the length of its JSON. An error has its content type.
async fn read(
    state: &ServerState,
    received: &mut ReceivedRequest<'_>,
    format: Option<CompressionFormat>,
) -> Result<InferBody, (Error, &'static str)> {
    let as_text = |error: BodyError| (error.into(), TEXT);
    if format.is_some() {
        let limit = SizeLimit::of_compressed(state.options.max_input_size);
        let body = received.body(None, limit).await.map_err(as_text)?;
        // Only used for alignment: the limits of the header apply to the content.
        let hint = header_length(received.sender.head, None).unwrap_or_default();
        let inflated = compression::decompress(state, body, hint, &mut received.memory).await;
        let content = inflated.map_err(as_text)?;
        let header_length = header_length(received.sender.head, Some(content.len() as u64));
        return Ok(InferBody {
            content,
            header_length: header_length.map_err(|error| (error, TEXT))?,
        });
    }
    let (headers, length) = (received.sender.head, received.content_length());
    let header_length = match state.binary_media_type {
        Some(media_type) => media_header_length(media_type, headers, length),
        None => header_length(headers, length),
    };
    let header_length = header_length.map_err(|error| (error, TEXT))?;
    let as_json = |error: BodyError| (error.into(), JSON);
    let json = state.json_limit();
    json.check(header_length.unwrap_or(0)).map_err(as_json)?;
    let limit = if header_length.is_some() { SizeLimit::NONE } else { json };
    let content = received.body(header_length, limit).await.map_err(as_json)?;
    Ok(InferBody { content, header_length })
}

/// Returns the length of the JSON in the body. Returns `None` without the header: then the whole body is JSON.
fn header_length(headers: &RequestHead, content_length: Option<u64>) -> Result<Option<usize>> {
    let Some(value) = headers.get(HEADER_LENGTH) else { return Ok(None) };
    let plain = visible_text(value).and_then(|text| text.parse().ok());
    if let Some(length) =
        plain.filter(|&n: &usize| content_length.is_some_and(|all| n as u64 <= all))
    {
        return Ok(Some(length));
    }
    let text = String::from_utf8_lossy(value);
    let unparsable = |_| {
        Error::invalid_arg(format!("Unable to parse Inference-Header-Content-Length, got: {text}"))
    };
    let length: i128 = text.trim().parse().map_err(unparsable)?;
    in_body(length, content_length)
}

/// Returns the same length, from the media type of the body.
fn media_header_length(
    media_type: &str,
    headers: &RequestHead,
    content_length: Option<u64>,
) -> Result<Option<usize>> {
    let given = headers.get("content-type").map(String::from_utf8_lossy);
    let Some((before, number)) = given.as_deref().and_then(|text| text.split_once(media_type))
    else {
        return Ok(None);
    };
    if !before.is_empty() {
        let text = format!(
            "expect MIME type for binary data starts with '{media_type}', got: {}",
            given.as_deref().unwrap_or_default()
        );
        return Err(Error::invalid_arg(text));
    }
    let unparsable =
        |_| Error::invalid_arg(format!("Unable to parse inference header size, got: {number}"));
    in_body(number.trim().parse().map_err(unparsable)?, content_length)
}

/// Returns the length of a header that is not longer than the body.
fn in_body(length: i128, content_length: Option<u64>) -> Result<Option<usize>> {
    // The length of a chunked body is not known yet; decoding checks it later.
    let end = content_length.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    usize::try_from(length).ok().filter(|&n| n <= end).map(Some).ok_or_else(|| {
        let text = format!("inference header size should be in range (0, {end}), got: {length}");
        Error::invalid_arg(text)
    })
}

/// Returns the response in the coding that the client asked for. The header length is that of the JSON before compression.
async fn success_compressed(
    state: &ServerState,
    format: CompressionFormat,
    encoded: EncodedResponse,
) -> Response {
    let EncodedResponse { json, binary } = encoded;
    let header_length = (!binary.is_empty()).then_some(json.len() as u64);
    let mut pieces = vec![Bytes::from(json)];
    pieces.extend(binary);
    let Some(content) = compression::compress(state, format, pieces.clone()).await else {
        let binary = pieces.split_off(1);
        return success(EncodedResponse { json: pieces.concat(), binary });
    };
    let content_type = if header_length.is_some() { OCTET_STREAM } else { JSON };
    let mut response = reply(StatusCode::OK, content_type, content.into());
    if let Some(length) = header_length {
        response.head.set(HEADER_LENGTH, length);
    }
    response.head.set(names::CONTENT_ENCODING, format.name());
    response
}

/// Returns the response in the form for clients of SageMaker: the media type has the length of the JSON.
fn success_as_media(media_type: &str, encoded: EncodedResponse) -> Response {
    let mut response = success(encoded);
    if let Some(HeaderValue::Number(length)) = response.head.remove(HEADER_LENGTH) {
        response.head.set(names::CONTENT_TYPE, format!("{media_type}{length}"));
    }
    response
}

/// Returns the JSON followed by the binary tensors in output order. A header then has the length of the JSON.
fn success(encoded: EncodedResponse) -> Response {
    let EncodedResponse { mut json, binary } = encoded;
    if binary.is_empty() {
        return ok_json(json);
    }
    let header_length = json.len() as u64;
    let total: usize = binary.iter().map(Bytes::len).sum();
    let body = if total <= MAX_JOINED {
        json.reserve_exact(total);
        binary.iter().for_each(|data| json.extend_from_slice(data));
        Body::from(json)
    } else {
        Body::pieces(Bytes::from(json), binary)
    };
    let mut response = reply(StatusCode::OK, OCTET_STREAM, body);
    response.head.set(HEADER_LENGTH, header_length);
    response
}
