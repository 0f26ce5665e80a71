//! Accelerators and parameters of them that cannot be used. Texts are Triton's where it has them.

use galatea_types::Error;

/// What a value had to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Boolean,
    Integer,
    Size,
}

impl ValueKind {
    fn title(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Integer => "integral number",
            Self::Size => "unsigned long long integral number",
        }
    }
}

/// Each names the accelerator or the parameter it is about, as far as Triton does.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum AcceleratorError {
    #[error("unknown Execution Accelerator '{name}' is requested")]
    Unknown { name: String },
    #[error("unknown parameter '{key}' is provided for TensorRT Execution Accelerator")]
    UnknownParameter { key: String },
    #[error("unsupported precision mode '{mode}' is requested")]
    Precision { mode: String },
    #[error("failed to convert '{value}' to {}", expected.title())]
    Value { value: String, expected: ValueKind },
    #[error("failed to convert {key} '{value}' to integral number")]
    NoNumber { key: &'static str, value: String },
    #[error("unsupported {key} value '{number}' is requested")]
    UnknownNumber { key: &'static str, number: i64 },
}

impl From<AcceleratorError> for Error {
    fn from(error: AcceleratorError) -> Self {
        Self::invalid_arg(error.to_string()).with_source(error)
    }
}
