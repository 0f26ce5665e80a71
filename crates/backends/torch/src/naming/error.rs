//! Configurations whose inputs and outputs are not those of `forward`. Texts are Triton's where it has them.

use galatea_config::{Diagnostic, FieldPath};
use galatea_types::{Code, Error};

/// Each names the model or the input it is about.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum NamingError {
    #[error("model configuration must contain at least one input, none were specified.")]
    NoInputs,
    #[error("model configuration must contain at least one output, none were specified.")]
    NoOutputs,
    #[error(
        "Multiple inputs of kind DictType were detected. Only a single input of type Dict(str, Tensor) is \
         supported."
    )]
    SeveralDictionaries,
    #[error(
        "An input of type '{type_name}' was detected in the model. Only a single input of type Dict(str, Tensor) \
         or input(s) of type Tensor are supported."
    )]
    UnsupportedType { type_name: String },
    #[error(
        "unable to load model '{model}', configuration expects {configured} inputs, model provides {provided}"
    )]
    InputCount { model: String, configured: usize, provided: usize },
    #[error(
        "unable to load model '{model}', input '{input}' refers to argument {position} of forward(), but the \
         configuration has {count} inputs: their indices must be 0 to {}",
        .count - 1
    )]
    PositionOutOfRange { model: String, input: String, position: usize, count: usize },
    #[error(
        "unable to load model '{model}', inputs '{first}' and '{second}' both refer to argument {position} of \
         forward()"
    )]
    PositionTwice { model: String, first: String, second: String, position: usize },
    #[error(
        "unable to load model '{model}', input '{input}' is {data_type}, but argument '{argument}' of forward() \
         takes {type_name}"
    )]
    OtherKind {
        model: String,
        input: String,
        data_type: &'static str,
        argument: String,
        type_name: String,
    },
}

impl From<NamingError> for Error {
    fn from(error: NamingError) -> Self {
        let code = match error {
            NamingError::NoInputs
            | NamingError::NoOutputs
            | NamingError::SeveralDictionaries
            | NamingError::UnsupportedType { .. } => Code::Internal,
            NamingError::InputCount { .. }
            | NamingError::PositionOutOfRange { .. }
            | NamingError::PositionTwice { .. }
            | NamingError::OtherKind { .. } => Code::InvalidArg,
        };
        let (field, advice) = error.remedy();
        let found = Diagnostic::error(error.to_string()).about(field).with_advice(advice);
        found.into_unplaced_error(code)
    }
}

impl NamingError {
    /// The field of the configuration that it is about, and what to write there.
    fn remedy(&self) -> (FieldPath, &'static str) {
        let name = |input: &str| FieldPath::from("input").named(input).field("name");
        match self {
            Self::NoInputs => (
                FieldPath::default(),
                "a TorchScript file does not say its inputs: write `input [ { name: \"INPUT__0\" data_type: TYPE_FP32 \
                 dims: [ ... ] } ]`",
            ),
            Self::NoOutputs => (
                FieldPath::default(),
                "a TorchScript file does not say its outputs: write `output [ { name: \"OUTPUT__0\" data_type: TYPE_FP32 \
                 dims: [ ... ] } ]`",
            ),
            Self::SeveralDictionaries | Self::UnsupportedType { .. } => (
                "input".into(),
                "let the model's forward() take tensors, or one dictionary of tensors, and export it again",
            ),
            Self::InputCount { .. } => {
                ("input".into(), "list one input for each argument of the model's forward()")
            }
            Self::PositionOutOfRange { input, .. } => {
                (name(input), "number the inputs from 0: `INPUT__0`, `INPUT__1`")
            }
            Self::PositionTwice { second, .. } => (
                name(second),
                "give each input the number of another argument: `INPUT__0`, `INPUT__1`",
            ),
            Self::OtherKind { input, .. } => (
                FieldPath::from("input").named(input).field("data_type"),
                "write the type that forward() takes: TYPE_STRING for a list of texts, a type of numbers for a tensor",
            ),
        }
    }
}
