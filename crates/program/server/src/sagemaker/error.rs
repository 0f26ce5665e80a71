//! Why SageMaker's variables and folders make no server. The beginnings are those of the real server's start script.

use std::{io, path::PathBuf};

/// What is wrong with what SageMaker gave.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("Incorrect directory structure: '{}' is a model, and must be the folder that holds it", folder.display())]
    NoTopFolder { folder: PathBuf },
    #[error(
        "Invalid SAGEMAKER_TRITON_INFERENCE_TYPE '{given}'. Must be one of: infer, generate, generate_stream"
    )]
    InferenceType { given: String },
    #[error("Directory with provided SAGEMAKER_TRITON_DEFAULT_MODEL_NAME {model} does not exist")]
    NoSuchModel { model: String },
    #[error("No model found in model repository")]
    NoModel,
    #[error(
        "More than 1 model directory found in model repository: {found}. Name one with \
         SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
    )]
    SeveralModels { found: String },
    #[error("the model repository '{}' cannot be used: {source}", folder.display())]
    Unusable { folder: PathBuf, source: io::Error },
}
