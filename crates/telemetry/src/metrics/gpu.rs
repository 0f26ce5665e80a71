//! Figures of the GPUs, and where their sampler publishes them.

use std::sync::{Arc, Mutex};

use galatea_types::LockExt;

use super::{
    Gauge,
    text::{Kind, Text, push_escaped},
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
type Family = (Gauge, fn(&GpuMetrics) -> Option<f64>);

const GAUGES: &[Family] = &[
    (("nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)"), |gpu| gpu.utilization),
    (("nv_gpu_memory_total_bytes", "GPU total memory, in bytes"), |gpu| {
        gpu.memory_total_bytes.map(|bytes| bytes as f64)
    }),
    (("nv_gpu_memory_used_bytes", "GPU used memory, in bytes"), |gpu| {
        gpu.memory_used_bytes.map(|bytes| bytes as f64)
    }),
    (("nv_gpu_power_usage", "GPU power usage in watts"), |gpu| gpu.power_usage_watts),
    (("nv_gpu_power_limit", "GPU power management limit in watts"), |gpu| gpu.power_limit_watts),
];

const COUNTERS: &[Family] = &[(
    ("nv_energy_consumption", "GPU energy consumption in joules since the Triton Server started"),
    |gpu| gpu.energy_joules,
)];

pub(super) fn is_family(name: &str) -> bool {
    GAUGES.iter().chain(COUNTERS).any(|((family, _), _)| *family == name)
}

pub(super) fn write_gauges(text: &mut Text, gpus: &[GpuMetrics]) {
    write(text, gpus, GAUGES, Kind::Gauge);
}

pub(super) fn write_counters(text: &mut Text, gpus: &[GpuMetrics]) {
    write(text, gpus, COUNTERS, Kind::Counter);
}

/// Without GPUs these families are not even announced, as on a Triton without them.
fn write(text: &mut Text, gpus: &[GpuMetrics], families: &[Family], kind: Kind) {
    if gpus.is_empty() {
        return;
    }
    for &((name, help), value) in families {
        text.family(name, help, kind);
        for gpu in gpus {
            if let Some(value) = value(gpu) {
                text.sample(name, &label(gpu), value);
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
