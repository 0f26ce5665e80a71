//! Dispatches calls to their services. Around each call it counts, refuses while the server exits, and catches panics.

use std::{future::ready, pin::Pin, sync::Arc};

use galatea_engine::Engine;
use galatea_frontend::{
    Action, Activity, ApiCategory, Caller, Client, CompressionFormat, ConnectionAccount,
    RequestGuard,
};
use galatea_types::{ClientShare, MemoryReservation};
use h2::RecvStream;
use http::{HeaderValue, Request, Response, request::Parts};
use tonic::Status;

use crate::{
    GrpcOptions,
    answer::{Answer, AnsweringCall},
    call_form,
    call_record::CallRecord,
    compression,
    content::Content,
    health::HealthService,
    infer::InferHead,
    load_report::{LoadStream, Reporter},
    message::{MaxLength, Message, decode, over_budget},
    messages::Messages,
    reflection::{self, ReflectionRequests},
    repository,
    response_body::{self, MessageBody, StreamBody},
    route::{ReflectionVersion, Route},
    sender::Sender,
    service::ShortCall,
    state::{SHUTTING_DOWN, ServerState},
    status::status_of,
    stream::InferStream,
    unary_infer::UnaryInfer,
    unread_bytes::{Reader, UnreadBytes},
};

/// The refusal of calls when too many wait for the server to start.
const STARTING: &str =
    "Server is starting: models are being loaded, and too many calls wait for them";

/// Returns `true` for calls that are answered while the server starts.
fn is_health_check(route: Option<Route>) -> bool {
    route.is_some_and(|route| route.access() == Action::Live)
}

