//! Models that this server or this machine cannot run. Texts are Triton's where it has them.

use std::{error, path::PathBuf};

use galatea_types::{Code, Error};

use crate::torch::Place;

/// Each names the model it is about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("model '{model}' has no instance group for {place:?}")]
    NoInstanceGroup { model: String, place: Place },
    #[error("failed to load model '{model}': {cause} ('{}')", path.display())]
    Load {
        model: String,
        path: PathBuf,
        #[source]
        cause: Box<dyn error::Error + Send + Sync>,
    },
    #[error("unable to find '{}' for model instance '{model}'", path.display())]
    NoFile { model: String, path: PathBuf },
    #[error("unsupported datatype {data_type} for {what} '{tensor}' for model '{model}'")]
    DataType {
        model: String,
        /// `input` or `output`.
        what: &'static str,
        tensor: String,
        data_type: &'static str,
    },
    #[error(
        "Triton only supports 1 dimensional List of String as {what} for '{tensor}' for model '{model}'"
    )]
    StringDimensions {
        model: String,
        /// `input` or `output`.
        what: &'static str,
        tensor: String,
    },
    #[error(
        "unsupported datatype TYPE_STRING for '{tensor}' for model '{model}': packages take and return tensors"
    )]
    StringsInPackage { model: String, tensor: String },
    #[error(
        "unable to load model '{model}': instance group '{group}' is for GPU {gpu} (KIND_GPU), but PyTorch {version} \
         {}; use KIND_CPU, or a PyTorch built for the GPUs of this machine (--libtorch names it)",
        found(*devices)
    )]
    NoGpu {
        model: String,
        group: String,
        gpu: u32,
        /// Of PyTorch.
        version: String,
        /// How many GPUs it can use.
        devices: u32,
    },
}

fn found(devices: u32) -> String {
    match devices {
        0 => "finds no GPU that it can use here".to_owned(),
        1 => "finds GPU 0 alone".to_owned(),
        n => format!("finds GPUs 0 to {}", n - 1),
    }
}

impl LoadError {
    fn code(&self) -> Code {
        match self {
            Self::NoInstanceGroup { .. }
            | Self::Load { .. }
            | Self::DataType { .. }
            | Self::StringDimensions { .. } => Code::Internal,
            Self::NoFile { .. } => Code::Unavailable,
            Self::StringsInPackage { .. } | Self::NoGpu { .. } => Code::InvalidArg,
        }
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        Error::new(error.code(), error.to_string()).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_gpu_is_named_with_those_there_are() {
        let error = |devices| LoadError::NoGpu {
            model: "m".to_owned(),
            group: "m_0".to_owned(),
            gpu: 7,
            version: "2.9".to_owned(),
            devices,
        };
        let found = [
            (0, "finds no GPU that it can use here"),
            (1, "finds GPU 0 alone"),
            (4, "finds GPUs 0 to 3"),
        ];
        for (devices, found) in found {
            let expected = format!(
                "unable to load model 'm': instance group 'm_0' is for GPU 7 (KIND_GPU), but PyTorch 2.9 {found}; \
                 use KIND_CPU, or a PyTorch built for the GPUs of this machine (--libtorch names it)"
            );
            let error = Error::from(error(devices));
            assert_eq!((error.code(), error.message()), (Code::InvalidArg, &*expected));
        }
    }
}
