//! The metrics of GPUs, and the place where their sampler publishes them.

use std::sync::{Arc, Mutex};

use galatea_types::LockExt;

/// Metrics of one GPU. `None`: the device does not report it, and the metric is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuMetrics {
    /// Value of the label `gpu_uuid`, e.g. `GPU-8f1c2d3e-...`.
    pub uuid: String,
    /// Share of the time in which it computed, 0 to 1.
    pub utilization: Option<f64>,
    /// Memory of the device.
    pub memory_total_bytes: Option<u64>,
    /// Memory in use by any process.
    pub memory_used_bytes: Option<u64>,
    /// Power drawn now.
    pub power_usage_watts: Option<f64>,
    /// Power that the management allows.
    pub power_limit_watts: Option<f64>,
    /// Energy used since the server started.
    pub energy_joules: Option<f64>,
}

/// The latest metrics of the GPUs. The sampler writes them and the metrics page reads them. Clones share one list.
#[derive(Clone, Debug, Default)]
pub struct SharedGpuMetrics(Arc<Mutex<Vec<GpuMetrics>>>);

impl SharedGpuMetrics {
    /// Replaces the metrics of all GPUs.
    pub fn publish(&self, gpus: Vec<GpuMetrics>) {
        *self.0.lock_unpoisoned() = gpus;
    }

    /// Returns the latest metrics, or none while no GPU is sampled.
    pub fn latest(&self) -> Vec<GpuMetrics> {
        self.0.lock_unpoisoned().clone()
    }
}
