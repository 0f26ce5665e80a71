use std::sync::Arc;

use crate::{Parameters, Tensor};

/// One answer to a request.
#[derive(Clone, Debug)]
pub struct InferResponse {
    pub model_name: Arc<str>,
    pub model_version: i64,
    pub id: String,
    pub parameters: Parameters,
    pub outputs: Vec<Tensor>,
}

impl InferResponse {
    pub fn output(&self, name: &str) -> Option<&Tensor> {
        self.outputs.iter().find(|t| &*t.name == name)
    }
}
