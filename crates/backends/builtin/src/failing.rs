//! The model `failing`: fails when a parameter asks for it.

use std::sync::Arc;

use galatea_backend::{Batch, LoadContext, Model, ModelInstance};
use galatea_config::ModelConfig;
use galatea_types::{Error, InferRequest, ParameterValue, Parameters, Result, Tensor};

use crate::{model::model, wiring::Wiring};

pub(crate) fn load(context: &LoadContext) -> Result<Box<dyn Model>> {
    let config = &context.config;
    let failure = failure_of_model(config)?;
    if failure == Some(Failure::Load) {
        return Err(Error::internal(format!("model '{}' fails to load", config.name())));
    }
    let (wiring, name) = (Arc::new(Wiring::from_config(config)?), config.name().clone());
    model(move |spec| match failure {
        Some(Failure::Creation) => {
            Err(Error::internal(format!("instance '{}' fails to start", spec.name)))
        }
        _ => Ok(FailingInstance { wiring: wiring.clone(), failure, name: name.clone() }),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Load,
    Creation,
    Execute,
    Panic,
}

impl Failure {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "load" => Some(Self::Load),
            "creation" => Some(Self::Creation),
            "execute" => Some(Self::Execute),
            "panic" => Some(Self::Panic),
            _ => None,
        }
    }
}

/// Like `identity`, but fails when a parameter asks for it, so that tests can see that a failure affects nothing else.
///
/// The model parameter `fail` makes every load (`load`), every instance (`creation`) or every request
/// (`execute`) fail, or every execution panic (`panic`). The request parameter `fail` does the last two
/// for its own request (`execute`) or for the batch it is in (`panic`).
struct FailingInstance {
    wiring: Arc<Wiring>,
    failure: Option<Failure>,
    name: Arc<str>,
}

impl ModelInstance for FailingInstance {
    fn execute(&mut self, batch: &mut Batch) {
        for index in 0..batch.len() {
            if let Some(request) = batch.request(index) {
                let result = self.answer(request);
                batch.respond(index, result);
            }
        }
    }
}

impl FailingInstance {
    fn answer(&self, request: &InferRequest) -> Result<Vec<Tensor>> {
        match self.failure.or_else(|| failure_of_request(&request.parameters)) {
            #[expect(clippy::panic, reason = "the wall around instances is tested with it")]
            Some(Failure::Panic) => panic!("model '{}' was told to panic", self.name),
            Some(Failure::Execute) => {
                Err(Error::internal(format!("model '{}' was told to fail", self.name)))
            }
            _ => self.wiring.answer(request),
        }
    }
}

fn failure_of_model(config: &ModelConfig) -> Result<Option<Failure>> {
    let Some(name) = config.parameters().get("fail") else {
        return Ok(None);
    };
    let model = config.name();
    let unknown = || {
        Error::invalid_arg(format!(
            "parameter 'fail' of model '{model}' is '{name}', not load, creation, execute or panic"
        ))
    };
    Failure::from_name(name).map(Some).ok_or_else(unknown)
}

fn failure_of_request(parameters: &Parameters) -> Option<Failure> {
    let (_, value) = parameters.iter().find(|(name, _)| name == "fail")?;
    match value {
        ParameterValue::String(name) => Failure::from_name(name),
        _ => None,
    }
}
