//! Errors of models that this server or this machine cannot run. Texts are Triton's if it has them.

use std::{error, path::Path};

use galatea_backend::misconfigured;
use galatea_config::FieldPath;
use galatea_types::{Code, Error};

use crate::torch::ModuleDevice;

/// Returns the error of a model file that cannot be loaded.
pub(crate) fn refused(
    model: &str,
    path: &Path,
    cause: impl Into<Box<dyn error::Error + Send + Sync>>,
) -> Error {
    let (cause, path) = (cause.into(), path.display());
    Error::internal(format!("failed to load model '{model}': {cause} ('{path}')"))
}

pub(crate) fn no_instance_group(model: &str, place: ModuleDevice) -> Error {
    Error::internal(format!("model '{model}' has no instance group for {place:?}"))
}

/// The GPU of an instance group that this version of PyTorch does not find among its devices.
pub(crate) struct MissingGpu<'a> {
    pub model: &'a str,
    pub group: &'a str,
    pub gpu: u32,
    pub version: &'a str,
    /// The number of GPUs that it finds.
    pub devices: u32,
}

pub(crate) fn no_gpu(missing: &MissingGpu<'_>) -> Error {
    let MissingGpu { model, group, gpu, version, devices } = *missing;
    let found = match devices {
        0 => "finds no GPU that it can use here".to_owned(),
        1 => "finds GPU 0 alone".to_owned(),
        n => format!("finds GPUs 0 to {}", n - 1),
    };
    let text = format!(
        "unable to load model '{model}': instance group '{group}' is for GPU {gpu} (KIND_GPU), but PyTorch {version} \
         {found}; use KIND_CPU, start with --gpu-groups=cpu, or use a PyTorch built for the GPUs of this machine \
         (--libtorch names it)"
    );
    let field = FieldPath::from("instance_group").named(group).field("kind");
    misconfigured(Code::InvalidArg, text, field, "write `kind: KIND_CPU`, or leave `kind` out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_gpu_is_reported_with_the_available_ones() {
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
            let missing = MissingGpu { model: "m", group: "m_0", gpu: 7, version: "2.9", devices };
            let error = no_gpu(&missing);
            assert_eq!((error.code(), error.message()), (Code::InvalidArg, &*expected));
        }
    }
}
