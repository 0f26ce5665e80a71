//! Configurations that do not agree with their model file. Texts are Triton's.

use std::fmt;

use galatea_config::{Diagnostic, FieldPath};
use galatea_types::{Code, DataType, Error, Shape};

use crate::{signature::ValueKind, tensorflow::type_name};

/// Each names the model and the tensor it is about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Disagreement {
    #[error(
        "unable to load model '{model}', configuration expects {expected} inputs, model provides {provided}"
    )]
    InputCount { model: String, expected: usize, provided: usize },
    #[error(
        "unable to load model '{model}', optional input '{input}' is not supported for models that support batching"
    )]
    OptionalInput { model: String, input: String },
    #[error(
        "unable to load model '{model}', configuration expects datatype {} for {what} '{name}', model provides \
         TYPE_{provided}",
        .expected.config_name()
    )]
    OtherType {
        model: String,
        what: &'static str,
        name: String,
        expected: DataType,
        provided: DataType,
    },
    #[error(
        "unable to load model '{model}', scalar tensor '{name}', should only provide 1 in the model configuration \
         when the model doesn't support batching. Model configuration provided: {dims}."
    )]
    Scalar { model: String, what: &'static str, name: String, dims: Shape },
    #[error(
        "model '{model}', tensor '{name}': for the model to support batching the shape should have at least 1 \
         dimension and the first dimension must be -1; but shape expected by the model is {model_dims}"
    )]
    NoBatchDimension { model: String, what: &'static str, name: String, model_dims: Shape },
    #[error(transparent)]
    OtherShape(Box<OtherShape>),
    #[error("unable to load model '{model}', {what} '{name}' is {}, which is not supported", described(.kind))]
    UnsupportedKind { model: String, what: &'static str, name: String, kind: ValueKind },
}

/// The model's shape is not the configured one.
#[derive(Debug, thiserror::Error)]
#[error(
    "model '{model}', tensor '{name}': the model expects {} dimensions (shape {model_dims}) but the model \
     configuration specifies {} dimensions {specified}",
    .model_dims.len(),
    .specified.shape.len()
)]
pub(crate) struct OtherShape {
    pub model: String,
    /// `input` or `output`.
    pub what: &'static str,
    pub name: String,
    pub model_dims: Shape,
    pub specified: Specified,
}

/// A shape as the configuration specifies it, batch dimension included.
#[derive(Debug)]
pub(crate) struct Specified {
    pub shape: Shape,
    pub has_batching: bool,
}

impl fmt::Display for Specified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = &self.shape;
        match self.has_batching {
            true => write!(
                f,
                "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, \
                 making complete shape {shape})"
            ),
            false => write!(f, "(shape {shape})"),
        }
    }
}

fn described(kind: &ValueKind) -> String {
    match kind {
        ValueKind::Tensor(data_type) => format!("a tensor of {data_type}"),
        ValueKind::OtherTensor(number) => {
            format!("a tensor of TensorFlow's type {}", type_name(*number))
        }
        ValueKind::Composite => "a sparse tensor, or another value of several tensors".to_owned(),
    }
}

impl Disagreement {
    /// Where the configuration says it.
    fn field(&self) -> Option<FieldPath> {
        let of = |what: &'static str, name: &str, field| {
            Some(FieldPath::from(what).named(name).field(field))
        };
        match self {
            Self::InputCount { .. } => Some("input".into()),
            Self::OptionalInput { input, .. } => of("input", input, "optional"),
            Self::OtherType { what, name, .. } => of(what, name, "data_type"),
            Self::Scalar { what, name, .. } | Self::NoBatchDimension { what, name, .. } => {
                of(what, name, "dims")
            }
            Self::OtherShape(other) => of(other.what, &other.name, "dims"),
            Self::UnsupportedKind { what, name, .. } => of(what, name, "name"),
        }
    }
}

impl Disagreement {
    /// What to write instead.
    fn advice(&self) -> Option<String> {
        match self {
            Self::InputCount { .. } => {
                Some("list every input of the model, and no other".to_owned())
            }
            Self::OptionalInput { .. } => {
                Some("remove `optional`, or write `max_batch_size: 0`".to_owned())
            }
            Self::OtherType { provided, .. } => Some(format!("write {}", provided.config_name())),
            Self::Scalar { .. } => Some("write `dims: [ 1 ]`".to_owned()),
            Self::NoBatchDimension { model_dims, .. } => Some(format!(
                "write `max_batch_size: 0` and the whole shape, `dims: {}`; or save the model with an open first \
                 dimension (None), for it to support batching",
                written(model_dims)
            )),
            Self::OtherShape(other) => Some(other.advice()),
            Self::UnsupportedKind { .. } => Some(WITHOUT_IT.to_owned()),
        }
    }
}

impl OtherShape {
    fn advice(&self) -> String {
        if self.specified.has_batching {
            let own = Shape::from(self.model_dims.get(1..).unwrap_or_default().to_vec());
            return format!(
                "write `dims: {}`: where max_batch_size is above 0, the batch dimension is not part of dims",
                written(&own)
            );
        }
        let whole = format!("write `dims: {}`, as in the model", written(&self.model_dims));
        let lacks_batch = self.specified.shape.len() + 1 == self.model_dims.len();
        match lacks_batch && self.model_dims.first() == Some(&-1) {
            true => format!(
                "{whole}; or `max_batch_size: 1` or more, if its first dimension is the batch"
            ),
            false => whole,
        }
    }
}

/// As a configuration has it.
fn written(dims: &Shape) -> String {
    let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("[ {} ]", dims.join(", "))
}

const WITHOUT_IT: &str = "save the model with a signature that takes and gives ordinary tensors; or list in config.pbtxt \
    only the outputs that are ones";

impl From<Disagreement> for Error {
    fn from(error: Disagreement) -> Self {
        let code = match error {
            Disagreement::UnsupportedKind { .. } => Code::Unsupported,
            _ => Code::InvalidArg,
        };
        let found = Diagnostic::error(error.to_string());
        let found = match error.advice() {
            Some(advice) => found.with_advice(advice),
            None => found,
        };
        let text = error.to_string();
        Error::new(code, text).with_source(match error.field() {
            Some(field) => found.about(field),
            None => found,
        })
    }
}
