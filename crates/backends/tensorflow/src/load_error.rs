//! Models that cannot be loaded, where neither their files nor their configuration say it.

use std::path::PathBuf;

use galatea_types::{Error, Result};

/// Each names the model it is about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error(
        "unable to load model '{model}': instance group '{group}' is for GPUs (KIND_GPU), which TensorFlow models do \
         not use here; use KIND_CPU"
    )]
    Gpu { model: String, group: String },
    #[error("unable to load model '{model}': TensorFlow cannot load '{}': {cause}", path.display())]
    Library {
        model: String,
        path: PathBuf,
        #[source]
        cause: Error,
    },
    #[error(
        "CPU Execution Accelerator is not supported in TensorFlow backend (model '{model}'); remove it"
    )]
    CpuAccelerator { model: String },
    #[error("unknown Execution Accelerator '{name}' is requested for model '{model}'; remove it")]
    UnknownAccelerator { model: String, name: String },
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Library { .. } => Error::internal(error.to_string()),
            _ => Error::invalid_arg(error.to_string()),
        }
        .with_source(error)
    }
}

/// The error of the library, with the file that it is about.
pub(crate) fn of_library<T>(result: Result<T>, model: &str, path: &std::path::Path) -> Result<T> {
    result.map_err(|cause| {
        LoadError::Library { model: model.to_owned(), path: path.to_owned(), cause }.into()
    })
}