pub(crate) struct Dispatcher {
    health: HealthService,
    pub state: Arc<ServerState>,
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
        Self { health: HealthService::new(state.clone()), state }
    }

    /// Begins to answer a call on this connection. `held` receives the resources of the call.
    pub fn begin(
        context: &Arc<ConnectionContext>,
        request: Request<RecvStream>,
        held: &mut CallResources,
    ) -> CallStart {
        let dispatcher = &context.dispatcher;
        let state = &dispatcher.state;
        let route = Route::of(request.uri().path());
        let peer = context.client.peer;
        let mut told = CallRecord::begin(&state.options.requests, peer, &request, route);
        let incoming = IncomingCall { request, reader: context.unread.reader() };
        held.guard = state.in_flight.try_begin();
        if held.guard.is_none() {
            state.engine.availability().count_refused_at_exit();
            return CallStart::Answered(
                told.refused(Status::unavailable(SHUTTING_DOWN)).into_http(),
            );
        }
        if let Err(error) = dispatcher.check_room(&mut held.memory) {
            return CallStart::Answered(told.refused(error).into_http());
        }
        if state.engine.availability().is_starting() && !is_health_check(route) {
            let context = context.clone();
            return CallStart::Waiting(Box::pin(begin_when_started(
                context, route, incoming, told,
            )));
        }
        CallStart::Answering(dispatcher.answering(route, incoming, context, told))
    }

    fn answering(
        &self,
        route: Option<Route>,
        incoming: IncomingCall,
        context: &ConnectionContext,
        mut told: CallRecord,
    ) -> AnsweringCall {
        let answer = self.route(route, incoming, context, &mut told);
        AnsweringCall { answer: Some(answer), told }
    }

    fn check_room(&self, memory: &mut MemoryReservation) -> Result<(), Status> {
        memory.try_grow(CALL_WEIGHT).map_err(over_budget)?;
        if self.state.in_flight.count() + self.state.streams.count() <= MAX_CALLS {
            return Ok(());
        }
        let text = format!("{MAX_CALLS} calls are open, the most that may be; try again later");
        Err(Status::resource_exhausted(text))
    }

    fn route(
        &self,
        route: Option<Route>,
        IncomingCall { request, reader }: IncomingCall,
        context: &ConnectionContext,
        told: &mut CallRecord,
    ) -> Answer {
        let state = self.state.clone();
        if let Err(status) = call_form::check(request.method(), request.headers()) {
            return Answer::refused(status);
        }
        let Some(route) = route else { return Answer::refused(Status::unimplemented("")) };
        let client = &context.client;
        let checked = self.check_head(route, &request, client, told);
        let counted = checked.and_then(|(caller, format)| {
            let (caller, share) = self.count_to_client(route, caller, context)?;
            Ok((caller, share, format))
        });
        let (caller, share, format) = match counted {
            Ok(counted) => counted,
            Err(status) => return refuse(route, request, reader, &state, status),
        };
        let (head, body) = request.into_parts();
        let messages = Messages::new(body, format, reader, self.max_length(route), &state);
        match route {
            Route::ModelInfer => {
                let infer_head = InferHead::of(&head.headers, &state);
                let (deadline, rule) = (infer_head.deadline, &state.options.header_forwarding);
                let sender = Sender::new(caller, deadline, &head.headers, rule);
                Answer::Infer(UnaryInfer::new(state, infer_head, messages, sender, told.take()))
            }
            Route::ModelStreamInfer => {
                let infer_head = InferHead::of(&head.headers, &state);
                let format = infer_head.format;
                let reporter = Reporter::of_call(infer_head.has_report, &state.engine, &caller);
                let (deadline, rule) = (infer_head.deadline, &state.options.header_forwarding);
                let sender = Sender::new(caller, deadline, &head.headers, rule);
                let (headers, told) = (&head.headers, told.take());
                let stream = InferStream::new(&state, headers, infer_head, messages, sender, told);
                let stream = StreamBody::new(stream, format, &state).with_reporter(reporter);
                let response = response_body::response(Content::Stream(stream), format);
                Answer::other(ready(Ok(response)))
            }
            Route::RepositoryModelLoad => {
                Answer::other(while_holding(share, load(state, messages, caller)))
            }
            Route::Inference(method) => {
                let call = ShortCall { state, caller };
                Answer::other(while_holding(share, async move {
                    let Message { bytes, memory: _held } = messages.only().await?;
                    Ok(message_response(call.answer(method.name, bytes).await?))
                }))
            }
            Route::HealthCheck => {
                let health = self.health.clone();
                Answer::other(async move {
                    let response = health.check(decode(messages.only().await?.bytes)?)?;
                    Ok(message_response(MessageBody::of(&response, usize::MAX)?))
                })
            }
            Route::HealthWatch => Answer::other(watch(self.health.clone(), messages)),
            Route::LoadReports => Answer::other(report_load(state, messages)),
            Route::Reflection(version) => Answer::other(reflect(state, version, head, messages)),
        }
    }

    fn max_length(&self, route: Route) -> MaxLength {
        match route {
            Route::ModelInfer | Route::ModelStreamInfer | Route::RepositoryModelLoad => {
                MaxLength::Option(self.state.options.max_message_size)
            }
            Route::Inference(_)
            | Route::HealthCheck
            | Route::HealthWatch
            | Route::LoadReports
            | Route::Reflection(_) => MaxLength::Small,
        }
    }

    /// Counts a call to the limits of its client. An inference call does not count itself, because each of its requests
    /// does.
    fn count_to_client(
        &self,
        route: Route,
        mut caller: Caller,
        ConnectionContext { client, account, .. }: &ConnectionContext,
    ) -> Result<(Caller, Option<Box<ClientShare>>), Status> {
        if route.category() == ApiCategory::Health {
            return Ok((caller, None));
        }
        let limits = &self.state.options.client_limits;
        caller.count_to(limits.account(client, account, caller.identity()));
        if matches!(route, Route::ModelInfer | Route::ModelStreamInfer) {
            return Ok((caller, None));
        }
        let share = caller.begin(0).map_err(|error| status_of(&error.into()))?;
        Ok((caller, share))
    }

    /// Checks whether the client may make the call, as far as its head says. Returns the caller and the format of its messages.
    fn check_head<B>(
        &self,
        route: Route,
        request: &Request<B>,
        client: &Client,
        told: &mut CallRecord,
    ) -> Result<(Caller, Option<CompressionFormat>), Status> {
        let headers = request.headers();
        let values = |name| headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
        let authentication = &self.state.options.authentication;
        let admitted = authentication.admit(client, values, || route.access());
        let caller = admitted.map_err(|error| told.not_admitted(error, client.peer))?;
        if let Some(identity) = caller.identity() {
            told.exchange.set_identity(identity);
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

/// Refuses a call so that the client sees the status. A call that is ended while it sends is reset, and some clients
/// report the reset instead. A stream, which may send for ever, is refused at once.
fn refuse(
    route: Route,
    request: Request<RecvStream>,
    reader: Reader,
    state: &Arc<ServerState>,
    status: Status,
) -> Answer {
    if route.is_stream() {
        return Answer::refused(status);
    }
    let messages = Messages::new(request.into_body(), None, reader, MaxLength::Small, state);
    Answer::other(async move {
        drop(messages.only().await);
        Err(status)
    })
}

/// A call with the reader that counts its body.
struct IncomingCall {
    request: Request<RecvStream>,
    reader: Reader,
}

pub(crate) struct ConnectionContext {
    pub dispatcher: Arc<Dispatcher>,
    pub client: Client,
    pub account: ConnectionAccount,
    pub activity: Arc<Activity>,
    pub unread: Arc<UnreadBytes>,
}

/// The resources of a call until its response is sent.
pub(crate) struct CallResources {
    /// `None` if the exit need not wait for the call.
    pub guard: Option<RequestGuard>,
    pub memory: MemoryReservation,
}

impl CallResources {
    pub fn count_content(&mut self, content: &Content) {
        if let Content::Message(message) = content {
            self.memory.grow(message.size());
        }
        // A stream counts itself while it has requests.
        if content.is_lasting() {
            self.guard = None;
        }
    }
}

#[allow(clippy::large_enum_variant, reason = "in place: most calls are of the large kind")]
pub(crate) enum CallStart {
    /// Waits for the server to start.
    Waiting(Pin<Box<dyn Future<Output = Self> + Send>>),
    Answering(AnsweringCall),
    Answered(Response<Content>),
}

async fn begin_when_started(
    context: Arc<ConnectionContext>,
    route: Option<Route>,
    incoming: IncomingCall,
    mut told: CallRecord,
) -> CallStart {
    let dispatcher = &context.dispatcher;
    if !dispatcher.state.engine.availability().started().await {
        return CallStart::Answered(told.refused(Status::unavailable(STARTING)).into_http());
    }
    CallStart::Answering(dispatcher.answering(route, incoming, &context, told))
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
    repository::load(&state.engine, message, &caller).await.map_err(|e| status_of(&e))?;
    Ok(message_response(MessageBody::empty()))
}

async fn watch(health: HealthService, messages: Messages) -> Result<Response<Content>, Status> {
    let watch = health.watch(decode(messages.only().await?.bytes)?)?;
    Ok(response_body::response(Content::Watch(Box::new(watch)), None))
}

async fn report_load(
    state: Arc<ServerState>,
    messages: Messages,
) -> Result<Response<Content>, Status> {
    let reports = LoadStream::begin(state, &decode(messages.only().await?.bytes)?)?;
    Ok(response_body::response(Content::LoadReports(Box::new(reports)), None))
}

fn message_response(message: MessageBody) -> Response<Content> {
    response_body::response(Content::Message(message), None)
}

async fn reflect(
    state: Arc<ServerState>,
    version: ReflectionVersion,
    mut head: Parts,
    messages: Messages,
) -> Result<Response<Content>, Status> {
    let requests = ReflectionRequests { messages, _guard: state.begin_watch()? };
    head.headers.remove(compression::ENCODING);
    let mut response = reflection::answer(version, Request::from_parts(head, requests)).await?;
    compression::announce(None, response.headers_mut());
    Ok(response.map(Content::Reflection))
}

/// The approximate memory of an open call.
pub(crate) const CALL_WEIGHT: usize = 4 << 10;
/// The most open calls on all connections.
const MAX_CALLS: usize = 64 << 10;
