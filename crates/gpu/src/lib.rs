//! Which NVIDIA GPUs there are, and how they do.
//!
//! The CUDA driver says which GPUs programs may use and how they are numbered (`CUDA_VISIBLE_DEVICES`
//! included), the management library (NVML) what each of them does. Both come with NVIDIA's driver and are
//! opened at run time: where they are not installed there are no GPUs, which is no error.
//!
//! # Invariants
//! - Everything unsafe is in `driver` and `nvml`, thin layers over a handful of C functions.
//! - Nothing here allocates on a GPU or makes a context: asking costs no GPU memory.

mod driver;
mod nvml;
mod sampler;
mod shared_library;

pub use self::sampler::GpuSampler;
use self::{driver::Driver, shared_library::LibraryError};

/// A GPU that programs may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// CUDA's number for it, which configurations use.
    pub index: u32,
    pub name: String,
    /// E.g. `0000:3b:00.0`: the same for every library, unlike numbers.
    pub pci_bus_id: String,
    /// Major and minor number of the CUDA compute capability.
    pub compute_capability: (u32, u32),
}

/// Why GPUs cannot be asked about.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error("failed to start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// A call that the library refused, in its words.
    #[error("{call} failed: {reason}")]
    Call { call: &'static str, reason: String },
}

impl GpuError {
    /// Whether NVIDIA's driver is simply not installed here.
    pub fn is_missing_library(&self) -> bool {
        matches!(self, Self::Library(LibraryError::Open { .. }))
    }
}

/// Every GPU that programs may use, by number; none where there is no driver.
///
/// # Errors
/// A driver is installed and does not work.
pub fn detect() -> Result<Vec<Gpu>, GpuError> {
    match Driver::open() {
        Ok(driver) => driver.gpus(),
        Err(error) if error.is_missing_library() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

impl Gpu {
    /// Whether its compute capability is at least `minimum`, e.g. 6.0.
    pub fn has_capability(&self, minimum: f64) -> bool {
        let (major, minor) = self.compute_capability;
        // A capability is a decimal number only in the way it is written: 7.5 must reach 7.5.
        f64::from(major) + f64::from(minor) / 10.0 > minimum - 0.01
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_compared_as_written() {
        let gpu = |compute_capability| Gpu {
            index: 0,
            name: String::new(),
            pci_bus_id: String::new(),
            compute_capability,
        };
        assert!(gpu((6, 0)).has_capability(6.0) && gpu((7, 5)).has_capability(7.5));
        assert!(gpu((9, 0)).has_capability(0.0) && gpu((12, 1)).has_capability(9.0));
        assert!(!gpu((5, 2)).has_capability(6.0) && !gpu((6, 0)).has_capability(6.1));
    }
}
