//! Values of parameters that cannot be. Texts are Triton's, with what to write behind them.

use galatea_config::{Diagnostic, FieldPath};
use galatea_types::{Code, Error};

/// What a value had to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Number,
    YesOrNo,
    Yes,
    Hint,
    Streams,
    Precision,
    Binding,
    Device,
}

impl Expected {
    /// As in Triton, where it has the parameter.
    fn title(self) -> &'static str {
        match self {
            Self::Number => "a non-negative number",
            Self::YesOrNo => "either YES or NO",
            Self::Yes => "YES",
            Self::Hint => "LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT",
            Self::Streams => "either AUTO/NUMA/<int_value>",
            Self::Precision => "f32, bf16 or f16",
            Self::Binding => "either YES/NUMA/NO",
            Self::Device => "CPU",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Number => "write a whole number, 0 or more; 0 leaves it to OpenVINO",
            Self::YesOrNo => "write `YES` or `NO`",
            Self::Yes => "write `YES`, or remove the parameter",
            Self::Hint => "write `LATENCY` for few clients at a time, `THROUGHPUT` for many",
            Self::Streams => {
                "write the number of runs to be computed at once, `AUTO` or `NUMA`; or remove the parameter for one per \
                 instance"
            }
            Self::Precision => {
                "write `f32`, `bf16` or `f16`; int8 is a property of the model's file"
            }
            Self::Binding => "write `YES`, `NUMA` or `NO`",
            Self::Device => {
                "models of OpenVINO are computed on the CPU here: write `CPU`, or remove the parameter"
            }
        }
    }
}

/// A parameter that is not what it has to be.
#[derive(Debug, thiserror::Error)]
#[error("expected the parameter '{key}' to be {}, got {value}", expected.title())]
pub(crate) struct WrongValue {
    pub key: &'static str,
    pub expected: Expected,
    pub value: String,
}

impl From<WrongValue> for Error {
    fn from(wrong: WrongValue) -> Self {
        let field =
            FieldPath::from("parameters").named(wrong.key).field("value").field("string_value");
        let found = Diagnostic::error(wrong.to_string()).about(field);
        found.with_advice(wrong.expected.advice()).into_unplaced_error(Code::InvalidArg)
    }
}
