//! Errors of configurations that disagree with their model's file. Texts are Triton's if it has them.

use galatea_config::{Diagnostic, FieldPath};
use galatea_types::{Code, DataType, Error, Shape};

use super::UnsupportedKind;

/// The tensor of a model's configuration that an error is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The name of the model.
    pub model: String,
    /// The label in error texts: `input` or `output`.
    pub label: &'static str,
    /// The place in the configuration.
    pub path: FieldPath,
    /// The name of the tensor.
    pub name: String,
}

impl Subject {
    /// Creates the subject of a tensor that clients see.
    pub fn new(model: &str, what: &'static str, name: &str) -> Self {
        let path = FieldPath::from(what).named(name);
        Self { model: model.to_owned(), label: what, path, name: name.to_owned() }
    }

    fn disagrees(&self, field: &'static str, text: String, advice: impl Into<String>) -> Error {
        let found = Diagnostic::error(text).about(self.path.clone().field(field));
        found.with_advice(advice).into_unplaced_error(Code::InvalidArg)
    }

    /// The input is optional in a model with batches: requests with and without it cannot be joined.
    pub(super) fn optional(&self) -> Error {
        let text = format!(
            "unable to load model '{}', optional input '{}' is not supported for models that support batching",
            self.model, self.name
        );
        self.disagrees("optional", text, "remove `optional`, or write `max_batch_size: 0`")
    }

    /// The model's tensor has another type.
    pub(super) fn other_type(&self, expected: DataType, provided: DataType) -> Error {
        let text = format!(
            "unable to load model '{}', configuration expects datatype {} for {} '{}', model provides TYPE_{provided}",
            self.model,
            expected.config_name(),
            self.label,
            self.name
        );
        self.disagrees("data_type", text, format!("write {}", provided.config_name()))
    }

    /// The model's tensor has no dimensions, but the configured one has.
    pub(super) fn scalar(&self, dims: &Shape) -> Error {
        let text = format!(
            "unable to load model '{}', scalar tensor '{}', should only provide 1 in the model configuration when the \
             model doesn't support batching. Model configuration provided: {dims}.",
            self.model, self.name
        );
        self.disagrees("dims", text, "write `dims: [ 1 ]`")
    }

    /// The model's first dimension is fixed. `how_to_batch` says how to make such a model take batches.
    pub(super) fn no_batch_dimension(&self, model_dims: &Shape, how_to_batch: &str) -> Error {
        let text = format!(
            "model '{}', tensor '{}': for the model to support batching the shape should have at least 1 dimension and \
             the first dimension must be -1; but shape expected by the model is {model_dims}",
            self.model, self.name
        );
        let advice = format!(
            "write `max_batch_size: 0` and the whole shape, `dims: {}`; or {how_to_batch}, for it to support \
             batching",
            written(model_dims)
        );
        self.disagrees("dims", text, advice)
    }

    /// The model's shape is not the configured one, which is `shape` with the batch dimension, if the model batches.
    pub(super) fn other_shape(
        &self,
        model_dims: &Shape,
        shape: &Shape,
        has_batching: bool,
    ) -> Error {
        let specified = match has_batching {
            true => format!(
                "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, \
                 making complete shape {shape})"
            ),
            false => format!("(shape {shape})"),
        };
        let text = format!(
            "model '{}', tensor '{}': the model expects {} dimensions (shape {model_dims}) but the model configuration \
             specifies {} dimensions {specified}",
            self.model,
            self.name,
            model_dims.len(),
            shape.len()
        );
        let whole = || format!("write `dims: {}`, as in the model", written(model_dims));
        let advice = match model_dims.split_first() {
            _ if has_batching => format!(
                "write `dims: {}`: where max_batch_size is above 0, the batch dimension is not part of dims",
                written(model_dims.get(1..).unwrap_or_default())
            ),
            Some((-1, behind)) if behind.len() == shape.len() => format!(
                "{}; or `max_batch_size: 1` or more, if its first dimension is the batch",
                whole()
            ),
            _ => whole(),
        };
        self.disagrees("dims", text, advice)
    }

    /// The input is ragged: its elements are passed in one dimension, but the model's tensor has others.
    pub(super) fn ragged_shape(&self, model_dims: &Shape) -> Error {
        let text = format!(
            "unable to load model '{}', configuration expects model provides input with shape [-1]  for ragged input \
             '{}', model provides {model_dims}",
            self.model, self.name
        );
        let advice = "export a model that takes all requests in one tensor of one dimension, or remove \
                      `allow_ragged_batch`";
        self.disagrees("allow_ragged_batch", text, advice)
    }

    /// The input is ragged and optional, but a ragged input must be in every request.
    pub(super) fn optional_ragged(&self) -> Error {
        let text = format!(
            "unable to load model '{}', configuration expects model provides input with shape [-1] for ragged input \
             '{}', which is not supported for optional input",
            self.model, self.name
        );
        self.disagrees("optional", text, "remove `optional` or `allow_ragged_batch`")
    }

    /// The server makes an input with the dimensions `made`, but the model's input has others.
    pub(super) fn batch_input_shape(&self, made: &Shape, model_dims: &Shape) -> Error {
        let text = format!(
            "unable to load model '{}', batch input '{}' is made with shape {made}, model provides {model_dims}",
            self.model, self.name
        );
        let advice = format!(
            "export the model with an input of shape {made} for it, or choose another `kind`"
        );
        self.disagrees("kind", text, advice)
    }

    /// The model's tensor is of a kind that requests cannot carry.
    pub fn unsupported(&self, kind: &UnsupportedKind) -> Error {
        let text = format!(
            "unable to load model '{}', {} '{}' is {}, which is not supported",
            self.model, self.label, self.name, kind.description
        );
        let mut found = Diagnostic::error(text).about(self.path.clone().field("name"));
        found.advice = match self.label {
            "output" => kind.output_advice,
            _ => kind.input_advice,
        }
        .map(str::to_owned);
        found.into_unplaced_error(Code::Unsupported)
    }
}

/// The model has more or fewer inputs than the configuration.
pub(super) fn other_input_count(model: &str, expected: usize, provided: usize) -> Error {
    let text = format!(
        "unable to load model '{model}', configuration expects {expected} inputs, model provides {provided}"
    );
    let found = Diagnostic::error(text).about("input");
    found
        .with_advice("list every input of the model, and no other")
        .into_unplaced_error(Code::InvalidArg)
}

/// Returns dimensions as a configuration writes them.
fn written(dims: &[i64]) -> String {
    let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("[ {} ]", dims.join(", "))
}
