//! The NVIDIA GPUs of this machine, their metrics, and memory of theirs that other processes share.
//!
//! The CUDA driver reports the GPUs that programs may use, and their numbers (`CUDA_VISIBLE_DEVICES` included). The
//! management library (NVML) reports the load, memory and power of each. Both come with NVIDIA's driver and are opened at
//! run time. Without them there are no GPUs, which is not an error.
//!
//! # Invariants
//! - Everything unsafe is in `driver`, `ipc`, `nvml` and `shared_library`, thin layers over a handful of C functions.
//! - A query costs no GPU memory. Only [`IpcMemory::open`] creates a context, and the last allocation of a GPU that is closed
//!   releases it.

#![warn(missing_docs)]

mod driver;
mod error;
mod ipc;
mod metrics;
mod nvml;
mod sampler;
mod shared_library;

use self::driver::Driver;
pub use self::{
    driver::Gpu,
    error::GpuError,
    ipc::{CudaIpcMemory, IpcAllocation, IpcHandle, IpcMemory},
    metrics::{GpuMetrics, SharedGpuMetrics},
    sampler::GpuSampler,
};

/// Returns every GPU that programs may use, by number, or none without a driver.
///
/// # Errors
/// When a driver is installed and does not work.
pub fn detect() -> Result<Vec<Gpu>, GpuError> {
    match Driver::open_library() {
        Ok(library) => Driver::of(&library)?.gpus(),
        Err(error) if error.is_missing_library() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
