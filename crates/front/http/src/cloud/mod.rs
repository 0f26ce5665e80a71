//! The front ends of cloud platforms: their paths lead to the same handlers as those of the ordinary front end.

mod archive;
mod loaded;
pub(crate) mod many_models;
mod out_of_memory;
mod path_pattern;

use galatea_http1::RequestHead;
use galatea_types::Error;
use http::{Method, StatusCode};

use self::many_models::ModelsCall;
pub use self::{loaded::SageMakerModels, path_pattern::PathPattern};

use crate::{
    request::route::{self, ModelAction, ModelPath, Route, SharedMemoryAction},
    response::{
        Response,
        answers::{TEXT, failed, reply},
        body::Body,
    },
};

/// A platform whose requests come to paths of its own.
#[derive(Clone, Debug)]
pub enum CloudFrontEnd {
    /// Amazon SageMaker: `/ping`, `/invocations` for one model, `/models` for many.
    SageMaker {
        /// Whether `/ping` asks for liveness only.
        pings_liveness: bool,
        /// The model of `/invocations`.
        model: String,
        /// What is asked of it.
        inference: CloudInference,
        /// Those of `/models`.
        models: SageMakerModels,
    },
    /// Vertex AI: two paths that the platform names.
    VertexAi {
        /// Where inference requests come.
        predict_route: PathPattern,
        /// Where the platform asks whether the server is ready.
        health_route: PathPattern,
        /// The model of requests that are not redirected.
        model: String,
    },
}

/// How a model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloudInference {
    /// As by `infer`.
    Infer,
    /// As by `generate`.
    Generate,
    /// As by `generate_stream`.
    GenerateStream,
}

/// Names the path of the ordinary front end that a request to Vertex AI means, without its first slash.
const REDIRECT: &str = "x-vertex-ai-triton-redirect";

/// What a request to such a front end leads to.
pub(crate) enum Destination<'r> {
    /// A call, made with this method.
    Call(Route<'r>, Method),
    /// One of many models of SageMaker.
    Models(&'r SageMakerModels, ModelsCall<'r>),
    Metrics,
    Refused(Box<Response>),
}

impl CloudFrontEnd {
    /// The media type of bodies with binary tensors, up to the length of their JSON.
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

    /// Whether answers with binary tensors have it too; else a header says where their JSON ends, as in the ordinary
    /// front end.
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

/// Everything comes as POST, so the method is that of the call. What changes the server is not to be had this way.
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
