//! Configurations that do not agree with their model file. Texts are Triton's.

use std::fmt;

use galatea_types::{Code, DataType, Error, Shape};

use crate::ort::ValueKind;

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
    Scalar { model: String, name: String, dims: Shape },
    #[error(
        "model '{model}', tensor '{name}': for the model to support batching the shape should have at least 1 \
         dimension and the first dimension must be -1; but shape expected by the model is {model_dims}"
    )]
    NoBatchDimension { model: String, name: String, model_dims: Shape },
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
        ValueKind::OtherTensor(number) => format!("a tensor of ONNX element type {number}"),
        ValueKind::Sequence => "a sequence".to_owned(),
        ValueKind::Map => "a map".to_owned(),
        ValueKind::Other => "neither a tensor nor a sequence nor a map".to_owned(),
    }
}

impl From<Disagreement> for Error {
    fn from(error: Disagreement) -> Self {
        let code = match error {
            Disagreement::UnsupportedKind { .. } => Code::Unsupported,
            _ => Code::InvalidArg,
        };
        Error::new(code, error.to_string())
    }
}
