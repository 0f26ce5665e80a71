//! Configurations that do not agree with their model's file. Texts are Triton's where it has them.

use std::fmt;

use galatea_config::{Diagnostic, FieldPath};
use galatea_types::{Code, DataType, Error, Shape};

use super::UnsupportedKind;

/// The tensor of a model's configuration that an error is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The name of the model.
    pub model: String,
    /// What a text calls it: `input`, `output`.
    pub label: &'static str,
    /// Where the configuration lists it.
    pub path: FieldPath,
    /// The name of the tensor.
    pub name: String,
}

/// Each names the model and the tensor it is about.
#[derive(Debug, thiserror::Error)]
pub enum Disagreement {
    /// The model has more inputs than are configured, or fewer.
    #[error(
        "unable to load model '{model}', configuration expects {expected} inputs, model provides {provided}"
    )]
    InputCount {
        /// The name of the model.
        model: String,
        /// As many as are configured.
        expected: usize,
        /// As many as the model has.
        provided: usize,
    },
    /// Requests with and without it could not be joined.
    #[error(
        "unable to load model '{model}', optional input '{input}' is not supported for models that support batching"
    )]
    OptionalInput {
        /// The name of the model.
        model: String,
        /// The name of the input.
        input: String,
    },
    /// The model's tensor is of another type.
    #[error(
        "unable to load model '{}', configuration expects datatype {} for {} '{}', model provides TYPE_{provided}",
        .of.model, .expected.config_name(), .of.label, .of.name
    )]
    OtherType {
        /// The tensor.
        of: Subject,
        /// The configured type.
        expected: DataType,
        /// The model's.
        provided: DataType,
    },
    /// The model's tensor has no dimensions, the configured one has.
    #[error(
        "unable to load model '{}', scalar tensor '{}', should only provide 1 in the model configuration when the \
         model doesn't support batching. Model configuration provided: {dims}.",
        .of.model, .of.name
    )]
    Scalar {
        /// The tensor.
        of: Subject,
        /// As configured.
        dims: Shape,
    },
    /// The model's first dimension is fixed.
    #[error(
        "model '{}', tensor '{}': for the model to support batching the shape should have at least 1 dimension and \
         the first dimension must be -1; but shape expected by the model is {model_dims}",
        .of.model, .of.name
    )]
    NoBatchDimension {
        /// The tensor.
        of: Subject,
        /// The model's.
        model_dims: Shape,
        /// How such a model is made one that takes batches.
        how_to_batch: &'static str,
    },
    /// The model's shape is not the configured one.
    #[error(transparent)]
    OtherShape(Box<OtherShape>),
    /// Its elements are to be handed over in one dimension, which the model's tensor has not.
    #[error(
        "unable to load model '{}', configuration expects model provides input with shape [-1]  for ragged input '{}', \
         model provides {model_dims}",
        .of.model, .of.name
    )]
    RaggedShape {
        /// The tensor.
        of: Subject,
        /// The model's.
        model_dims: Shape,
    },
    /// A ragged input is there in every request.
    #[error(
        "unable to load model '{}', configuration expects model provides input with shape [-1] for ragged input '{}', \
         which is not supported for optional input",
        .of.model, .of.name
    )]
    OptionalRagged {
        /// The tensor.
        of: Subject,
    },
    /// An input that the server makes of the batch has other dimensions in the model.
    #[error(
        "unable to load model '{}', batch input '{}' is made with shape {made}, model provides {model_dims}",
        .of.model, .of.name
    )]
    BatchInputShape {
        /// The tensor.
        of: Subject,
        /// As the server makes it.
        made: Shape,
        /// The model's.
        model_dims: Shape,
    },
    /// The model's tensor is none that a request can carry.
    #[error(
        "unable to load model '{}', {} '{}' is {}, which is not supported",
        .of.model, .of.label, .of.name, .kind.description
    )]
    UnsupportedKind {
        /// The tensor.
        of: Subject,
        /// What it is.
        kind: UnsupportedKind,
    },
}

/// The model's shape is not the configured one.
#[derive(Debug, thiserror::Error)]
#[error(
    "model '{}', tensor '{}': the model expects {} dimensions (shape {model_dims}) but the model configuration \
     specifies {} dimensions {specified}",
    .of.model,
    .of.name,
    .model_dims.len(),
    .specified.shape.len()
)]
pub struct OtherShape {
    /// The tensor.
    pub of: Subject,
    /// The model's.
    pub model_dims: Shape,
    /// The configured one.
    pub specified: Specified,
}

/// A shape as the configuration specifies it, batch dimension included.
#[derive(Debug)]
pub struct Specified {
    /// The whole shape.
    pub shape: Shape,
    /// Its first dimension is the batch.
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

impl Subject {
    /// One that clients see.
    pub fn new(model: &str, what: &'static str, name: &str) -> Self {
        let path = FieldPath::from(what).named(name);
        Self { model: model.to_owned(), label: what, path, name: name.to_owned() }
    }

    fn field(&self, field: &'static str) -> FieldPath {
        self.path.clone().field(field)
    }
}

impl Disagreement {
    /// Where the configuration says it.
    fn field(&self) -> FieldPath {
        match self {
            Self::InputCount { .. } => "input".into(),
            Self::OptionalInput { input, .. } => {
                FieldPath::from("input").named(&**input).field("optional")
            }
            Self::OtherType { of, .. } => of.field("data_type"),
            Self::Scalar { of, .. } | Self::NoBatchDimension { of, .. } => of.field("dims"),
            Self::OtherShape(other) => other.of.field("dims"),
            Self::RaggedShape { of, .. } => of.field("allow_ragged_batch"),
            Self::OptionalRagged { of } => of.field("optional"),
            Self::BatchInputShape { of, .. } => of.field("kind"),
            Self::UnsupportedKind { of, .. } => of.field("name"),
        }
    }

    /// What to write instead.
    fn advice(&self) -> Option<String> {
        Some(match self {
            Self::InputCount { .. } => "list every input of the model, and no other".to_owned(),
            Self::OptionalInput { .. } => {
                "remove `optional`, or write `max_batch_size: 0`".to_owned()
            }
            Self::OtherType { provided, .. } => format!("write {}", provided.config_name()),
            Self::Scalar { .. } => "write `dims: [ 1 ]`".to_owned(),
            Self::NoBatchDimension { model_dims, how_to_batch, .. } => format!(
                "write `max_batch_size: 0` and the whole shape, `dims: {}`; or {how_to_batch}, for it to support \
                 batching",
                written(model_dims)
            ),
            Self::OtherShape(other) => other.advice(),
            Self::RaggedShape { .. } => {
                "export a model that takes all requests in one tensor of one dimension, or remove \
                `allow_ragged_batch`"
                    .to_owned()
            }
            Self::OptionalRagged { .. } => "remove `optional` or `allow_ragged_batch`".to_owned(),
            Self::BatchInputShape { made, .. } => format!(
                "export the model with an input of shape {made} for it, or choose another `kind`"
            ),
            Self::UnsupportedKind { of, kind } => match of.label {
                "output" => kind.output_advice?.to_owned(),
                _ => kind.input_advice?.to_owned(),
            },
        })
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

impl From<Disagreement> for Error {
    fn from(error: Disagreement) -> Self {
        let code = match error {
            Disagreement::UnsupportedKind { .. } => Code::Unsupported,
            _ => Code::InvalidArg,
        };
        let found = Diagnostic::error(error.to_string()).about(error.field());
        let found = match error.advice() {
            Some(advice) => found.with_advice(advice),
            None => found,
        };
        Error::new(code, error.to_string()).with_source(found)
    }
}
