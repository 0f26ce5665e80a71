//! Which requests of a model may share a batch.

use std::sync::Arc;

use galatea_config::ModelConfig;
use galatea_types::InferRequest;

/// Requests share a batch when they bring the same inputs, and inputs of variable shape that the model does not
/// take ragged have the same shape in all of them.
pub(crate) struct JoinRules {
    /// Inputs whose shape may differ from request to request and must be equal within a batch.
    equal_inputs: Vec<Arc<str>>,
    /// Some inputs are optional, so requests may differ in which they bring.
    has_optional_inputs: bool,
}

impl JoinRules {
    pub fn from_config(config: &ModelConfig) -> Self {
        let equal_inputs = config
            .inputs()
            .iter()
            .filter(|i| i.dims.is_variable() && !i.allows_ragged_batch)
            .map(|i| i.name.clone())
            .collect();
        Self { equal_inputs, has_optional_inputs: config.inputs().iter().any(|i| i.is_optional) }
    }

    /// Whether there are requests of the model that cannot share a batch.
    pub fn keep_apart(&self) -> bool {
        self.has_optional_inputs || !self.equal_inputs.is_empty()
    }

    pub fn can_join(&self, a: &InferRequest, b: &InferRequest) -> bool {
        (!self.has_optional_inputs || has_same_inputs(a, b))
            && self.equal_inputs.iter().all(|name| has_equal_shape(a, b, name))
    }
}

fn has_same_inputs(a: &InferRequest, b: &InferRequest) -> bool {
    a.inputs.len() == b.inputs.len() && a.inputs.iter().all(|t| b.input(&t.name).is_some())
}

/// Compares all dimensions but the batch dimension.
fn has_equal_shape(a: &InferRequest, b: &InferRequest, name: &str) -> bool {
    match (a.input(name), b.input(name)) {
        (Some(a), Some(b)) => a.shape.get(1..) == b.shape.get(1..),
        (a, b) => a.is_none() && b.is_none(),
    }
}
