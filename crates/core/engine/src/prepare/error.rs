//! Refusals of requests. Clients match on the texts, which are Triton's. Each names the tensor and the model.

use galatea_config::ModelConfig;
use galatea_types::{Error, InferRequest, Shape, Tensor, byte_strings::Truncated};

/// The reason why a request is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    text: String,
    has_id: bool,
}

impl Refusal {
    /// Creates a refusal whose text begins with the id of the request, like most.
    pub fn new(text: String) -> Self {
        Self { text, has_id: true }
    }

    /// Creates a refusal without the id, as in Triton.
    pub fn without_id(text: String) -> Self {
        Self { text, has_id: false }
    }

    /// Returns the complete error.
    pub fn for_request(self, request: &InferRequest) -> Error {
        let error = Error::invalid_arg(self.text);
        if self.has_id { error.prefixed(request.message_prefix()) } else { error }
    }
}

/// Returns the refusal of a string tensor with an element that ends outside of its buffer.
pub(super) fn truncated(input: &str, model: &str, truncated: Truncated) -> Refusal {
    Refusal::new(match truncated {
        Truncated::Length { available } => format!(
            "incomplete string length indicator for inference input '{input}' for model '{model}', expecting 4 bytes \
             but only {available} bytes available. Please make sure the string length indicator is in one buffer."
        ),
        Truncated::Element { length, available } => format!(
            "incomplete string data for inference input '{input}' for model '{model}', expecting string of length \
             {length} but only {available} bytes available. Please make sure the string is in one buffer."
        ),
    })
}

/// Returns the refusal of a request without inputs that the model requires.
pub(super) fn missing_inputs(
    request: &InferRequest,
    config: &ModelConfig,
    required: usize,
) -> Refusal {
    let total = config.inputs().len();
    let expected = match required == total {
        true => format!("expected {total} inputs"),
        false => format!("expected number of inputs between {required} and {total}"),
    };
    let missing =
        config.inputs().iter().filter(|s| !s.is_optional && request.input(&s.name).is_none());
    let (count, model) = (request.inputs.len(), config.name());
    let got = quoted(request.inputs.iter().map(|input| &*input.name));
    let missing = quoted(missing.map(|spec| &*spec.name));
    Refusal::new(format!(
        "{expected} but got {count} inputs for model '{model}'. Got input(s) {got}, but missing required input(s) \
         {missing}. Please provide all required input(s)."
    ))
}

/// `['a','b']`
fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.map(|name| format!("'{name}'")).collect();
    format!("[{}]", names.join(","))
}

pub(super) const BATCH_DIMENSION_NOTE: &str = "NOTE: Setting a non-zero max_batch_size in the model config requires a \
batch dimension to be prepended to each input shape. If you want to specify the full shape including the \
batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs \
for more info on max_batch_size.";

/// Returns the refusal of a shape that the configuration does not allow.
pub(super) fn unexpected_shape(input: &Tensor, dims: &Shape, config: &ModelConfig) -> Refusal {
    let has_batching = config.has_batching();
    let expected = if has_batching { dims.with_leading(-1) } else { dims.clone() };
    let note = if has_batching { BATCH_DIMENSION_NOTE } else { "" };
    let (Tensor { name, shape, .. }, model) = (input, config.name());
    let reading = batch_reading(shape, dims, has_batching);
    Refusal::new(format!(
        "unexpected shape for input '{name}' for model '{model}'. Expected {expected}, got {shape}. {note}{reading}"
    ))
}

/// Returns a hint about the batch dimension; empty if the shape does not fit the model with or without one.
pub(super) fn batch_reading(got: &Shape, dims: &Shape, has_batching: bool) -> String {
    match got.split_first() {
        _ if has_batching && dims.admits(got) => format!(
            " The request has the shape of one item without its batch dimension: send {}.",
            got.with_leading(1)
        ),
        Some((1, item)) if !has_batching && dims.admits(item) => format!(
            "The model takes no batch dimension, its max_batch_size is 0: send {}.",
            Shape::from(item)
        ),
        _ => String::new(),
    }
}

/// Returns the refusal of a batch size that the model does not take.
pub(super) fn batch_size(request: &InferRequest, config: &ModelConfig) -> Refusal {
    // Such an input has the shape of one item, whose first dimension was read as the size of the batch.
    let is_item = |input: &&Tensor| {
        config.input(&input.name).is_some_and(|spec| spec.dims.admits(&input.shape))
    };
    let item = request.inputs.iter().find(is_item).map(|Tensor { name, shape, .. }| {
        let batch = shape.with_leading(1);
        format!(
            " (input '{name}': {shape} is the shape of one item without its batch dimension: send {batch})"
        )
    });
    let (most, model, item) = (config.max_batch_size(), config.name(), item.unwrap_or_default());
    Refusal::new(format!("inference request batch-size must be <= {most} for '{model}'{item}"))
}
