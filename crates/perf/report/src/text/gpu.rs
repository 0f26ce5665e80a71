//! The GPU gauges of a point.

use std::{collections::BTreeMap, fmt::Write as _};

use galatea_perf_types::status::GpuMetrics;

use crate::number::Notation;

const MAX_GPUS: usize = 16;

pub(super) fn write(text: &mut String, notation: Notation, metrics: &GpuMetrics) {
    let counts = [
        metrics.utilization.len(),
        metrics.power_watts.len(),
        metrics.memory_used_bytes.len(),
        metrics.memory_total_bytes.len(),
    ];
    if counts.into_iter().any(|count| count > MAX_GPUS) {
        text.push_str(
            "Too many GPUs on system to print out individual Prometheus metrics, use the CSV output feature to see metrics.\n",
        );
        return;
    }
    let percent = |ratio: &f64| format!("{}%", notation.number(ratio * 100.0));
    gauge(text, "Avg GPU Utilization", &metrics.utilization, percent);
    let watts = |watts: &f64| format!("{} watts", notation.number(*watts));
    gauge(text, "Avg GPU Power Usage", &metrics.power_watts, watts);
    let bytes = |bytes: &u64| format!("{bytes} bytes");
    gauge(text, "Max GPU Memory Usage", &metrics.memory_used_bytes, bytes);
    gauge(text, "Total GPU Memory", &metrics.memory_total_bytes, bytes);
}

fn gauge<V>(
    text: &mut String,
    name: &str,
    by_gpu: &BTreeMap<String, V>,
    show: impl Fn(&V) -> String,
) {
    let _ = writeln!(text, "    {name}:");
    for (uuid, value) in by_gpu {
        let _ = writeln!(text, "      {uuid} : {}", show(value));
    }
}
