//! The server as its models see it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use galatea_backend::{InferTarget, ModelControl, ServerAccess};
use galatea_telemetry::CustomMetrics;
use galatea_types::{Buffer, Error, InferRequest, Refused, Responder, Result};

use crate::{Engine, LoadOverrides};

/// Models are held by the engine, so they hold it weakly.
struct Access(Weak<Engine>);

pub(crate) fn of(engine: Weak<Engine>, metrics: Arc<CustomMetrics>) -> ServerAccess {
    let access = Arc::new(Access(engine));
    ServerAccess { models: access.clone(), control: access, metrics }
}

impl Access {
    fn engine(&self) -> Result<Arc<Engine>> {
        self.0.upgrade().ok_or_else(|| Error::unavailable("Server exiting"))
    }
}

impl InferTarget for Access {
    fn infer(&self, request: InferRequest, responder: Responder) -> Result<(), Refused> {
        let found = self
            .engine()
            .and_then(|e| e.model_for_step(&request.model_name, request.model_version));
        match found {
            Ok(model) => model.infer(request, responder),
            Err(error) => Err(Refused::new(error, responder)),
        }
    }

    fn is_decoupled(&self, model: &str, version: Option<i64>) -> Result<bool> {
        Ok(self.engine()?.model_for_step(model, version)?.config().is_decoupled())
    }
}

impl ModelControl for Access {
    fn load_model(
        &self,
        name: &str,
        config: Option<String>,
        files: BTreeMap<String, Buffer>,
    ) -> Result<()> {
        self.engine()?.load_model(name, LoadOverrides { config, files })
    }

    fn unload_model(&self, name: &str, unload_dependents: bool) -> Result<()> {
        self.engine()?.unload_model(name, unload_dependents)
    }

    fn is_model_ready(&self, name: &str, version: Option<i64>) -> bool {
        self.engine().is_ok_and(|engine| engine.is_model_ready(name, version))
    }
}
