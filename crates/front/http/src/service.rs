//! From a request to its response: routing, refusals while the server exits, and the panic boundary.

use std::{pin::pin, sync::Arc};

use galatea_engine::Engine;
use galatea_frontend::{Action, Activity, Answer, ApiCategory, Exchange, Peer, catch_panic};
use galatea_http1::{RequestHead, names, visible_text};
use galatea_types::{CallRecord as _, Error, product};
use http::Method;

use crate::{
    cloud::{
        CloudFrontEnd, Destination, SageMakerModels,
        many_models::{self, ModelsCall},
    },
    handlers::{console, generate, infer, management, metrics, repository, shared_memory},
    options::{HttpOptions, MetricsScope},
    request::{
        admission,
        received_request::{ReceivedRequest, call_of},
        route::{self, ModelAction, Route},
        same_site,
    },
    response::{
        Response,
        answers::{JSON, RefusalForm, TEXT, failure, method_not_allowed, not_found, restricted},
        body::Body,
    },
    state::{Connection, ServerState},
};

const PROGRAM: &str = product::NAME_SLASH_VERSION;
/// The name of a request in the log.
const REQUEST: &str = "an HTTP request";

/// The refusal of requests when too many wait for the server to start.
const STARTING: &str =
    "Server is starting: models are being loaded, and too many requests wait for them";

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Inference,
    Metrics,
    Cloud(CloudFrontEnd),
}

pub(crate) struct Service {
    pub state: ServerState,
    content: Content,
}

impl Service {
    pub fn new(content: Content, engine: &Arc<Engine>, options: &HttpOptions) -> Self {
        let (engine, options) = (engine.clone(), options.clone());
        let binary_media_type = match &content {
            Content::Cloud(front_end) => Some(front_end.binary_media_type()),
            Content::Inference | Content::Metrics => None,
        };
        let in_flight = Arc::default();
        let answers_by_media_type =
            matches!(&content, Content::Cloud(front_end) if front_end.answers_by_media_type());
        let has_console = matches!(&content, Content::Inference) && options.has_console;
        let console = has_console.then(|| console::of(&engine, &options));
        let state = ServerState {
            engine,
            options,
            in_flight,
            console,
            binary_media_type,
            answers_by_media_type,
        };
        Self { state, content }
    }

    /// Returns `true` if a client may pass descriptors, by which regions are registered.
    pub fn accepts_descriptors(&self, peer: Peer) -> bool {
        peer == Peer::Unix
            && matches!(self.content, Content::Inference)
            && self.state.engine.client_regions().is_ok()
    }

    pub async fn call(
        &self,
        head: &RequestHead,
        activity: &Arc<Activity>,
        connection: &Arc<Connection>,
    ) -> Response {
        let _answering = self.state.in_flight.begin();
        let mut received = ReceivedRequest::new(head, activity, connection, &self.state);
        // Pinned in place: it is large, and would be moved otherwise.
        let response = match &self.content {
            Content::Inference => {
                let answer = pin!(self.dispatch(&mut received));
                catch_panic(REQUEST, answer).await
            }
            Content::Cloud(front_end) => {
                let answer = pin!(self.dispatch_cloud(front_end, &mut received));
                catch_panic(REQUEST, answer).await
            }
            Content::Metrics => {
                catch_panic(REQUEST, async { self.answer_metrics(&mut received) }).await
            }
        };
        let mut response = response.unwrap_or_else(|| {
            failure(&Error::internal("internal error while answering the request"), JSON)
        });
        self.tell(&mut received, &mut response);
        response.body.count_to(&self.state.options.memory);
        response.head.set(names::SERVER, PROGRAM);
        if received.is_last() || self.state.in_flight.is_draining() {
            response.head.set(names::CONNECTION, "close");
        }
        response
    }

    /// Reports the end of the request. A streamed body does that itself at its end.
    fn tell(&self, received: &mut ReceivedRequest<'_>, response: &mut Response) {
        let mut exchange = std::mem::take(&mut received.exchange);
        response.sending = exchange.begin_sending();
        let status = response.head.status;
        match &mut response.body {
            Body::Streamed(streamed) => streamed.tell_by(exchange, status.as_u16()),
            whole => {
                let failed = response.failed.as_ref();
                let answer = Answer {
                    status: status.as_u16(),
                    bytes: whole.length(),
                    is_good: status.is_success(),
                    failure: failed.map(|error| (error.code(), error.message())),
                };
                exchange.finish(|| call_of(received.sender.head), &answer);
            }
        }
    }

    async fn dispatch(&self, received: &mut ReceivedRequest<'_>) -> Response {
        let head = received.sender.head;
        if let Some(scope) = self.state.options.metrics
            && head.path() == metrics::PATH
        {
            return self.answer_metrics_with(received, |engine, head| {
                metrics::respond_beside_inference(engine, head, scope)
            });
        }
        match route::parse(head.path()) {
            Some(route) => self.answer(route, head.method(), received).await,
            None => match console::parse(head.path(), self.state.console.is_some()) {
                Some(route) => console::respond(&self.state, route, received).await,
                None => not_found(),
            },
        }
    }

