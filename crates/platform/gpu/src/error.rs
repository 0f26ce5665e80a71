//! Why nothing can be learnt of the GPUs.

use crate::shared_library::LibraryError;

/// Why the GPUs cannot be queried.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// A library of NVIDIA's driver cannot be used.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The thread that samples metrics cannot be started.
    #[error("failed to start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// A call that the library refused, in its words.
    #[error("{call} failed: {reason}")]
    Call {
        /// Name of the C function.
        call: &'static str,
        /// The library's text, or its number where it has none.
        reason: String,
    },
}

impl GpuError {
    /// Whether NVIDIA's driver is simply not installed here.
    pub fn is_missing_library(&self) -> bool {
        matches!(self, Self::Library(LibraryError::Open { .. }))
    }
}
