//! The front ends of cloud platforms. Their paths lead to the same handlers as those of the ordinary front end.

mod archive;
pub(crate) mod many_models;
mod out_of_memory;
mod path_pattern;
mod sagemaker_models;

use galatea_http1::RequestHead;
use galatea_types::Error;
use http::{Method, StatusCode};

use self::many_models::ModelsCall;
pub use self::{path_pattern::PathPattern, sagemaker_models::SageMakerModels};

use crate::{
    request::route::{self, ModelAction, ModelPath, Route, SharedMemoryAction},
    response::{
        Response,
        answers::{TEXT, failed, reply},
        body::Body,
    },
};

/// A platform whose requests use its own paths.
#[derive(Clone, Debug)]
pub enum CloudFrontEnd {
    /// Amazon SageMaker: `/ping`, `/invocations` for one model, `/models` for many.
    SageMaker {
        /// `/ping` checks liveness only.
        pings_liveness: bool,
        /// The model of `/invocations`.
        model: String,
        /// The inference call of that model.
        inference: CloudInference,
        /// The models of `/models`.
        models: SageMakerModels,
    },
    /// Vertex AI: two paths that the platform chooses.
    VertexAi {
        /// The path of inference requests.
        predict_route: PathPattern,
        /// The path of readiness checks.
        health_route: PathPattern,
        /// The model of requests that are not redirected.
        model: String,
    },
}

/// An inference call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloudInference {
    /// The same as `infer`.
    Infer,
    /// The same as `generate`.
    Generate,
    /// The same as `generate_stream`.
    GenerateStream,
}

/// The header of Vertex AI with the path of the ordinary front end that a request means, without its first slash.
const REDIRECT: &str = "x-vertex-ai-triton-redirect";

/// The handler of a request to such a front end.
pub(crate) enum Destination<'r> {
    /// A call with this method.
    Call(Route<'r>, Method),
    /// One of the many models of SageMaker.
    Models(&'r SageMakerModels, ModelsCall<'r>),
    Metrics,
    Refused(Box<Response>),
}

impl CloudFrontEnd {
    /// Returns the media type of bodies with binary tensors, up to the length of their JSON.
    pub(crate) fn binary_media_type(&self) -> &'static str {
        match self {
            Self::SageMaker { .. } => {
                "application/vnd.sagemaker-triton.binary+json;json-header-size="
            }
            Self::VertexAi { .. } => {
                "application/vnd.vertex-ai-triton.binary+json;json-header-size="
            }
        }
    }

    /// Returns `true` if answers with binary tensors use that media type too. Otherwise a header has the length of
    /// their JSON, as in the ordinary front end.
    pub(crate) fn answers_by_media_type(&self) -> bool {
        matches!(self, Self::SageMaker { .. })
    }

    pub(crate) fn destination<'r>(
        &'r self,
        method: &Method,
        path: &'r str,
        redirect: Option<&'r str>,
    ) -> Destination<'r> {
        match self {
            Self::SageMaker { pings_liveness, model, inference, models } => match path {
                "/ping" if *pings_liveness => Destination::Call(Route::Live, method.clone()),
                "/ping" => Destination::Call(Route::Ready, method.clone()),
                "/invocations" => {
                    Destination::Call(of_model(inference.action(), model), method.clone())
                }
                _ => match ModelsCall::parse(method, path) {
                    Some(call) => Destination::Models(models, call),
                    None => empty(StatusCode::BAD_REQUEST),
                },
            },
            Self::VertexAi { predict_route, health_route, model } => match redirect {
                _ if health_route.matches(path) => Destination::Call(Route::Ready, method.clone()),
                _ if !predict_route.matches(path) => empty(StatusCode::BAD_REQUEST),
                None => Destination::Call(of_model(ModelAction::Infer, model), method.clone()),
                Some(_) if method != Method::POST => empty(StatusCode::METHOD_NOT_ALLOWED),
                Some("metrics") => Destination::Metrics,
                Some(path) => redirected(path),
            },
        }
    }

    pub(crate) fn redirect_of(headers: &RequestHead) -> Option<&[u8]> {
        headers.get(REDIRECT)
    }
}

impl CloudInference {
    fn action(self) -> ModelAction {
        match self {
            Self::Infer => ModelAction::Infer,
            Self::Generate => ModelAction::Generate,
            Self::GenerateStream => ModelAction::GenerateStream,
        }
    }
}

fn of_model(action: ModelAction, name: &str) -> Route<'_> {
    Route::Model(action, ModelPath { name, version: None })
}

/// Redirects a request. All of them are POST, so the call decides the method. Calls that change the server are refused.
fn redirected(path: &str) -> Destination<'_> {
    let Some(route) = route::parse_relative(path) else { return empty(StatusCode::BAD_REQUEST) };
    match route {
        Route::Load(_) | Route::Unload(_) | Route::NamedRepository => empty(StatusCode::FORBIDDEN),
        Route::SharedMemory(
            _,
            SharedMemoryAction::Register | SharedMemoryAction::Unregister,
            _,
        ) => empty(StatusCode::FORBIDDEN),
        Route::TraceSetting
        | Route::Logging
        | Route::Model(
            ModelAction::TraceSetting | ModelAction::Generate | ModelAction::GenerateStream,
            _,
        ) => empty(StatusCode::BAD_REQUEST),
        route if route.rules().methods.contains(&Method::GET) => {
            Destination::Call(route, Method::GET)
        }
        route => Destination::Call(route, Method::POST),
    }
}

fn empty(status: StatusCode) -> Destination<'static> {
    let reason = Error::not_found(status.canonical_reason().unwrap_or_default());
    Destination::Refused(Box::new(failed(reply(status, TEXT, Body::default()), reason)))
}
