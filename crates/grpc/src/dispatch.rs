//! Which service a call goes to, and what surrounds every call: counting, refusal while the server exits, the panic wall.

use std::{convert::Infallible, future::ready, pin::Pin, sync::Arc, time::Instant};

use bytes::{Buf, Bytes};
use galatea_engine::Engine;
use galatea_frontend::{
    ApiCategory, CallGuard, Caller, Client, ClientLimits, CompressionFormat, ConnectionAccount,
    InFlight, catch_panic,
};
use galatea_proto::{
    health::health_server::HealthServer,
    inference::grpc_inference_service_server::GrpcInferenceServiceServer,
};
use galatea_types::{ClientShare, MemoryBudget, MemoryReservation};
use http::{HeaderMap, HeaderValue, Request, Response, request::Parts};
use http_body_util::Full;
use hyper::body::Incoming;
use tonic::{Status, body::Body, codegen::Service};

use crate::{
    GrpcOptions,
    call_body::{CALL, CallBody, Content, Held, INTERNAL_ERROR},
    compression,
    deadline::deadline_of,
    forwarded::Forwarded,
    health::HealthService,
    infer,
    message::{MaxLength, over_budget, prefix},
    messages::Messages,
    outgoing::{self, MessageBody, StreamBody},
    reflection::{self, ReflectionRequests},
    repository,
    route::{ReflectionVersion, Route},
    service::InferenceService,
    state::{SHUTTING_DOWN, ServerState},
    status::status_of,
    stream::InferStream,
    told::Told,
    unread::Reader,
};

/// What calls are refused with beyond those that wait for the end of the start.
const STARTING: &str =
    "Server is starting: models are being loaded, and too many calls wait for them";

