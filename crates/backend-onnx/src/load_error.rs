//! Models that this server or this machine cannot run.

use std::path::PathBuf;

use galatea_types::Error;

/// Each names the model it is about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error(
        "unable to load model '{model}': instance group '{group}' is for GPUs (KIND_GPU), but ONNX Runtime {version} \
         {cause}; use KIND_CPU, or an ONNX Runtime that can use CUDA here (--onnxruntime-lib names it)"
    )]
    Cuda {
        model: String,
        group: String,
        /// Of ONNX Runtime.
        version: String,
        #[source]
        cause: Error,
    },
    #[error(
        "unable to load model '{model}': it asks for Execution Accelerator 'tensorrt', but ONNX Runtime {version} {cause}"
    )]
    TensorRt {
        model: String,
        /// Of ONNX Runtime.
        version: String,
        #[source]
        cause: Error,
    },
    #[error("unable to find '{}' for model '{model}'", path.display())]
    MissingFile { model: String, path: PathBuf },
    #[error("model '{model}' has no instance anywhere")]
    NoInstance { model: String },
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        let new = match error {
            LoadError::Cuda { .. } | LoadError::TensorRt { .. } => Error::invalid_arg,
            LoadError::MissingFile { .. } => Error::unavailable,
            LoadError::NoInstance { .. } => Error::internal,
        };
        new(error.to_string()).with_source(error)
    }
}
