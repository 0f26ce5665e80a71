//! Errors of querying the GPUs.

/// The reason why the GPUs cannot be queried.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// A library of NVIDIA's driver is not installed, or the loader refuses it: its name, and the loader's text.
    #[error("unable to open '{0}': {1}")]
    Open(&'static str, String),
    /// A library of another version than expected: its name, and that of the missing function.
    #[error("'{0}' has no function '{1}'")]
    MissingSymbol(&'static str, &'static str),
    /// The thread that samples metrics cannot be started.
    #[error("failed to start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// A call that the library refused: the name of the C function, and the library's text, or its number if it has none.
    #[error("{0} failed: {1}")]
    Call(&'static str, String),
}

impl GpuError {
    /// Returns true if NVIDIA's driver is not installed here.
    pub fn is_missing_library(&self) -> bool {
        matches!(self, Self::Open(..))
    }
}
