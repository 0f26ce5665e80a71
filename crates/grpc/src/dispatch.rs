//! Which service a call goes to, and what surrounds every call: counting, refusal while the server exits, the panic wall.

use std::{
    convert::Infallible,
    future::ready,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use bytes::{Buf, Bytes};
use galatea_engine::Engine;
use galatea_frontend::{CallGuard, InFlight, RequestGuard, catch_panic, catch_panic_in_poll};
use galatea_proto::{
    health::health_server::HealthServer,
    inference::grpc_inference_service_server::GrpcInferenceServiceServer,
};
use galatea_types::{MemoryBudget, MemoryReservation};
use http::{Request, Response, request::Parts};
use http_body::Frame;
use http_body_util::Full;
use hyper::body::Incoming;
use tonic::{Status, body::Body, codegen::Service};

use crate::{
    GrpcOptions,
    call_task::Progress,
    deadline::deadline_of,
    health::HealthService,
    infer,
    messages::{MaxLength, Messages, over_budget},
    outgoing::{self, MessageBody, StreamBody, prefix},
    repository,
    service::InferenceService,
    state::{SHUTTING_DOWN, ServerState},
    stream::InferStream,
    unread::Reader,
};

/// The name of a call in the log.
const CALL: &str = "a gRPC call";
const INTERNAL_ERROR: &str = "an internal error ended this call";

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
            in_flight: Arc::<InFlight>::default(),
        };
        let state = Arc::new(state);
        let service = InferenceService { state: state.clone() };
        Self {
            inference: GrpcInferenceServiceServer::new(service)
                .max_encoding_message_size(options.max_response_size),
            health: HealthServer::new(HealthService { engine: engine.clone() }),
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
        let response = match catch_panic(CALL, self.route(request, reader)).await {
            Some(Ok(response)) => response,
            Some(Err(status)) => status.into_http(),
            None => Status::internal(INTERNAL_ERROR).into_http(),
        };
        if let Content::Message(message) = response.body() {
            memory.grow(message.size());
        }
        let held = Held { _guard: guard, _call: call, _memory: memory };
        let progress = Progress::of_this_call();
        Ok(response.map(|content| CallBody { content, progress, _held: Some(held) }))
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
        let max_length = MaxLength::Option(state.options.max_message_size);
        match path.strip_prefix("/inference.GRPCInferenceService/") {
            Some("ModelInfer") => {
                let deadline = deadline_of(request.headers());
                let messages = Messages::new(request.into_body(), reader, max_length, &state);
                Box::pin(model_infer(state, messages, deadline))
            }
            Some("ModelStreamInfer") => {
                let stream = StreamBody::new(InferStream::new(&state, request, reader));
                Box::pin(ready(Ok(outgoing::response(Content::Stream(stream)))))
            }
            Some("RepositoryModelLoad") => {
                let messages = Messages::new(request.into_body(), reader, max_length, &state);
                Box::pin(load(state, messages))
            }
            Some(_) => {
                let (head, messages) = small(request, reader, &state);
                let service = self.inference.clone();
                Box::pin(generated(head, messages, service))
            }
            None if path.starts_with("/grpc.health.v1.Health/") => {
                let (head, messages) = small(request, reader, &state);
                let service = self.health.clone();
                Box::pin(generated(head, messages, service))
            }
            None => Box::pin(ready(Err(Status::unimplemented("")))),
        }
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Content>, Status>> + Send>>;

async fn model_infer(
    state: Arc<ServerState>,
    messages: Messages,
    deadline: Option<Instant>,
) -> Result<Response<Content>, Status> {
    let message = messages.only().await?;
    let response = infer::infer(&state, message, deadline).await?;
    Ok(outgoing::response(Content::Message(MessageBody::new(response))))
}

async fn load(state: Arc<ServerState>, messages: Messages) -> Result<Response<Content>, Status> {
    let message = messages.only().await?;
    repository::load(&state.engine, message).await?;
    Ok(outgoing::response(Content::Message(MessageBody::empty())))
}

fn small(
    request: Request<Incoming>,
    reader: Reader,
    state: &ServerState,
) -> (Box<Parts>, Messages) {
    let (head, body) = request.into_parts();
    (Box::new(head), Messages::new(body, reader, MaxLength::Small, state))
}

/// A call that the generated service answers: names and flags have bounds, and time-outs hold, before it sees any of
/// the message.
async fn generated<S>(
    head: Box<Parts>,
    messages: Messages,
    mut service: S,
) -> Result<Response<Content>, Status>
where
    S: Service<Request<Full<Bytes>>, Response = Response<Body>, Error = Infallible>,
{
    let mut message = messages.only().await?;
    let length = message.bytes.remaining();
    let framed = [&prefix(length)[..], &message.bytes.copy_to_bytes(length)].concat();
    let Ok(response) = service.call(Request::from_parts(*head, Full::from(framed))).await;
    Ok(response.map(Content::Generated))
}

/// What an open call takes, about.
const CALL_WEIGHT: usize = 4 << 10;
/// Calls that may be open at a time on all connections.
const MAX_CALLS: usize = 64 << 10;

/// What a call holds until its response has gone out.
struct Held {
    _guard: RequestGuard,
    _call: CallGuard,
    _memory: MemoryReservation,
}

/// A response body that keeps its call counted until it has gone out.
#[derive(Default)]
pub(crate) struct CallBody {
    content: Content,
    progress: Arc<Progress>,
    _held: Option<Held>,
}

enum Content {
    /// Made by the generated service.
    Generated(Body),
    Message(MessageBody),
    Stream(StreamBody),
}

impl Default for Content {
    fn default() -> Self {
        Self::Generated(Body::empty())
    }
}

type Polled = Poll<Option<Result<Frame<Bytes>, Status>>>;

/// A streaming call does its work while its body is polled, so the panic wall is here too.
fn poll_stream(content: &mut Content, cx: &mut Context<'_>) -> Polled {
    let polled = catch_panic_in_poll(CALL, || match content {
        Content::Stream(stream) => stream.poll_frame(cx),
        Content::Generated(_) | Content::Message(_) => Poll::Ready(None),
    });
    let polled = polled.unwrap_or_else(|| {
        *content = Content::default();
        let trailers = outgoing::trailers(&Status::internal(INTERNAL_ERROR));
        Poll::Ready(Some(Frame::trailers(trailers)))
    });
    polled.map(|frame| frame.map(Ok))
}

impl http_body::Body for CallBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let polled = match &mut self.content {
            Content::Generated(body) => Pin::new(body).poll_frame(cx),
            Content::Message(message) => Poll::Ready(message.next_frame().map(Ok)),
            Content::Stream(_) => poll_stream(&mut self.content, cx),
        };
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.progress.has_taken(frame.data_ref().map_or(0, Bytes::len));
            }
            Poll::Ready(_) | Poll::Pending => self.progress.has_nothing(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Generated(body) => body.is_end_stream(),
            Content::Message(message) => message.is_finished(),
            Content::Stream(stream) => stream.is_finished(),
        }
    }
}
