//! The model `failing`: fails where a parameter asks for it.

use std::sync::Arc;

use galatea_backend::{Backend, Batch, InstanceSpec, LoadContext, Model, ModelInstance};
use galatea_config::ModelConfig;
use galatea_types::{Error, InferRequest, ParameterValue, Parameters, Result, Tensor};

use crate::identity::Wiring;

/// Like `identity`, but fails when a parameter asks for it, so that tests can see that a failure stays where it happened.
///
/// The model parameter `fail` makes every load (`load`), every instance (`creation`) or every request
/// (`execute`) fail, or every execution panic (`panic`). The request parameter `fail` does the last two
/// for its own request (`execute`) or for the batch it is in (`panic`).
#[derive(Debug, Default)]
pub struct FailingBackend;

impl FailingBackend {
    /// The backend; it needs nothing.
    pub fn new() -> Self {
        Self
    }
}

impl Backend for FailingBackend {
    fn name(&self) -> &str {
        "failing"
    }

    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>> {
        let config = &context.config;
        let failure = failure_of_model(config)?;
        if failure == Some(Failure::Load) {
            return Err(Error::internal(format!("model '{}' fails to load", config.name())));
        }
        let wiring = Arc::new(Wiring::from_config(config)?);
        Ok(Box::new(FailingModel { wiring, failure, name: config.name().clone() }))
    }
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

struct FailingModel {
    wiring: Arc<Wiring>,
    failure: Option<Failure>,
    name: Arc<str>,
}

impl Model for FailingModel {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        if self.failure == Some(Failure::Creation) {
            return Err(Error::internal(format!("instance '{}' fails to start", spec.name)));
        }
        let (wiring, name) = (self.wiring.clone(), self.name.clone());
        Ok(Box::new(FailingInstance { wiring, failure: self.failure, name }))
    }
}

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
    let unknown = || {
        let model = config.name();
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
