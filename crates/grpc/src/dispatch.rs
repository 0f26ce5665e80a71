//! Which service a call goes to, and the walls around every call: counting, shutdown, panics.

use std::{
    convert::Infallible,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use galatea_engine::Engine;
use galatea_proto::{
    health::health_server::HealthServer,
    inference::grpc_inference_service_server::GrpcInferenceServiceServer,
};
use http::{Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tonic::{Status, body::Body, codegen::Service as _};

use crate::{
    GrpcOptions,
    calls::{CallGuard, Calls},
    health::HealthService,
    service::InferenceService,
};

const SHUTTING_DOWN: &str = "GRPC server is shutting down and has stopped accepting new requests.";

/// Answers every call that comes in on any connection.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    inference: GrpcInferenceServiceServer<InferenceService>,
    health: HealthServer<HealthService>,
    calls: Arc<Calls>,
}

impl Dispatcher {
    pub fn new(engine: &Arc<Engine>, options: &GrpcOptions, calls: Arc<Calls>) -> Self {
        let max_message_size = options.max_message_size;
        let inference = InferenceService { engine: engine.clone(), max_message_size };
        Self {
            inference: GrpcInferenceServiceServer::new(inference)
                .max_decoding_message_size(max_message_size)
                .max_encoding_message_size(max_message_size),
            health: HealthServer::new(HealthService { engine: engine.clone() }),
            calls,
        }
    }

    pub async fn answer(mut self, request: Request<Incoming>) -> Result<Response<CallBody>, Infallible> {
        let Some(guard) = self.calls.begin() else {
            return Ok(Status::unavailable(SHUTTING_DOWN).into_http());
        };
        let response = match unwinding(self.route(request)).await {
            Some(response) => response,
            None => Status::internal("an internal error ended this call").into_http(),
        };
        Ok(response.map(|body| CallBody { body, _guard: Some(guard) }))
    }

    async fn route(&mut self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path();
        let Ok(response) = if path.starts_with("/inference.GRPCInferenceService/") {
            self.inference.call(request).await
        } else if path.starts_with("/grpc.health.v1.Health/") {
            self.health.call(request).await
        } else {
            Ok(Status::unimplemented("").into_http())
        };
        response
    }
}

/// The future's output, or `None` where it panicked. The panic's text has gone to the panic hook.
async fn unwinding<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        // A call shares nothing it could leave half-changed: what it owns is thrown away after a panic.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        }
    })
    .await
}

/// A response body that keeps its call counted until it has gone out.
#[derive(Default)]
pub(crate) struct CallBody {
    body: Body,
    _guard: Option<CallGuard>,
}

impl http_body::Body for CallBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let body = &mut self.body;
        match catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(cx))) {
            Ok(poll) => poll,
            Err(_) => {
                self.body = Body::empty();
                Poll::Ready(Some(Err(Status::internal("an internal error ended this call"))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
