//! SageMaker's multi-model mode: its agent unpacks models, loads them by URL, and calls and unloads them by name.

use std::time::{Duration, Instant};

use galatea_frontend::{Action, ApiCategory};
use galatea_http1::{RequestHead, visible_text};
use galatea_protocol::http::{
    SageMakerLoad, SageMakerModel, decode_sagemaker_load, error_body, sagemaker_models, to_json,
};
use galatea_types::{Code, Error, Result};
use http::{Method, StatusCode};

use super::{
    archive, out_of_memory,
    sagemaker_models::{Loaded, SageMakerModels},
};
use crate::{
    handlers::infer,
    request::{received_request::ReceivedRequest, route::ModelPath},
    response::{
        Response,
        answers::{TEXT, failed, failure, reply},
        body::Body,
    },
    state::ServerState,
};

/// The header with the archive name of the model, which clients of SageMaker use.
const TARGET: &str = "x-amzn-sagemaker-target-model";

/// The longest wait for an unload. SageMaker waits ten seconds longer.
const UNLOAD_LIMIT: Duration = Duration::from_secs(350);
/// The first and the longest pause between checks of an unload.
const LOOKS: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(500)];

/// A call below `/models`. Names are SageMaker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelsCall<'p> {
    List,
    Get(&'p str),
    Load,
    Invoke(&'p str),
    Unload(&'p str),
}

impl<'p> ModelsCall<'p> {
    /// Parses `/models[/NAME[/invoke]]`. Returns `None` if no such call exists.
    pub fn parse(method: &Method, path: &'p str) -> Option<Self> {
        let rest = path.strip_prefix("/models")?;
        let (name, is_invocation) = match rest.strip_prefix('/') {
            None if rest.is_empty() => ("", false),
            None => return None,
            Some(name) => match name.strip_suffix("/invoke") {
                Some(name) => (name, true),
                None => (name, false),
            },
        };
        if name.contains('/') || (is_invocation && name.is_empty()) {
            return None;
        }
        match *method {
            Method::GET if name.is_empty() => Some(Self::List),
            Method::GET => Some(Self::Get(name)),
            Method::POST if is_invocation => Some(Self::Invoke(name)),
            // The body has the name.
            Method::POST => Some(Self::Load),
            Method::DELETE => Some(Self::Unload(name)),
            _ => None,
        }
    }

    /// Returns the permission that a client needs for the call. The body of a load names its model.
    pub fn access(self) -> Action<'p> {
        match self {
            Self::List => Action::ReadEverything,
            Self::Get(name) => Action::Read(name),
            Self::Load => Action::ControlServer,
            Self::Invoke(name) => Action::Infer(name),
            Self::Unload(name) => Action::Control(name),
        }
    }

    pub fn category(self) -> ApiCategory {
        match self {
            Self::Invoke(_) => ApiCategory::Inference,
            _ => ApiCategory::ModelRepository,
        }
    }
}

pub(crate) async fn respond(
    state: &ServerState,
    models: &SageMakerModels,
    call: ModelsCall<'_>,
    received: &mut ReceivedRequest<'_>,
) -> Response {
    match call {
        ModelsCall::List => document(sagemaker_models(&ready(state, models))),
        ModelsCall::Get(name) => match models.get(name) {
            Some(Loaded { place, .. }) => {
                document(to_json(&SageMakerModel { name: name.to_owned(), url: place }))
            }
            None => not_loaded(),
        },
        ModelsCall::Invoke(name) => match models.get(name) {
            Some(loaded)
                if model_name(received.sender.head, name) != loaded.model
                    && has_target(received.sender.head) =>
            {
                let text =
                    format!("the header {TARGET} does not name the model loaded as '{name}'");
                done(Err(Error::invalid_arg(text)))
            }
            Some(loaded) => invoke(state, &loaded.model, received).await,
            None => not_loaded(),
        },
        ModelsCall::Load => done(load(state, models, received).await),
        ModelsCall::Unload(name) => match models.begin_unload(name) {
            Some(loaded) => done(unload(state, models, name, loaded).await),
            None => not_loaded(),
        },
    }
}

/// Returns the models that requests can find.
fn ready(state: &ServerState, models: &SageMakerModels) -> Vec<SageMakerModel> {
    let all = models.all().into_iter();
    let ready = all.filter(|(_, loaded)| state.engine.model(&loaded.model, None).is_ok());
    ready.map(|(name, loaded)| SageMakerModel { name, url: loaded.place }).collect()
}

/// Runs an inference on the model that was loaded under the name in the path.
async fn invoke(state: &ServerState, model: &str, received: &mut ReceivedRequest<'_>) -> Response {
    let mut response =
        infer::respond(state, ModelPath { name: model, version: None }, received).await;
    let status = response.head.status;
    if status.is_success() || status == StatusCode::SERVICE_UNAVAILABLE {
        return response;
    }
    let is_memory = out_of_memory::is_meant(&response.body.text());
    response.head.status = status_of_failure(is_memory);
    response
}

async fn load(
    state: &ServerState,
    models: &SageMakerModels,
    received: &mut ReceivedRequest<'_>,
) -> Result<()> {
    let body = received.body(None, state.json_limit()).await?;
    let SageMakerLoad { name, url } = decode_sagemaker_load(&body)?;
    let model = model_name(received.sender.head, &name);
    let (engine, models) = (state.engine.clone(), models.clone());
    // Runs as its own task, so that a client that disconnects leaves nothing half done.
    let load = tokio::spawn(async move {
        let (adding, known) = (engine.clone(), models.clone());
        let (wanted, sagemaker_name) = (model.clone(), name.clone());
        let add = move || {
            let root = archive::find(known.folder(), &url, &wanted)?;
            let place = root.place();
            adding.add_repository(root)?;
            let loaded = Loaded { model: wanted, place: place.clone() };
            if !known.begin(&sagemaker_name, loaded) {
                adding.remove_repository(&place);
                return Err(name_taken(&sagemaker_name));
            }
            Ok(place)
        };
        let place = engine.control().query(add).await??;
        let loaded = engine.control().load(model, Default::default()).await;
        match &loaded {
            Ok(()) => models.set_ready(&name),
            Err(_) => forget(&engine, &models, name, place).await,
        }
        loaded
    });
    load.await.unwrap_or_else(|_| Err(Error::internal("the load panicked")))
}

/// Returns the name for the engine: the name of the archive, which answers then carry. If that cannot be a model name,
/// because the archive is in a folder, it is SageMaker's name.
fn model_name(headers: &RequestHead, name: &str) -> String {
    let target = headers.get(TARGET).and_then(visible_text);
    target.filter(|target| !target.is_empty() && !target.contains('/')).unwrap_or(name).to_owned()
}

fn has_target(headers: &RequestHead) -> bool {
    headers.get(TARGET).is_some_and(|target| !target.is_empty())
}

fn name_taken(name: &str) -> Error {
    let text = format!("failed to register '{name}', there is a conflicting mapping for '{name}'");
    Error::new(Code::AlreadyExists, text)
}

async fn forget(
    engine: &std::sync::Arc<galatea_engine::Engine>,
    models: &SageMakerModels,
    name: String,
    place: String,
) {
    let removing = engine.clone();
    // If too much waits, this thread does it, because it only reads one folder.
    let remove = move || removing.remove_repository(&place);
    let removed = engine.control().query(remove.clone()).await;
    if removed.is_err() {
        remove();
    }
    models.remove(&name);
}

#[expect(clippy::disallowed_methods, reason = "nothing reports the state that it looks for")]
async fn unload(
    state: &ServerState,
    models: &SageMakerModels,
    name: &str,
    loaded: Loaded,
) -> Result<()> {
    let (engine, models, name) = (state.engine.clone(), models.clone(), name.to_owned());
    let unload = tokio::spawn(async move {
        let Loaded { model, place } = loaded;
        if let Err(error) = engine.control().unload(model.clone(), true).await {
            models.set_ready(&name);
            return Err(error);
        }
        let deadline = Instant::now() + UNLOAD_LIMIT;
        let [mut pause, longest] = LOOKS;
        while !engine.is_unloaded(&model) && Instant::now() < deadline {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
        if !engine.is_unloaded(&model) {
            log::error!("'{model}' is not unloaded after {} s", UNLOAD_LIMIT.as_secs());
        }
        forget(&engine, &models, name, place).await;
        Ok(())
    });
    unload.await.unwrap_or_else(|_| Err(Error::internal("the unload panicked")))
}

/// Returns JSON without its content type, as the real server does.
fn document(json: Vec<u8>) -> Response {
    reply(StatusCode::OK, TEXT, json.into())
}

fn not_loaded() -> Response {
    let reason = Error::not_found("no model of this name is loaded");
    failed(reply(StatusCode::NOT_FOUND, TEXT, Body::default()), reason)
}

fn done(result: Result<()>) -> Response {
    let error = match result {
        Ok(()) => return reply(StatusCode::OK, TEXT, Body::default()),
        Err(error) => error,
    };
    let status = match error.code() {
        Code::AlreadyExists => StatusCode::CONFLICT,
        Code::Exhausted => return failure(&error, TEXT),
        _ => status_of_failure(out_of_memory::is_meant(error.message())),
    };
    failed(reply(status, TEXT, error_body(error.message()).into()), error)
}

fn status_of_failure(is_out_of_memory: bool) -> StatusCode {
    if is_out_of_memory { StatusCode::INSUFFICIENT_STORAGE } else { StatusCode::BAD_REQUEST }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::sent_head;

    #[test]
    fn multi_model_paths_and_methods_are_routed() {
        use ModelsCall::{Get, Invoke, List, Load, Unload};
        for (method, path, expected) in [
            (Method::GET, "/models", Some(List)),
            (Method::GET, "/models/", Some(List)),
            (Method::GET, "/models/m", Some(Get("m"))),
            (Method::GET, "/models/m/invoke", Some(Get("m"))),
            (Method::POST, "/models", Some(Load)),
            (Method::POST, "/models/m", Some(Load)),
            (Method::POST, "/models/invoke", Some(Load)),
            (Method::POST, "/models/m/invoke", Some(Invoke("m"))),
            (Method::DELETE, "/models/m", Some(Unload("m"))),
            (Method::DELETE, "/models", Some(Unload(""))),
            (Method::PUT, "/models", None),
            (Method::HEAD, "/models/m", None),
            (Method::GET, "/models/m/", None),
            (Method::GET, "/models//", None),
            (Method::POST, "/models//invoke", None),
            (Method::POST, "/models/a/b", None),
            (Method::POST, "/models/../m/invoke", None),
            (Method::GET, "/modelsx", None),
            (Method::GET, "/ping", None),
        ] {
            assert_eq!(ModelsCall::parse(&method, path), expected, "{method} {path}");
        }
        assert_eq!(Invoke("m").category(), ApiCategory::Inference);
        assert_eq!(Load.category(), ApiCategory::ModelRepository);
    }

    #[test]
    fn the_target_model_header_names_a_model_and_never_a_folder() {
        let name = |target: Option<&str>| {
            let headers: Vec<_> = target.iter().map(|target| (TARGET, *target)).collect();
            model_name(&sent_head::with(&headers), "hash")
        };
        assert_eq!(name(None), "hash");
        assert_eq!(name(Some("")), "hash");
        assert_eq!(name(Some("m.tar.gz")), "m.tar.gz");
        assert_eq!(name(Some("../m.tar.gz")), "hash");
        assert_eq!(name(Some("folder/m.tar.gz")), "hash");
    }
}
