//! From a request to its response: routing, refusals while the server exits, the panic wall.

use std::sync::Arc;

use galatea_engine::Engine;
use galatea_frontend::{CallGuard, catch_panic};
use galatea_types::{Error, product};
use http::{
    HeaderValue, Request, Response,
    header::{CONNECTION, SERVER},
};
use hyper::body::Incoming;

use crate::{
    HttpOptions,
    body::Body,
    generate, infer, management, metrics, readiness,
    received::Received,
    repository,
    responses::{JSON, failure, method_not_allowed, not_found, restricted},
    route::{self, ModelAction, Route},
    state::ServerState,
};

/// Which program answers.
const PROGRAM: HeaderValue = HeaderValue::from_static(product::NAME_SLASH_VERSION);
/// The name of a request in the log.
const REQUEST: &str = "an HTTP request";

/// What requests are refused with beyond those that wait for the end of the start.
const STARTING: &str =
    "Server is starting: models are being loaded, and too many requests wait for them";

/// What is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Inference,
    Metrics,
}

/// Answers requests; shared by all connections of a server.
pub(crate) struct Service {
    pub state: ServerState,
    content: Content,
}

impl Service {
    pub fn new(content: Content, engine: &Arc<Engine>, options: &HttpOptions) -> Self {
        let (engine, options) = (engine.clone(), options.clone());
        let state = ServerState { engine, options, in_flight: Arc::default() };
        Self { state, content }
    }

    pub async fn call(&self, request: Request<Incoming>, call: CallGuard) -> Response<Body> {
        let _answering = self.state.in_flight.begin();
        let mut received = Received::new(request, call, &self.state.options.memory);
        let response = match self.content {
            Content::Inference => catch_panic(REQUEST, self.dispatch(&mut received)).await,
            Content::Metrics => {
                let head = &received.request;
                catch_panic(REQUEST, async { metrics::respond(&self.state.engine, head) }).await
            }
        };
        let mut response = response.unwrap_or_else(|| {
            failure(&Error::internal("internal error while answering the request"), JSON)
        });
        let call = received.into_call();
        match response.body_mut() {
            Body::Streamed(streamed) => streamed.hold(call),
            whole => whole.count_to(&self.state.options.memory),
        }
        response.headers_mut().insert(SERVER, PROGRAM);
        if self.state.in_flight.is_draining() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    async fn dispatch(&self, received: &mut Received) -> Response<Body> {
        let path = received.request.uri().path().to_owned();
        let Some(route) = route::parse(&path) else { return not_found() };
        let headers = received.headers();
        let value_of = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
        if let Err(unmet) = self.state.options.restricted_apis.check(route.category(), value_of) {
            return restricted(unmet);
        }
        if !route.allows(received.request.method()) {
            return method_not_allowed(route.early_error_type());
        }
        if self.state.in_flight.is_closed() && !matches!(route, Route::Live | Route::Ready) {
            return failure(&Error::unavailable("Server exiting"), route.early_error_type());
        }
        let state = &self.state;
        if !matches!(route, Route::Live | Route::Ready) && !state.engine.started().await {
            return failure(&Error::unavailable(STARTING), route.early_error_type());
        }
        match route {
            Route::Model(ModelAction::Infer, model) => infer::respond(state, model, received).await,
            Route::Model(ModelAction::Generate, model) => {
                generate::respond(state, model, received).await
            }
            Route::Model(ModelAction::GenerateStream, model) => {
                generate::respond_with_events(state, model, received).await
            }
            Route::Model(ModelAction::Ready, model) => readiness::respond(state, model).await,
            Route::AllStatistics => management::all_statistics(state).await,
            Route::RepositoryIndex => repository::index(state, received).await,
            Route::Load(name) => repository::load(state, name.to_owned(), received).await,
            Route::Unload(name) => repository::unload(state, name.to_owned(), received).await,
            route => management::respond(state, route),
        }
    }
}
