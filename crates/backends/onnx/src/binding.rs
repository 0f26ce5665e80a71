//! A tensor of the configuration beside the one of the model file that it stands for.

use galatea_config::TensorSpec;

use crate::ort::TensorInfo;

/// An input or output: as clients know it, and as the model does.
pub(crate) struct TensorBinding {
    pub spec: TensorSpec,
    pub info: TensorInfo,
}
