//! Which service a call goes to, and what surrounds every call: counting, refusal while the server exits, the panic wall.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use galatea_engine::Engine;
use galatea_frontend::{CallGuard, InFlight, RequestGuard, catch_panic, catch_panic_in_poll};
use galatea_proto::{
    health::health_server::HealthServer,
    inference::grpc_inference_service_server::GrpcInferenceServiceServer,
};
use http::{HeaderMap, Request, Response};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use tonic::{Status, body::Body, codegen::Service as _};

use crate::{
    GrpcOptions,
    health::HealthService,
    infer,
    service::InferenceService,
    state::{SHUTTING_DOWN, ServerState},
    unary::{self, MessageBody},
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
            max_message_size: options.max_message_size,
            max_response_size: options.max_response_size,
            max_unread: options.max_unread,
            memory: options.memory.clone(),
            in_flight: Arc::<InFlight>::default(),
        };
        let state = Arc::new(state);
        Self {
            inference: GrpcInferenceServiceServer::new(InferenceService { state: state.clone() })
                .max_decoding_message_size(options.max_message_size)
                .max_encoding_message_size(options.max_response_size),
            health: HealthServer::new(HealthService { engine: engine.clone() }),
            state,
        }
    }

    pub fn in_flight(&self) -> &Arc<InFlight> {
        &self.state.in_flight
    }

    pub async fn answer(
        mut self,
        request: Request<Incoming>,
        call: CallGuard,
    ) -> Result<Response<CallBody>, Infallible> {
        let Some(guard) = self.state.in_flight.try_begin() else {
            return Ok(Status::unavailable(SHUTTING_DOWN).into_http());
        };
        let response = match catch_panic(CALL, self.route(request)).await {
            Some(response) => response,
            None => Status::internal(INTERNAL_ERROR).into_http(),
        };
        Ok(response.map(|content| CallBody { content, _guards: Some((guard, call)) }))
    }

    async fn route(&mut self, request: Request<Incoming>) -> Response<Content> {
        let path = request.uri().path();
        if path == "/inference.GRPCInferenceService/ModelInfer" {
            return self.model_infer(request).await.unwrap_or_else(Status::into_http);
        }
        let Ok(response) = if path.starts_with("/inference.GRPCInferenceService/") {
            self.inference.call(request).await
        } else if path.starts_with("/grpc.health.v1.Health/") {
            self.health.call(request).await
        } else {
            Ok(Status::unimplemented("").into_http())
        };
        response.map(Content::Generated)
    }

    async fn model_infer(&self, request: Request<Incoming>) -> Result<Response<Content>, Status> {
        let ServerState { engine, max_message_size, max_response_size, .. } = &*self.state;
        let (message, deadline) = unary::read_request(request, *max_message_size).await?;
        let response = infer::infer(engine, message, deadline, *max_response_size).await?;
        Ok(unary::write_response(response, Content::Message))
    }
}

/// A response body that keeps its call counted until it has gone out.
#[derive(Default)]
pub(crate) struct CallBody {
    content: Content,
    _guards: Option<(RequestGuard, CallGuard)>,
}

enum Content {
    /// Made by the generated service.
    Generated(Body),
    Message(MessageBody),
}

impl Default for Content {
    fn default() -> Self {
        Self::Generated(Body::empty())
    }
}

type Polled = Poll<Option<Result<Frame<Bytes>, Status>>>;

/// A streaming call does its work while its body is polled, so the panic wall is here too.
fn poll_generated(body: &mut Body, cx: &mut Context<'_>) -> Polled {
    catch_panic_in_poll(CALL, || Pin::new(&mut *body).poll_frame(cx)).unwrap_or_else(|| {
        *body = Body::empty();
        let mut trailers = HeaderMap::new();
        let status = Status::internal(INTERNAL_ERROR).add_header(&mut trailers);
        Poll::Ready(Some(status.map(|()| Frame::trailers(trailers))))
    })
}

impl http_body::Body for CallBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        match &mut self.content {
            Content::Generated(body) => poll_generated(body, cx),
            Content::Message(message) => Poll::Ready(message.next_frame().map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Generated(body) => body.is_end_stream(),
            Content::Message(message) => message.is_finished(),
        }
    }
}
