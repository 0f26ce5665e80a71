//! The server's services for models: inference by other models, model control, metrics.

use std::{collections::BTreeMap, fmt, sync::Arc};

use galatea_telemetry::CustomMetrics;
use galatea_types::{
    Buffer, Error, InferRequest, MemoryBudget, Refused, RequestContext, Responder, Result,
};

/// Sends a model's own requests: those of ensembles to their steps, and of Python models to other models.
pub trait InferTarget: Send + Sync {
    /// Finds the model, checks the request and passes it on. Never blocks. The responses come through `responder`.
    ///
    /// # Errors
    /// [`Refused`] if nothing will be executed: no such model, a request that does not fit it, or a full queue.
    fn infer(
        &self,
        request: InferRequest,
        context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused>;

    /// Returns true if the model may send any number of responses. Fails if a request to it would.
    fn is_decoupled(&self, model: &str, version: Option<i64>) -> Result<bool>;
}

/// Loads and unloads models for a model. Loading blocks until the model is ready or failed.
pub trait ModelControl: Send + Sync {
    /// Loads a model. `config` is a configuration as JSON that replaces the repository's. `files` has the
    /// content of files by their path in the model's folder.
    fn load_model(
        &self,
        name: &str,
        config: Option<String>,
        files: BTreeMap<String, Buffer>,
    ) -> Result<()>;

    /// Unloads every version; with `unload_dependents` also the models that it consists of.
    fn unload_model(&self, name: &str, unload_dependents: bool) -> Result<()>;

    /// Returns true if the model is ready, false also if it does not exist.
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
    /// The budget that memory held for clients is counted in.
    pub memory: Arc<MemoryBudget>,
}

impl Default for ServerAccess {
    /// Returns access without a server, for a backend's own tests. Every call is refused.
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
