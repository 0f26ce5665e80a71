//! Sends spans to the collector.

use std::{fmt, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use galatea_types::Environment;
use galatea_web_client::{
    ClientSettings, HttpBody, HttpClient, HttpFailure, HttpVersion, Problem, TimeLimits,
};
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode,
    header::{CONTENT_TYPE, TE},
};
use http_body_util::BodyExt as _;
use prost::Message as _;

use crate::{
    messages::{ExportRequest, KeyValue, Resource, ResourceSpans, Scope, ScopeSpans, Span},
    options::ExportProtocol,
    settings::ExportSettings,
};

/// The time limit of one export.
const EXPORT: Duration = Duration::from_secs(10);
/// The time limit of a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// The most bytes of an answer. Its content is not used.
const MOST_ANSWER: u64 = 64 << 10;
/// The most characters of a collector's text in the log.
const MOST_REASON: usize = 200;
/// The name of the part of the program that makes the spans, as Triton gives it.
const SCOPE: &str = "triton-server";

/// The reason why spans were not delivered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    #[error("{0}")]
    Failed(#[from] HttpFailure),
    #[error("it answers {0}")]
    Status(StatusCode),
    #[error("it answers gRPC status {0}")]
    Grpc(GrpcStatus),
    #[error("no answer came within {} s", EXPORT.as_secs())]
    TooSlow,
    #[error("the request cannot be made: {0}")]
    Request(String),
}

/// The status of a call, with the text of the collector.
#[derive(Debug)]
pub(crate) struct GrpcStatus {
    code: String,
    message: String,
}

impl fmt::Display for GrpcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

/// The way to the collector.
#[derive(Debug)]
pub(crate) struct Transport {
    settings: ExportSettings,
    resource: Resource,
    client: HttpClient,
}

impl Transport {
    /// # Errors
    /// When TLS cannot be used.
    pub fn new(settings: ExportSettings, environment: &Environment) -> Result<Self, HttpFailure> {
        let limits = TimeLimits { connect: CONNECT, head: EXPORT, body: EXPORT };
        let version = match settings.protocol {
            ExportProtocol::Grpc => HttpVersion::Http2,
            ExportProtocol::HttpJson | ExportProtocol::HttpProtobuf => HttpVersion::Http1,
        };
        let client = ClientSettings { limits, version, ..ClientSettings::of(environment) };
        let attributes = settings.resource.iter();
        let attributes = attributes.map(|one| KeyValue::text(&one.name, &one.value)).collect();
        let resource = Resource { attributes };
        Ok(Self { client: HttpClient::new(&client)?, resource, settings })
    }

    /// Returns the address of the collector, for messages.
    pub fn place(&self) -> String {
        let uri = &self.settings.uri;
        let host = uri.authority().map_or("", |authority| authority.as_str());
        let path = if self.settings.protocol == ExportProtocol::Grpc { "" } else { uri.path() };
        format!("{}://{host}{path}", uri.scheme_str().unwrap_or_default())
    }

    /// Sends the spans in one request.
    ///
    /// # Errors
    /// When the collector does not take them in time.
    pub async fn send(&self, spans: Vec<Span>) -> Result<(), ExportError> {
        let sent = async {
            let response = self.client.send(self.request(spans)?, MOST_ANSWER).await?;
            match self.settings.protocol {
                ExportProtocol::Grpc => check_call(response).await,
                ExportProtocol::HttpJson | ExportProtocol::HttpProtobuf => check(response).await,
            }
        };
        tokio::time::timeout(EXPORT, sent).await.unwrap_or(Err(ExportError::TooSlow))
    }

    fn request(&self, spans: Vec<Span>) -> Result<Request<Bytes>, ExportError> {
        let scope = Some(Scope { name: SCOPE.to_owned() });
        let scope_spans = vec![ScopeSpans { scope, spans }];
        let resource = Some(self.resource.clone());
        let message =
            ExportRequest { resource_spans: vec![ResourceSpans { resource, scope_spans }] };
        let (content_type, body) = encode(self.settings.protocol, &message)?;
        let mut request = Request::new(body);
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.settings.uri.clone();
        let headers = request.headers_mut();
        headers.extend(self.settings.headers.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if self.settings.protocol == ExportProtocol::Grpc {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        Ok(request)
    }
}

fn encode(
    protocol: ExportProtocol,
    message: &ExportRequest,
) -> Result<(&'static str, Bytes), ExportError> {
    match protocol {
        ExportProtocol::HttpJson => {
            let text = serde_json::to_vec(message);
            let text = text.map_err(|error| ExportError::Request(error.to_string()))?;
            Ok(("application/json", text.into()))
        }
        ExportProtocol::HttpProtobuf => {
            Ok(("application/x-protobuf", message.encode_to_vec().into()))
        }
        ExportProtocol::Grpc => {
            let length = message.encoded_len();
            let mut frame = BytesMut::with_capacity(length + 5);
            // Not compressed.
            frame.put_u8(0);
            let length = u32::try_from(length);
            frame.put_u32(length.map_err(|error| ExportError::Request(error.to_string()))?);
            frame.put(&*message.encode_to_vec());
            Ok(("application/grpc", frame.freeze()))
        }
    }
}

/// Reads the answer to the end, so that its connection serves the next request.
async fn check(response: Response<HttpBody>) -> Result<(), ExportError> {
    let status = response.status();
    let read = response.into_body().all().await;
    if !status.is_success() {
        return Err(ExportError::Status(status));
    }
    Ok(read.map(drop)?)
}

async fn check_call(response: Response<HttpBody>) -> Result<(), ExportError> {
    if response.status() != StatusCode::OK {
        return Err(ExportError::Status(response.status()));
    }
    let (head, body) = response.into_parts();
    let body = body.collect().await?;
    let status = status_of(&head.headers).or_else(|| status_of(body.trailers()?));
    match status {
        Some(status) if status.code == "0" => Ok(()),
        Some(status) => Err(ExportError::Grpc(status)),
        None => {
            let text = "the answer ended without a status";
            Err(HttpFailure::new(Problem::Broken, text).into())
        }
    }
}

fn status_of(headers: &HeaderMap) -> Option<GrpcStatus> {
    let text = |name| {
        let value = headers.get(name)?.to_str().ok()?;
        let text = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
        let shown = text.chars().take(MOST_REASON).map(|c| if c.is_control() { ' ' } else { c });
        Some(shown.collect::<String>())
    };
    let code = text("grpc-status")?;
    Some(GrpcStatus { code, message: text("grpc-message").unwrap_or_default() })
}
