//! Figures of the GPUs, and where their sampler publishes them.

use std::sync::{Arc, Mutex};

use galatea_types::LockExt;

use super::{
    families::{
        GPU_ENERGY, GPU_MEMORY_TOTAL, GPU_MEMORY_USED, GPU_POWER_LIMIT, GPU_POWER_USAGE,
        GPU_UTILIZATION,
    },
    family::Family,
    text::{Text, push_escaped},
};

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

/// A family, and where its value stands: bytes are far below the integers that a float holds exactly.
type Row = (Family, fn(&GpuMetrics) -> Option<f64>);

const GAUGES: &[Row] = &[
    (GPU_UTILIZATION, |gpu| gpu.utilization),
    (GPU_MEMORY_TOTAL, |gpu| gpu.memory_total_bytes.map(|bytes| bytes as f64)),
    (GPU_MEMORY_USED, |gpu| gpu.memory_used_bytes.map(|bytes| bytes as f64)),
    (GPU_POWER_USAGE, |gpu| gpu.power_usage_watts),
    (GPU_POWER_LIMIT, |gpu| gpu.power_limit_watts),
];

const COUNTERS: &[Row] = &[(GPU_ENERGY, |gpu| gpu.energy_joules)];

pub(super) fn write_gauges(text: &mut Text, gpus: &[GpuMetrics]) {
    write(text, gpus, GAUGES);
}

pub(super) fn write_counters(text: &mut Text, gpus: &[GpuMetrics]) {
    write(text, gpus, COUNTERS);
}

/// Without GPUs these families are not even announced, as on a Triton without them.
fn write(text: &mut Text, gpus: &[GpuMetrics], rows: &[Row]) {
    if gpus.is_empty() {
        return;
    }
    for (family, value) in rows {
        text.family(family);
        for gpu in gpus {
            if let Some(value) = value(gpu) {
                text.sample(family.name, &label(gpu), value);
            }
        }
    }
}

fn label(gpu: &GpuMetrics) -> String {
    let mut label = String::from("{gpu_uuid=\"");
    push_escaped(&mut label, &gpu.uuid);
    label.push_str("\"}");
    label
}
