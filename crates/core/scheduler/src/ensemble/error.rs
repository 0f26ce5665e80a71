//! What can be wrong with an ensemble, and with a request on its way through one.

use galatea_types::{Code, Error};

/// Clients match on the texts of `InvalidArg`; the others are defects of the server.
#[derive(Debug, thiserror::Error)]
pub(super) enum EnsembleError {
    #[error("model '{model}' is no ensemble")]
    NoEnsemble { model: String },
    #[error("ensemble '{model}' lacks models")]
    LacksModels { model: String },
    #[error("a step of the ensemble can never run")]
    StepNeverRuns,
    #[error("model '{model}' has no tensor '{tensor}'")]
    NoTensor { model: String, tensor: String },
    #[error(
        "in ensemble {ensemble}, step of model '{reader}' receives inputs originated from different \
         decoupled models"
    )]
    MixedDecoupledInputs { ensemble: String, reader: String },
    #[error(
        "{prefix}unexpected deadlock, at least one output is not set while no more ensemble steps can be \
         made"
    )]
    MissingOutput { prefix: String },
    #[error(
        "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING"
    )]
    SequenceIdType,
    #[error("expect parameter '{name}' to be TRITONSERVER_PARAMETER_BOOL")]
    SequenceFlagType { name: String },
}

impl EnsembleError {
    fn code(&self) -> Code {
        match self {
            Self::NoEnsemble { .. }
            | Self::LacksModels { .. }
            | Self::StepNeverRuns
            | Self::NoTensor { .. } => Code::Internal,
            Self::MixedDecoupledInputs { .. }
            | Self::MissingOutput { .. }
            | Self::SequenceIdType
            | Self::SequenceFlagType { .. } => Code::InvalidArg,
        }
    }
}

impl From<EnsembleError> for Error {
    fn from(error: EnsembleError) -> Self {
        Error::new(error.code(), error.to_string())
    }
}
