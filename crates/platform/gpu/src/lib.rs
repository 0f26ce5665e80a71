//! The NVIDIA GPUs of this machine, and their metrics.
//!
//! The CUDA driver reports the GPUs that programs may use, and their numbers (`CUDA_VISIBLE_DEVICES` included). The
//! management library (NVML) reports the load, memory and power of each. Both come with NVIDIA's driver and are opened at
//! run time. Without them there are no GPUs, which is not an error.
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

/// Returns every GPU that programs may use, by number, or none without a driver.
///
/// # Errors
/// When a driver is installed and does not work.
pub fn detect() -> Result<Vec<Gpu>, GpuError> {
    match driver::Driver::open() {
        Ok(driver) => driver.gpus(),
        Err(error) if error.is_missing_library() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