/// Whether a call is answered while the server starts.
fn is_health_check(route: Option<Route>, path: &str) -> bool {
    match route {
        Some(Route::HealthCheck | Route::HealthWatch) => true,
        Some(Route::Inference(ApiCategory::Health)) => !path.ends_with("/ModelReady"),
        _ => false,
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
            streams: Arc::default(),
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

    pub fn client_limits(&self) -> &ClientLimits {
        &self.state.options.client_limits
    }

    pub fn memory(&self) -> &Arc<MemoryBudget> {
        &self.state.options.memory
    }

    pub async fn answer(
        self,
        request: Request<Incoming>,
        (call, client, account): (CallGuard, Client, ConnectionAccount),
        reader: Reader,
    ) -> Result<Response<CallBody>, Infallible> {
        let route = Route::of(request.uri().path());
        let mut told = Told::begin(&self.state.options.requests, client.peer, &request, route);
        let Some(guard) = self.state.in_flight.try_begin() else {
            self.state.engine.count_refused_at_exit();
            return Ok(told.refused(Status::unavailable(SHUTTING_DOWN)).into_http());
        };
        let mut memory = self.state.options.memory.reservation();
        if let Err(error) = self.check_room(&mut memory) {
            return Ok(told.refused(error).into_http());
        }
        if !is_health_check(route, request.uri().path()) && !self.state.engine.started().await {
            return Ok(told.refused(Status::unavailable(STARTING)).into_http());
        }
        let answer = self.route(route, request, (reader, &client, &account), &mut told);
        let response = match catch_panic(CALL, answer).await {
            Some(Ok(response)) => {
                told.answered(&response, response.body().size());
                response
            }
            Some(Err(status)) => told.refused(status).into_http(),
            None => told.refused(Status::internal(INTERNAL_ERROR)).into_http(),
        };
        let held = Held::new(response.body(), guard, call, memory);
        Ok(response.map(|content| CallBody::new(content, held)))
    }

    /// Whether one more call may be open.
    fn check_room(&self, memory: &mut MemoryReservation) -> Result<(), Status> {
        memory.try_grow(CALL_WEIGHT).map_err(over_budget)?;
        if self.state.in_flight.count() + self.state.streams.count() <= MAX_CALLS {
            return Ok(());
        }
        let text = format!("{MAX_CALLS} calls are open, as many as may be; try again later");
        Err(Status::resource_exhausted(text))
    }

    /// A call waits for its message in a future of its own kind: there may be very many that do.
    fn route(
        &self,
        route: Option<Route>,
        request: Request<Incoming>,
        (reader, client, account): (Reader, &Client, &ConnectionAccount),
        told: &mut Told,
    ) -> Answer {
        let state = self.state.clone();
        let Some(route) = route else { return Box::pin(ready(Err(Status::unimplemented("")))) };
        let checked = self.check_head(route, &request, client, told);
        let counted = checked.and_then(|(caller, format)| {
            let (caller, share) = self.count_to_client(route, caller, (client, account))?;
            Ok((caller, share, format))
        });
        let (caller, share, format) = match counted {
            Ok(counted) => counted,
            Err(status) => return refuse(route, request, reader, &state, status),
        };
        let (mut head, body) = request.into_parts();
        let max_length = match route {
            Route::ModelInfer | Route::ModelStreamInfer | Route::RepositoryModelLoad => {
                MaxLength::Option(state.options.max_message_size)
            }
            Route::Inference(_)
            | Route::HealthCheck
            | Route::HealthWatch
            | Route::Reflection(_) => MaxLength::Small,
        };
        let messages = Messages::new(body, format, reader, max_length, &state);
        match route {
            Route::ModelInfer => {
                let call = InferCall::new(&state, &head.headers);
                let forwarded = Forwarded::of(&head.headers, &state.options.header_forwarding);
                Box::pin(model_infer(state, messages, call, (forwarded, caller, told.take())))
            }
            Route::ModelStreamInfer => {
                let call = InferCall::new(&state, &head.headers);
                let stream = InferStream::new(&state, &head.headers, messages, call.deadline);
                let stream = stream.told_of_by(told.take()).sent_by(caller);
                let stream = StreamBody::new(stream, call.format, &state);
                Box::pin(ready(Ok(outgoing::response(Content::Stream(stream), call.format))))
            }
            Route::RepositoryModelLoad => {
                Box::pin(while_holding(share, load(state, messages, caller)))
            }
            Route::Inference(_) => {
                head.extensions.insert(caller);
                let answer = generated(Box::new(head), messages, self.inference.clone());
                Box::pin(while_holding(share, answer))
            }
            Route::HealthCheck => {
                Box::pin(generated(Box::new(head), messages, self.health.clone()))
            }
            Route::HealthWatch => {
                let answer = generated(Box::new(head), messages, self.health.clone());
                Box::pin(async { Ok(answer.await?.map(into_watch)) })
            }
            Route::Reflection(version) => Box::pin(reflect(state, version, head, messages)),
        }
    }

    /// The requests of the call count to the limits of its client; the call itself does, unless it brings inference
    /// requests, each of which does.
    fn count_to_client(
        &self,
        route: Route,
        mut caller: Caller,
        (client, connection): (&Client, &ConnectionAccount),
    ) -> Result<(Caller, Option<Box<ClientShare>>), Status> {
        if route.category() == ApiCategory::Health {
            return Ok((caller, None));
        }
        let limits = &self.state.options.client_limits;
        caller.count_to(limits.account(client, connection, caller.identity()));
        if matches!(route, Route::ModelInfer | Route::ModelStreamInfer) {
            return Ok((caller, None));
        }
        let share = caller.begin(0).map_err(|error| status_of(&error.into()))?;
        Ok((caller, share))
    }

    /// Whether the client may make the call, as far as its head says; who it is, and how its messages are compressed.
    fn check_head<B>(
        &self,
        route: Route,
        request: &Request<B>,
        client: &Client,
        told: &mut Told,
    ) -> Result<(Caller, Option<CompressionFormat>), Status> {
        let (path, headers) = (request.uri().path(), request.headers());
        let values = |name| headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
        let authentication = &self.state.options.authentication;
        let admitted = authentication.admit(client, values, || route.access(path));
        let caller = admitted.map_err(|error| told.not_admitted(error, client.peer))?;
        if let Some(identity) = caller.identity() {
            told.exchange.is_by(identity);
        }
        let value_of = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
        let restricted = &self.state.options.restricted_protocols;
        restricted.check(route.category(), value_of).map_err(|unmet| {
            let header = unmet.header();
            let text = format!("This protocol is restricted, expecting header '{header}'");
            Status::unavailable(text)
        })?;
        Ok((caller, compression::format_of_request(headers)?))
    }
}

/// A refusal that the client sees: a call that is ended while it sends is reset, and some clients show that instead.
/// One that may send for ever is refused at once.
fn refuse(
    route: Route,
    request: Request<Incoming>,
    reader: Reader,
    state: &ServerState,
    status: Status,
) -> Answer {
    if route.is_stream() {
        return Box::pin(ready(Err(status)));
    }
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
    (forwarded, caller, mut told): (Forwarded, Caller, Told),
) -> Result<Response<Content>, Status> {
    let answered = async {
        let message = messages.only().await?;
        let exchange = &mut told.exchange;
        exchange.has_received(message.bytes.remaining());
        infer::infer(&state, message, (forwarded, caller, exchange), call.deadline).await
    };
    let response = match answered.await {
        Ok(response) => response,
        Err(status) => return Err(told.refused(status)),
    };
    let body = match call.format {
        None => MessageBody::new(response),
        Some(format) => MessageBody::compressed(response, format, &state).await,
    };
    told.succeeded(body.size() as u64);
    Ok(outgoing::response(Content::Message(body), call.format))
}

async fn while_holding<T>(share: Option<Box<ClientShare>>, answer: impl Future<Output = T>) -> T {
    let answer = answer.await;
    drop(share);
    answer
}

async fn load(
    state: Arc<ServerState>,
    messages: Messages,
    caller: Caller,
) -> Result<Response<Content>, Status> {
    let message = messages.only().await?;
    repository::load(&state.engine, message, &caller).await?;
    Ok(outgoing::response(Content::Message(MessageBody::empty()), None))
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

async fn reflect(
    state: Arc<ServerState>,
    version: ReflectionVersion,
    mut head: Parts,
    messages: Messages,
) -> Result<Response<Content>, Status> {
    let requests = ReflectionRequests::new(messages, state.begin_watch()?);
    head.headers.remove(compression::ENCODING);
    let mut response = reflection::answer(version, Request::from_parts(head, requests)).await?;
    compression::announce(None, response.headers_mut());
    Ok(response.map(Content::Watch))
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
