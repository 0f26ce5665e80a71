//! Errors of calls to NVIDIA's libraries.

use std::time::Duration;

/// The reason why the GPUs, or memory of theirs, cannot be used.
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
    /// There is no GPU with this number: the number, and how many GPUs there are.
    #[error("there is no GPU {0}: the driver shows {1}, numbered from 0")]
    NoSuchDevice(i64, u32),
    /// A range is not within its allocation: its first byte, its length, and the length of the allocation.
    #[error("{1} bytes at offset {0} are not within the {2} bytes of the allocation")]
    OutOfRange(u64, usize, u64),
    /// Another thread has not finished opening or closing the same allocation: the time that was waited.
    #[error("the driver has been opening or closing the same memory for {0:?}")]
    Busy(Duration),
}

impl GpuError {
    /// Returns true if NVIDIA's driver is not installed here.
    pub fn is_missing_library(&self) -> bool {
        matches!(self, Self::Open(..))
    }
}
