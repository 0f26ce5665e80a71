//! What a model may ask of the server around it: inference by other models, model control, metrics.

use std::{collections::BTreeMap, fmt, sync::Arc};

use galatea_telemetry::CustomMetrics;
use galatea_types::{
    Buffer, Error, InferRequest, MemoryBudget, Refused, RequestContext, Responder, Result,
};

/// Where a model sends requests of its own: ensembles to their steps, Python models to other models.
pub trait InferTarget: Send + Sync {
    /// Finds the model, checks the request and hands it on. Never blocks. What became of the request comes
    /// through `responder`.
    ///
    /// # Errors
    /// [`Refused`] when nothing will be executed: no such model, a request that does not fit it, a full
    /// queue.
    fn infer(
        &self,
        request: InferRequest,
        context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused>;

    /// Whether the model may answer any number of times. Fails as a request to it would.
    fn is_decoupled(&self, model: &str, version: Option<i64>) -> Result<bool>;
}

/// What a model may do to the models beside it. Loading blocks until the model is ready or failed.
pub trait ModelControl: Send + Sync {
    /// `config`: a model configuration as JSON in place of the repository's; `files`: path relative to the
    /// model's folder, and content.
    fn load_model(
        &self,
        name: &str,
        config: Option<String>,
        files: BTreeMap<String, Buffer>,
    ) -> Result<()>;

    /// Unloads every version; with `unload_dependents` also the models it is made of.
    fn unload_model(&self, name: &str, unload_dependents: bool) -> Result<()>;

    /// False also for a model that does not exist.
    fn is_model_ready(&self, name: &str, version: Option<i64>) -> bool;
}

/// The server as a backend sees it.
#[derive(Clone)]
pub struct ServerAccess {
    /// Inference by other models.
    pub models: Arc<dyn InferTarget>,
    /// Loading and unloading of models.
    pub control: Arc<dyn ModelControl>,
    /// Metrics that models define themselves.
    pub metrics: Arc<CustomMetrics>,
    /// What the server holds for clients counts to it.
    pub memory: Arc<MemoryBudget>,
}

impl Default for ServerAccess {
    /// No server around: what a backend gets in its own tests. Every call is refused.
    fn default() -> Self {
        Self {
            models: Arc::new(NoServer),
            control: Arc::new(NoServer),
            metrics: Arc::default(),
            memory: MemoryBudget::unlimited(),
        }
    }
}

impl fmt::Debug for ServerAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerAccess")
    }
}

struct NoServer;

impl InferTarget for NoServer {
    fn infer(
        &self,
        _: InferRequest,
        _: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused> {
        Err(Refused::new(no_server(), responder))
    }

    fn is_decoupled(&self, _: &str, _: Option<i64>) -> Result<bool> {
        Err(no_server())
    }
}

impl ModelControl for NoServer {
    fn load_model(&self, _: &str, _: Option<String>, _: BTreeMap<String, Buffer>) -> Result<()> {
        Err(no_server())
    }

    fn unload_model(&self, _: &str, _: bool) -> Result<()> {
        Err(no_server())
    }

    fn is_model_ready(&self, _: &str, _: Option<i64>) -> bool {
        false
    }
}

fn no_server() -> Error {
    Error::unavailable("there is no server around this model")
}
