//! The metrics of GPUs, and the place where their sampler publishes them.

use std::sync::{Arc, Mutex};

use galatea_types::LockExt;

/// Figures of one GPU. `None` is what the device does not report: such a figure is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuMetrics {
    /// E.g. `GPU-8f1c2d3e-...`: the label `gpu_uuid`.
    pub uuid: String,
    /// Share of the time in which it computed, 0 to 1.
    pub utilization: Option<f64>,
    /// Memory of the device.
    pub memory_total_bytes: Option<u64>,
    /// Memory in use, by whomever.
    pub memory_used_bytes: Option<u64>,
    /// Power drawn at this moment.
    pub power_usage_watts: Option<f64>,
    /// Power that management allows it.
    pub power_limit_watts: Option<f64>,
    /// Since the server started.
    pub energy_joules: Option<f64>,
}

/// The last figures of the GPUs, between the sampler that writes them and the metrics page that reads them. Clones share one.
#[derive(Clone, Debug, Default)]
pub struct SharedGpuMetrics(Arc<Mutex<Vec<GpuMetrics>>>);

impl SharedGpuMetrics {
    /// Replaces the figures of all GPUs.
    pub fn publish(&self, gpus: Vec<GpuMetrics>) {
        *self.0.lock_unpoisoned() = gpus;
    }

    /// Empty while no GPU is sampled.
    pub fn latest(&self) -> Vec<GpuMetrics> {
        self.0.lock_unpoisoned().clone()
    }
}
