//! The server's services for its models: requests to other models, load and unload.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use galatea_backend::{InferTarget, ModelControl, ServerAccess};
use galatea_telemetry::CustomMetrics;
use galatea_types::{
    Buffer, Clock, Error, InferRequest, Refused, RequestContext, Responder, Result,
};

use crate::{manager::ModelManager, options::EngineOptions, overrides::LoadOverrides};

/// Holds the manager weakly, because the manager holds the models.
struct Access {
    manager: Weak<ModelManager>,
    clock: Clock,
}

pub(crate) fn new(
    manager: Weak<ModelManager>,
    metrics: Arc<CustomMetrics>,
    options: &EngineOptions,
) -> ServerAccess {
    let (clock, memory) = (options.clock.clone(), options.memory.clone());
    let access = Arc::new(Access { manager, clock });
    ServerAccess { models: access.clone(), control: access, metrics, memory }
}

impl Access {
    fn manager(&self) -> Result<Arc<ModelManager>> {
        self.manager.upgrade().ok_or_else(|| Error::unavailable("Server exiting"))
    }
}

impl InferTarget for Access {
    fn infer(
        &self,
        request: InferRequest,
        mut context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused> {
        let found = self
            .manager()
            .and_then(|m| m.models.for_model(&request.model_name, request.model_version));
        match found {
            Ok(model) => model.infer(request, context, responder),
            Err(error) => {
                context.finish(self.clock.now());
                Err(Refused::new(error, responder))
            }
        }
    }

    fn is_decoupled(&self, model: &str, version: Option<i64>) -> Result<bool> {
        Ok(self.manager()?.models.for_model(model, version)?.config().is_decoupled())
    }
}

impl ModelControl for Access {
    fn load_model(
        &self,
        name: &str,
        config: Option<String>,
        files: BTreeMap<String, Buffer>,
    ) -> Result<()> {
        self.manager()?.load(name, LoadOverrides { config, files })
    }

    fn unload_model(&self, name: &str, unload_dependents: bool) -> Result<()> {
        self.manager()?.unload(name, unload_dependents)
    }

    /// Blocks while the model answers, if it has its own check.
    fn is_model_ready(&self, name: &str, version: Option<i64>) -> bool {
        let model = self.manager().and_then(|m| m.models.for_client(name, version));
        model.is_ok_and(|model| model.query_readiness())
    }
}
