//! The machine's GPUs: found at start, watched for the metrics.

use std::sync::Arc;

use galatea_engine::EngineOptions;
use galatea_gpu::{CudaIpcMemory, Gpu, GpuSampler};

use crate::options::ServeOptions;

/// The machine's GPUs, as they were at start.
pub struct Gpus {
    found: Vec<Gpu>,
}

impl Gpus {
    /// Queries the driver. Without a usable GPU the server starts anyway.
    pub fn find() -> Self {
        let found = galatea_gpu::detect().unwrap_or_else(|error| {
            log::warn!("GPUs are not used: {error}");
            Vec::new()
        });
        Self { found }
    }

    /// Adds the GPUs to the options of the engine.
    pub fn add_to(&self, options: &mut EngineOptions) {
        let minimum = options.gpus.min_compute_capability;
        let (usable, others): (Vec<&Gpu>, Vec<&Gpu>) =
            self.found.iter().partition(|gpu| gpu.has_capability(minimum));
        for gpu in others {
            let (major, minor) = gpu.compute_capability;
            log::info!(
                "GPU {} ({}) is not used: its compute capability {major}.{minor} is below \
                 --min-supported-compute-capability={minimum:?}",
                gpu.index,
                gpu.name
            );
        }
        options.gpus.available = usable.iter().map(|gpu| gpu.index).collect();
        if options.allows_client_regions {
            options.gpus.shared_memory = find_shared_memory().map(|memory| Arc::new(memory) as _);
        }
    }

    /// Samples the GPUs for the metrics until the returned value is dropped, if metrics are on and NVML is present.
    pub fn watch(&self, options: &ServeOptions) -> Option<GpuSampler> {
        if !options.has_gpu_metrics {
            return None;
        }
        if self.found.is_empty() {
            log::info!("GPU metrics will not be available: no NVIDIA GPU is found");
            return None;
        }
        let (interval, shared) =
            (options.engine.metrics.interval, options.engine.gpus.latest.clone());
        GpuSampler::start(&self.found, interval, shared)
            .inspect_err(|error| log::warn!("GPU metrics will not be available: {error}"))
            .ok()
    }
}

/// Finds the driver through which clients share memory of GPUs, if one is installed.
fn find_shared_memory() -> Option<CudaIpcMemory> {
    CudaIpcMemory::find()
        .inspect_err(|error| log::warn!("CUDA shared memory is not supported: {error}"))
        .ok()
        .flatten()
}
