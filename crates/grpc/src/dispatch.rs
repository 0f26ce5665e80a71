//! Which service a call goes to, and what surrounds every call: counting, refusal while the server exits, the panic wall.

use std::{convert::Infallible, future::ready, pin::Pin, sync::Arc, time::Instant};

use bytes::{Buf, Bytes};
use galatea_engine::Engine;
use galatea_frontend::{CallGuard, CompressionFormat, InFlight, catch_panic};
use galatea_proto::{
    health::health_server::HealthServer,
    inference::grpc_inference_service_server::GrpcInferenceServiceServer,
};
use galatea_types::{MemoryBudget, MemoryReservation};
use http::{HeaderMap, Request, Response, request::Parts};
use http_body_util::Full;
use hyper::body::Incoming;
use tonic::{Status, body::Body, codegen::Service};

use crate::{
    GrpcOptions,
    call_body::{CALL, CallBody, Content, Held, INTERNAL_ERROR},
    compression,
    deadline::deadline_of,
    health::HealthService,
    infer,
    message::{MaxLength, over_budget, prefix},
    messages::Messages,
    outgoing::{self, MessageBody, StreamBody},
    repository,
    service::InferenceService,
    state::{SHUTTING_DOWN, ServerState},
    stream::InferStream,
    unread::Reader,
};

/// What calls are refused with beyond those that wait for the end of the start.
const STARTING: &str =
    "Server is starting: models are being loaded, and too many calls wait for them";

/// Whether a call is answered while the server starts.
fn is_health_check(path: &str) -> bool {
    match path.strip_prefix("/inference.GRPCInferenceService/") {
        Some(call) => matches!(call, "ServerLive" | "ServerReady"),
        None => path.starts_with("/grpc.health.v1.Health/"),
    }
}

/// Answers every call that comes in on any connection.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    inference: GrpcInferenceServiceServer<InferenceService>,
    health: HealthServer<HealthService>,
    state: Arc<ServerState>,
}

impl Dispatcher {
    pub fn new(engine: &Arc<Engine>, options: &GrpcOptions) -> Self {
        let state = ServerState {
            engine: engine.clone(),
            options: options.clone(),
            in_flight: Arc::default(),
            watches: Arc::default(),
        };
        let state = Arc::new(state);
        let service = InferenceService { state: state.clone() };
        Self {
            inference: GrpcInferenceServiceServer::new(service)
                .max_encoding_message_size(options.max_response_size),
            health: HealthServer::new(HealthService::new(state.clone())),
            state,
        }
    }

    pub fn in_flight(&self) -> &Arc<InFlight> {
        &self.state.in_flight
    }

    pub fn memory(&self) -> &Arc<MemoryBudget> {
        &self.state.options.memory
    }

    pub async fn answer(
        self,
        request: Request<Incoming>,
        call: CallGuard,
        reader: Reader,
    ) -> Result<Response<CallBody>, Infallible> {
        let Some(guard) = self.state.in_flight.try_begin() else {
            return Ok(Status::unavailable(SHUTTING_DOWN).into_http());
        };
        let mut memory = self.state.options.memory.reservation();
        if let Err(error) = self.check_room(&mut memory) {
            return Ok(error.into_http());
        }
        if !is_health_check(request.uri().path()) && !self.state.engine.started().await {
            return Ok(Status::unavailable(STARTING).into_http());
        }
        let response = match catch_panic(CALL, self.route(request, reader)).await {
            Some(Ok(response)) => response,
            Some(Err(status)) => status.into_http(),
            None => Status::internal(INTERNAL_ERROR).into_http(),
        };
        let held = Held::new(response.body(), guard, call, memory);
        Ok(response.map(|content| CallBody::new(content, held)))
    }

    /// Whether one more call may be open.
    fn check_room(&self, memory: &mut MemoryReservation) -> Result<(), Status> {
        memory.try_grow(CALL_WEIGHT).map_err(over_budget)?;
        if self.state.in_flight.count() <= MAX_CALLS {
            return Ok(());
        }
        let text = format!("{MAX_CALLS} calls are open, as many as may be; try again later");
        Err(Status::resource_exhausted(text))
    }

