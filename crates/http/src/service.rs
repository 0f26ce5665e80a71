//! From a request to its response: routing, refusals at the end, the wall against panics.

use std::sync::Arc;

use galatea_engine::Engine;
use galatea_frontend::{InFlight, catch_panic};
use galatea_types::Error;
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{CONNECTION, EXPECT},
};
use hyper::body::{Body as _, Incoming};

use crate::{
    HttpOptions,
    body::Body,
    generate, infer, management, metrics, readiness, repository, request_body,
    responses::{JSON, failure, method_not_allowed, not_found},
    route::{self, ModelAction, Route},
};

/// The name of a request in the log.
const REQUEST: &str = "an HTTP request";

/// What a port serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Inference,
    Metrics,
}

/// Answers requests; shared by all connections of a server.
pub(crate) struct Service {
    pub engine: Arc<Engine>,
    pub options: HttpOptions,
    pub in_flight: Arc<InFlight>,
    pub content: Content,
}

impl Service {
    pub fn new(content: Content, engine: &Arc<Engine>, options: &HttpOptions) -> Self {
        let (engine, options) = (engine.clone(), options.clone());
        Self { engine, options, in_flight: Arc::default(), content }
    }

    pub async fn call(&self, request: Request<Incoming>) -> Response<Body> {
        let _answering = self.in_flight.begin();
        let response = match self.content {
            Content::Inference => catch_panic(REQUEST, self.respond(request)).await,
            Content::Metrics => {
                // The body is never looked at.
                let head = request.map(drop);
                catch_panic(REQUEST, async { metrics::respond(&self.engine, &head) }).await
            }
        };
        let mut response = response.unwrap_or_else(|| {
            failure(&Error::internal("internal error while answering the request"), JSON)
        });
        if self.in_flight.is_closed() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    async fn respond(&self, mut request: Request<Incoming>) -> Response<Body> {
        let response = self.dispatch(&mut request).await;
        // Asking a client that waits for leave to send what nobody wants would be absurd.
        if !request.body().is_end_stream() && !request.headers().contains_key(EXPECT) {
            request_body::discard(request.body_mut(), self.options.max_input_size).await;
        }
        response
    }

    async fn dispatch(&self, request: &mut Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let Some(route) = route::parse(&path) else { return not_found() };
        if !route.allows(request.method()) {
            return method_not_allowed(route.early_error_type());
        }
        if self.in_flight.is_closed() && !matches!(route, Route::Live | Route::Ready) {
            return failure(&Error::unavailable("Server exiting"), route.early_error_type());
        }
        match route {
            Route::Model(ModelAction::Infer, model) => infer::respond(self, model, request).await,
            Route::Model(ModelAction::Generate, model) => {
                generate::respond(self, model, request).await
            }
            Route::Model(ModelAction::GenerateStream, model) => {
                generate::respond_with_events(self, model, request).await
            }
            Route::Model(ModelAction::Ready, model) => readiness::respond(self, model).await,
            Route::RepositoryIndex => repository::index(self, request).await,
            Route::Load(name) => repository::load(self, name.to_owned(), request).await,
            Route::Unload(name) => repository::unload(self, name.to_owned(), request).await,
            route => management::respond(self, route),
        }
    }

    pub fn is_live(&self) -> bool {
        !self.in_flight.is_closed() && self.engine.is_live()
    }
}

/// 200 or 400 with an empty body: what health checks answer (H-02, H-03).
pub(crate) fn health(is_well: bool) -> Response<Body> {
    let status = if is_well { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    crate::responses::reply(status, crate::responses::TEXT, Body::default())
}
