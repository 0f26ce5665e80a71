//! Which service a call goes to, and what surrounds every call: counting, refusal while the server exits, the panic wall.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use galatea_engine::Engine;
use galatea_frontend::{CallGuard, InFlight, RequestGuard, catch_panic, catch_panic_in_poll};
use galatea_proto::{
    health::health_server::HealthServer,
    inference::grpc_inference_service_server::GrpcInferenceServiceServer,
};
use galatea_types::{MemoryBudget, MemoryReservation};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::Full;
use hyper::body::Incoming;
use tonic::{Status, body::Body, codegen::Service as _};

use crate::{
    GrpcOptions,
    call_task::Progress,
    deadline::deadline_of,
    health::HealthService,
    infer,
    messages::{MaxLength, Message, Messages, over_budget},
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
        mut self,
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

    async fn route(
        &mut self,
        request: Request<Incoming>,
        reader: Reader,
    ) -> Result<Response<Content>, Status> {
        let path = request.uri().path();
        match path.strip_prefix("/inference.GRPCInferenceService/") {
            Some("ModelInfer") => self.model_infer(request, reader).await,
            Some("ModelStreamInfer") => {
                let stream = InferStream::new(&self.state, request, reader);
                Ok(outgoing::response(Content::Stream(StreamBody::new(stream))))
            }
            Some("RepositoryModelLoad") => self.load(request, reader).await,
            Some(_) => {
                let request = self.read_small(request, reader).await?;
                let Ok(response) = self.inference.call(request).await;
                Ok(response.map(Content::Generated))
            }
            None if path.starts_with("/grpc.health.v1.Health/") => {
                let request = self.read_small(request, reader).await?;
                let Ok(response) = self.health.call(request).await;
                Ok(response.map(Content::Generated))
            }
            None => Err(Status::unimplemented("")),
        }
    }

    async fn model_infer(
        &self,
        request: Request<Incoming>,
        reader: Reader,
    ) -> Result<Response<Content>, Status> {
        let deadline = deadline_of(request.headers());
        let message = self.read_large(request, reader).await?;
        let response = infer::infer(&self.state, message, deadline).await?;
        Ok(outgoing::response(Content::Message(MessageBody::new(response))))
    }

    async fn load(
        &self,
        request: Request<Incoming>,
        reader: Reader,
    ) -> Result<Response<Content>, Status> {
        let message = self.read_large(request, reader).await?;
        repository::load(&self.state.engine, message).await?;
        Ok(outgoing::response(Content::Message(MessageBody::empty())))
    }

    async fn read_large(
        &self,
        request: Request<Incoming>,
        reader: Reader,
    ) -> Result<Message, Status> {
        let max_length = MaxLength::Option(self.state.options.max_message_size);
        Messages::new(request.into_body(), reader, max_length, &self.state).only().await
    }

    /// The request with its message, for the generated service: names and flags have bounds, and time-outs hold, before
    /// it sees any of it.
    async fn read_small(
        &self,
        request: Request<Incoming>,
        reader: Reader,
    ) -> Result<Request<Full<Bytes>>, Status> {
        let (head, body) = request.into_parts();
        let mut message = Messages::new(body, reader, MaxLength::Small, &self.state).only().await?;
        let length = message.bytes.remaining();
        let framed = [&prefix(length)[..], &message.bytes.copy_to_bytes(length)].concat();
        Ok(Request::from_parts(head, Full::from(framed)))
    }
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
