//! The NVIDIA GPUs of this machine: which there are, and their metrics.
//!
//! The CUDA driver reports which GPUs programs may use and how they are numbered (`CUDA_VISIBLE_DEVICES`
//! included), the management library (NVML) the load, memory and power of each. Both come with NVIDIA's driver and
//! are opened at run time: where they are not installed there are no GPUs, which is no error.
//!
//! # Invariants
//! - Everything unsafe is in `driver`, `nvml` and `shared_library`, thin layers over a handful of C functions.
//! - Nothing here allocates on a GPU or creates a context: a query costs no GPU memory.

#![warn(missing_docs)]

mod driver;
mod error;
mod metrics;
mod nvml;
mod sampler;
mod shared_library;

pub use self::{
    driver::Gpu,
    error::GpuError,
    metrics::{GpuMetrics, SharedGpuMetrics},
    sampler::GpuSampler,
};

/// Every GPU that programs may use, by number; none where there is no driver.
///
/// # Errors
/// A driver is installed and does not work.
pub fn detect() -> Result<Vec<Gpu>, GpuError> {
    match driver::Driver::open() {
        Ok(driver) => driver.gpus(),
        Err(error) if error.is_missing_library() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
