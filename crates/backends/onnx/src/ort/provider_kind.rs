//! The execution providers of ONNX Runtime that the server uses.

/// One of the providers for NVIDIA's GPUs, or the one for the CPU that is not ONNX Runtime's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProviderKind {
    Cuda,
    TensorRt,
    OpenVino,
}

impl ProviderKind {
    /// Returns ONNX Runtime's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cuda => "CUDAExecutionProvider",
            Self::TensorRt => "TensorrtExecutionProvider",
            Self::OpenVino => "OpenVINOExecutionProvider",
        }
    }
}
