//! The families of the GPUs.

use galatea_gpu::GpuMetrics;

use super::text::{Text, push_escaped};
use crate::families::{
    Family, GPU_ENERGY, GPU_MEMORY_TOTAL, GPU_MEMORY_USED, GPU_POWER_LIMIT, GPU_POWER_USAGE,
    GPU_UTILIZATION,
};

/// A family, and the function that reads its value. Byte counts are far below the largest integer that a float holds exactly.
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

/// Writes the families. Without GPUs they are not even announced, as on a Triton without them.
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
