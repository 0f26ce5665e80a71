use std::sync::Arc;

use galatea_config::ModelConfig;
use galatea_types::{Error, InferRequest, Responder};

/// One model version that is ready to answer.
pub struct ServedModel {
    config: Arc<ModelConfig>,
    version: i64,
}

impl ServedModel {
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    pub fn version(&self) -> i64 {
        self.version
    }

    /// Every version of this model that is ready, ascending.
    pub fn ready_versions(&self) -> Vec<i64> {
        vec![self.version]
    }

    /// The class label of an output, when the model has a label file for it.
    pub fn label(&self, output: &str, class: usize) -> Option<&str> {
        let _ = (output, class);
        None
    }

    /// Checks the request against the configuration and hands it to the scheduler. Never blocks; every
    /// outcome, also a refusal, comes through `responder`.
    pub fn infer(&self, request: InferRequest, responder: Responder) {
        let _ = request;
        responder.finish(Err(Error::internal("not built")));
    }
}
