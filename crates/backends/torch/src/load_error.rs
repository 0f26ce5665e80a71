//! Models that this server or this machine cannot run. Texts are Triton's where it has them.

use std::{error, path::PathBuf};

use galatea_config::{Diagnostic, FieldPath};
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
         {}; use KIND_CPU, start with --gpu-groups=cpu, or use a PyTorch built for the GPUs of this machine \
         (--libtorch names it)",
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

impl LoadError {
    /// The field of the configuration that it is about, and what to write there.
    fn remedy(&self) -> Option<(FieldPath, &'static str)> {
        let tensor = |what: &'static str, name: &str| FieldPath::from(what).named(name);
        Some(match self {
            Self::DataType { what, tensor: name, .. } => (
                tensor(what, name).field("data_type"),
                "PyTorch has no tensors of this type: write that of the model, for example `TYPE_FP32`",
            ),
            Self::StringDimensions { what, tensor: name, .. } => (
                tensor(what, name).field("dims"),
                "write `max_batch_size: 0` and one dimension, `dims: [ -1 ]`",
            ),
            Self::StringsInPackage { tensor: name, .. } => (
                tensor("input", name).field("data_type"),
                "make numbers of the text in a model.py, as the step before this one in an ensemble",
            ),
            Self::NoGpu { group, .. } => (
                FieldPath::from("instance_group").named(group).field("kind"),
                "write `kind: KIND_CPU`, or leave `kind` out",
            ),
            Self::NoInstanceGroup { .. } | Self::Load { .. } | Self::NoFile { .. } => return None,
        })
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        if let Some((field, advice)) = error.remedy() {
            let found = Diagnostic::error(error.to_string()).about(field).with_advice(advice);
            return found.into_unplaced_error(error.code());
        }
        Error::new(error.code(), error.to_string()).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_of_a_configuration_have_their_field() {
        let (model, tensor) = (|| "m".to_owned(), || "INPUT__0".to_owned());
        let data_type = "TYPE_UINT32";
        for (error, field) in [
            (
                LoadError::DataType { model: model(), what: "input", tensor: tensor(), data_type },
                "data_type",
            ),
            (
                LoadError::StringDimensions { model: model(), what: "input", tensor: tensor() },
                "dims",
            ),
        ] {
            let error = Error::from(error);
            let found = Diagnostic::of(&error).expect("a diagnostic");
            assert_eq!(found.field.to_string(), format!("input[\"INPUT__0\"].{field}"));
            assert_eq!(found.text, error.message());
            assert!(found.advice.is_some());
        }
    }

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
                 use KIND_CPU, start with --gpu-groups=cpu, or use a PyTorch built for the GPUs of this machine \
                 (--libtorch names it)"
            );
            let error = Error::from(error(devices));
            assert_eq!((error.code(), error.message()), (Code::InvalidArg, &*expected));
        }
    }
}