    /// A call waits for its message in a future of its own kind: there may be very many that do.
    fn route(&self, request: Request<Incoming>, reader: Reader) -> Answer {
        let path = request.uri().path();
        let state = self.state.clone();
        let format = match compression::format_of_request(request.headers()) {
            Ok(format) => format,
            Err(status) => return refuse(request, reader, &state, status),
        };
        let max_length = MaxLength::Option(state.options.max_message_size);
        match path.strip_prefix("/inference.GRPCInferenceService/") {
            Some("ModelInfer") => {
                let call = InferCall::new(&state, request.headers());
                let body = request.into_body();
                let messages = Messages::new(body, format, reader, max_length, &state);
                Box::pin(model_infer(state, messages, call))
            }
            Some("ModelStreamInfer") => {
                let call = InferCall::new(&state, request.headers());
                let (head, body) = request.into_parts();
                let messages = Messages::new(body, format, reader, max_length, &state);
                let stream = InferStream::new(&state, &head.headers, messages, call.deadline);
                let stream = StreamBody::new(stream, call.format, &state);
                Box::pin(ready(Ok(outgoing::response(Content::Stream(stream), call.format))))
            }
            Some("RepositoryModelLoad") => {
                let body = request.into_body();
                let messages = Messages::new(body, format, reader, max_length, &state);
                Box::pin(load(state, messages))
            }
            Some(_) => {
                let (head, messages) = small(request, format, reader, &state);
                let service = self.inference.clone();
                Box::pin(generated(head, messages, service))
            }
            None if path == "/grpc.health.v1.Health/Watch" => {
                let (head, messages) = small(request, format, reader, &state);
                let service = self.health.clone();
                Box::pin(async { Ok(generated(head, messages, service).await?.map(into_watch)) })
            }
            None if path.starts_with("/grpc.health.v1.Health/") => {
                let (head, messages) = small(request, format, reader, &state);
                let service = self.health.clone();
                Box::pin(generated(head, messages, service))
            }
            None => Box::pin(ready(Err(Status::unimplemented("")))),
        }
    }
}

/// A refusal that the client sees: a call that is ended while it sends is reset, and some clients show that instead.
fn refuse(
    request: Request<Incoming>,
    reader: Reader,
    state: &ServerState,
    status: Status,
) -> Answer {
    let messages = Messages::new(request.into_body(), None, reader, MaxLength::Small, state);
    Box::pin(async move {
        drop(messages.only().await);
        Err(status)
    })
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Content>, Status>> + Send>>;

/// What the head of a call says about its inferences.
struct InferCall {
    deadline: Option<Instant>,
    /// Of the responses.
    format: Option<CompressionFormat>,
}

impl InferCall {
    fn new(state: &ServerState, headers: &HeaderMap) -> Self {
        let level = state.options.response_compression;
        Self {
            deadline: deadline_of(headers),
            format: compression::format_of_response(level, headers),
        }
    }
}

async fn model_infer(
    state: Arc<ServerState>,
    messages: Messages,
    call: InferCall,
) -> Result<Response<Content>, Status> {
    let message = messages.only().await?;
    let response = infer::infer(&state, message, call.deadline).await?;
    let body = match call.format {
        None => MessageBody::new(response),
        Some(format) => MessageBody::compressed(response, format, &state).await,
    };
    Ok(outgoing::response(Content::Message(body), call.format))
}

async fn load(state: Arc<ServerState>, messages: Messages) -> Result<Response<Content>, Status> {
    let message = messages.only().await?;
    repository::load(&state.engine, message).await?;
    Ok(outgoing::response(Content::Message(MessageBody::empty()), None))
}

fn small(
    request: Request<Incoming>,
    format: Option<CompressionFormat>,
    reader: Reader,
    state: &ServerState,
) -> (Box<Parts>, Messages) {
    let (head, body) = request.into_parts();
    (Box::new(head), Messages::new(body, format, reader, MaxLength::Small, state))
}

/// A call that the generated service answers: names and flags have bounds, and time-outs hold, before it sees any of
/// the message.
async fn generated<S>(
    mut head: Box<Parts>,
    messages: Messages,
    mut service: S,
) -> Result<Response<Content>, Status>
where
    S: Service<Request<Full<Bytes>>, Response = Response<Body>, Error = Infallible>,
{
    let mut message = messages.only().await?;
    // The service need not decompress it again.
    head.headers.remove(compression::ENCODING);
    let length = message.bytes.remaining();
    let framed = [&prefix(length)[..], &message.bytes.copy_to_bytes(length)].concat();
    let Ok(mut response) = service.call(Request::from_parts(*head, Full::from(framed))).await;
    compression::announce(None, response.headers_mut());
    Ok(response.map(Content::Generated))
}

fn into_watch(content: Content) -> Content {
    match content {
        Content::Generated(body) => Content::Watch(body),
        other => other,
    }
}

/// What an open call takes, about.
const CALL_WEIGHT: usize = 4 << 10;
/// Calls that may be open at a time on all connections.
const MAX_CALLS: usize = 64 << 10;