    /// Dispatches a request to a path of a cloud platform.
    async fn dispatch_cloud(
        &self,
        front_end: &CloudFrontEnd,
        received: &mut ReceivedRequest<'_>,
    ) -> Response {
        let head = received.sender.head;
        let redirect = CloudFrontEnd::redirect_of(head);
        let redirect = redirect.map(|value| visible_text(value).unwrap_or_default());
        match front_end.destination(head.method(), head.path(), redirect) {
            Destination::Call(route, method) => self.answer(route, &method, received).await,
            Destination::Models(models, call) => self.answer_models(models, call, received).await,
            Destination::Metrics => {
                match admission::refusal(&self.state, received, Action::Metrics, RefusalForm::TEXT)
                {
                    Some(refusal) => refusal,
                    None => metrics::of_engine(
                        &self.state.engine,
                        received.sender.head,
                        MetricsScope::All,
                    ),
                }
            }
            Destination::Refused(response) => *response,
        }
    }

    /// Answers calls about many models, which have no route in the ordinary front end.
    async fn answer_models(
        &self,
        models: &SageMakerModels,
        call: ModelsCall<'_>,
        received: &mut ReceivedRequest<'_>,
    ) -> Response {
        let access = call.access();
        if let Some(refusal) = admission::refusal(&self.state, received, access, RefusalForm::TEXT)
        {
            return refusal;
        }
        if let Some(refusal) = self.restriction(call.category(), received.sender.head) {
            return refusal;
        }
        if let Some(refusal) = admission::refusal_by_limits(&self.state, received, TEXT) {
            return refusal;
        }
        match self.refusal(TEXT).await {
            Some(refusal) => refusal,
            None => many_models::respond(&self.state, models, call, received).await,
        }
    }

    fn answer_metrics(&self, received: &mut ReceivedRequest<'_>) -> Response {
        self.answer_metrics_with(received, metrics::respond)
    }

    fn answer_metrics_with(
        &self,
        received: &mut ReceivedRequest<'_>,
        respond: impl FnOnce(&Engine, &RequestHead) -> Response,
    ) -> Response {
        let action = Action::Metrics;
        if let Some(refusal) = admission::refusal(&self.state, received, action, RefusalForm::TEXT)
        {
            return refusal;
        }
        received.exchange.mark_routine();
        respond(&self.state.engine, received.sender.head)
    }

    fn restriction(&self, category: ApiCategory, headers: &RequestHead) -> Option<Response> {
        let value_of = |name: &str| headers.get(name);
        let unmet = self.state.options.restricted_apis.check(category, value_of).err()?;
        Some(restricted(unmet))
    }

    /// Returns a refusal if the server shuts down, or if it is starting and enough requests wait.
    async fn refusal(&self, content_type: &'static str) -> Option<Response> {
        let reason = if self.state.in_flight.is_closed() {
            self.state.engine.availability().count_refused_at_exit();
            "Server exiting"
        } else if !self.state.engine.availability().started().await {
            STARTING
        } else {
            return None;
        };
        Some(failure(&Error::unavailable(reason), content_type))
    }

    async fn answer(
        &self,
        route: Route<'_>,
        method: &Method,
        received: &mut ReceivedRequest<'_>,
    ) -> Response {
        note_subject(route, &mut received.exchange);
        let (rules, error_type) = (route.rules(), route.early_error_type());
        let state = &self.state;
        let form = RefusalForm::of_call(error_type);
        if let Some(refusal) = admission::refusal(state, received, rules.access, form) {
            return refusal;
        }
        if rules.category == ApiCategory::Health {
            received.exchange.mark_routine();
        }
        if let Some(refusal) = self.restriction(rules.category, received.sender.head) {
            return refusal;
        }
        if rules.category != ApiCategory::Health
            && let Some(refusal) = admission::refusal_by_limits(state, received, error_type)
        {
            return refusal;
        }
        if !rules.methods.contains(method) {
            return method_not_allowed(error_type);
        }
        if route.changes_server(method)
            && let Some(refusal) = same_site::refusal(received.sender.head)
        {
            return refusal;
        }
        if !matches!(route, Route::Live | Route::Ready)
            && let Some(refusal) = self.refusal(error_type).await
        {
            return refusal;
        }
        match route {
            Route::Model(ModelAction::Infer, model) => infer::respond(state, model, received).await,
            Route::Model(action @ (ModelAction::Generate | ModelAction::GenerateStream), model) => {
                let has_events = action == ModelAction::GenerateStream;
                generate::respond(state, model, received, has_events).await
            }
            Route::Model(ModelAction::Ready, model) => management::model_ready(state, model).await,
            Route::Logging => management::log_settings(state, method, received).await,
            Route::TraceSetting => management::trace_settings(state, method, None, received).await,
            Route::Model(ModelAction::TraceSetting, model) => {
                management::trace_settings(state, method, Some(model.name), received).await
            }
            Route::AllStatistics => management::all_statistics(state, received).await,
            Route::RepositoryIndex => repository::index(state, received).await,
            Route::Load(name) => repository::load(state, name.to_owned(), received).await,
            Route::Unload(name) => repository::unload(state, name.to_owned(), received).await,
            Route::SharedMemory(kind, action, name) => {
                shared_memory::respond(state, kind, action, name, received).await
            }
            route => management::respond(state, route, received.sender.head),
        }
    }
}

/// Records the model of the request, as far as its path names it.
fn note_subject(route: Route<'_>, exchange: &mut Exchange) {
    if let Some(subject) = exchange.asked() {
        match route {
            Route::Model(_, model) => {
                subject.record_asked(model.name, model.version().ok().flatten())
            }
            Route::Load(name) | Route::Unload(name) => subject.record_asked(name, None),
            _ => {}
        }
    }
}
