//! Server reflection: describes the services and their messages to tools that have no description of their own.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, LazyLock},
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use galatea_frontend::RequestGuard;
use galatea_proto::FILE_DESCRIPTOR_SET;
use http::{Request, Response};
use http_body::Frame;
use tonic::{Status, body::Body, codegen::Service};
use tonic_reflection::server::Builder;

use crate::{message::prefix, messages::Messages, route::ReflectionVersion};

/// Both versions of the service answer the same; old tools know only the first.
struct Services {
    v1: Call,
    v1alpha: Call,
}

type ReflectionAnswer = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;
type Call = Arc<dyn Fn(Request<ReflectionRequests>) -> ReflectionAnswer + Send + Sync>;

/// Built at the first call, because most servers never get one.
static SERVICES: LazyLock<Option<Services>> = LazyLock::new(|| {
    let builder = || Builder::configure().register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET);
    let v1 = builder().build_v1().inspect_err(|e| log::error!("grpc: no reflection: {e}"));
    let v1alpha = builder().build_v1alpha();
    Some(Services { v1: call_of(v1.ok()?), v1alpha: call_of(v1alpha.ok()?) })
});

fn call_of<S>(service: S) -> Call
where
    S: Service<Request<ReflectionRequests>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
{
    Arc::new(move |request| {
        let mut service = service.clone();
        Box::pin(async move {
            let Ok(response) = service.call(request).await;
            response
        })
    })
}

pub(crate) async fn answer(
    version: ReflectionVersion,
    request: Request<ReflectionRequests>,
) -> Result<Response<Body>, Status> {
    let services = SERVICES.as_ref().ok_or_else(|| Status::unimplemented(""))?;
    let call = match version {
        ReflectionVersion::V1 => &services.v1,
        ReflectionVersion::V1Alpha => &services.v1alpha,
    };
    Ok(call(request).await)
}

/// The messages of a reflection call, framed again after their bounds were checked.
pub(crate) struct ReflectionRequests {
    pub messages: Messages,
    /// Counts the call.
    pub _guard: RequestGuard,
}

impl http_body::Body for ReflectionRequests {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(message) = ready!(self.messages.poll_next(cx)) else { return Poll::Ready(None) };
        Poll::Ready(Some(message.map(|mut message| {
            let length = message.bytes.remaining();
            let content = message.bytes.copy_to_bytes(length);
            Frame::data([&prefix(length)[..], &content].concat().into())
        })))
    }
}
