//! Models that this server or this machine cannot run.

use std::path::PathBuf;

use galatea_types::Error;

/// Each names the model it is about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error(
        "unable to load model '{model}': instance group '{group}' is for GPUs (KIND_GPU), but ONNX Runtime {version} \
         {cause}; use KIND_CPU, start with --gpu-groups=cpu, or use an ONNX Runtime that can use CUDA here \
         (--onnxruntime-lib names it)"
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
    /// There is nothing of that name. In Triton's words, as the next.
    #[error("failed to stat file {}", .0.display())]
    MissingFile(PathBuf),
    /// There is a folder of that name, and no model in it.
    #[error("unable to find '{}' for model instance '{model}'", path.display())]
    EmptyFolder { model: String, path: PathBuf },
    #[error(
        "unable to autofill for '{model}': the file does not say how many dimensions {what} '{name}' has; write every {what} \
         with its data_type and dims in config.pbtxt, or export the model with a shape for '{name}'"
    )]
    OpenRank { model: String, what: &'static str, name: String },
    #[error("model '{model}' has no instance anywhere")]
    NoInstance { model: String },
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        let new = match error {
            LoadError::Cuda { .. } | LoadError::TensorRt { .. } | LoadError::OpenRank { .. } => {
                Error::invalid_arg
            }
            LoadError::EmptyFolder { .. } => Error::unavailable,
            LoadError::MissingFile(_) | LoadError::NoInstance { .. } => Error::internal,
        };
        new(error.to_string()).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use galatea_types::Code;

    use super::*;

    fn subject() -> (String, String, Error) {
        ("m".to_owned(), "1.23".to_owned(), Error::unavailable("was built without X"))
    }

    #[test]
    fn what_the_library_lacks_is_named_after_it() {
        let (model, version, cause) = subject();
        let error = Error::from(LoadError::Cuda { model, group: "m_0".to_owned(), version, cause });
        assert_eq!(
            (error.code(), error.message()),
            (
                Code::InvalidArg,
                "unable to load model 'm': instance group 'm_0' is for GPUs (KIND_GPU), but ONNX Runtime 1.23 was \
                 built without X; use KIND_CPU, start with --gpu-groups=cpu, or use an ONNX Runtime that can use CUDA here \
                 (--onnxruntime-lib names it)"
            )
        );
        let (model, version, cause) = subject();
        let error = Error::from(LoadError::TensorRt { model, version, cause });
        assert_eq!(
            error.message(),
            "unable to load model 'm': it asks for Execution Accelerator 'tensorrt', but ONNX Runtime 1.23 was built \
             without X"
        );
    }
}
