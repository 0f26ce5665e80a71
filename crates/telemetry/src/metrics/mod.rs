//! All metric families as Prometheus text.
//!
//! Names, help texts and the order of the families are Triton's: dashboards and their tests compare them.
//! A family is announced even while no model has a value for it. Those that Triton does not have come last.

mod build;
mod gpu;
mod memory;
mod process;
mod text;

use std::{collections::BTreeMap, time::Duration};

use crate::{DurationCount, FailureReason, StatisticsSnapshot};

pub use self::gpu::{GpuMetrics, SharedGpuMetrics};
pub use self::memory::MemoryMetrics;
pub use self::process::{CpuMetrics, MetricsOptions, ProcessMetrics, ProcessSampler};
pub(crate) use self::text::push_escaped;
use self::text::{Kind, Text, labels};

/// One loaded model version, as seen at the moment of a scrape.
#[derive(Clone, Copy, Debug)]
pub struct ModelMetrics<'a> {
    /// Label `namespace`, but if it is empty.
    pub namespace: &'a str,
    /// Label `model`.
    pub name: &'a str,
    /// Label `version`.
    pub version: i64,
    /// `metric_tags` of the configuration: each becomes a label `_{key}`.
    pub tags: &'a BTreeMap<String, String>,
    /// Its counters.
    pub statistics: &'a StatisticsSnapshot,
    /// How long its last load took.
    pub load_duration: Duration,
}

/// The whole answer to `/metrics`: the models' families in the order of `models`, then the process's.
pub fn render(models: &[ModelMetrics<'_>], process: &ProcessMetrics) -> String {
    let mut text = Text::default();
    for counter in COUNTERS {
        write_counter(&mut text, models, counter);
    }
    if process.has_counter_latencies {
        for counter in LATENCY_COUNTERS {
            write_counter(&mut text, models, counter);
        }
    }
    gpu::write_counters(&mut text, &process.gpus);
    write_model_gauges(&mut text, models);
    write_process(&mut text, process);
    memory::write(&mut text, process.memory);
    build::write(&mut text);
    text.finish()
}

/// Whether a family of this name is announced in every answer, so that no other family can have the name.
pub(crate) fn is_server_family(name: &str) -> bool {
    COUNTERS.iter().chain(LATENCY_COUNTERS).any(|counter| counter.name == name)
        || MODEL_GAUGES.iter().chain(PROCESS_GAUGES).any(|(gauge, _)| *gauge == name)
        || gpu::is_family(name)
        || memory::is_family(name)
        || build::is_family(name)
}

/// A family with one counter per model: name, help, and where its value stands.
struct Counter {
    name: &'static str,
    help: &'static str,
    value: Value,
}

enum Value {
    Count(fn(&StatisticsSnapshot) -> u64),
    /// One series per failure reason.
    ByReason,
    Micros(fn(&StatisticsSnapshot) -> DurationCount),
}

const COUNTERS: &[Counter] = &[
    Counter {
        name: "nv_inference_request_success",
        help: "Number of successful inference requests, all batch sizes",
        value: Value::Count(|s| s.success.count),
    },
    Counter {
        name: "nv_inference_request_failure",
        help: "Number of failed inference requests, all batch sizes",
        value: Value::ByReason,
    },
    Counter {
        name: "nv_inference_count",
        help: "Number of inferences performed (does not include cached requests)",
        value: Value::Count(|s| s.inference_count),
    },
    Counter {
        name: "nv_inference_exec_count",
        help: "Number of model executions performed (does not include cached requests)",
        value: Value::Count(|s| s.execution_count),
    },
];

const LATENCY_COUNTERS: &[Counter] = &[
    Counter {
        name: "nv_inference_request_duration_us",
        help: "Cumulative inference request duration in microseconds (includes cached requests)",
        value: Value::Micros(|s| s.success),
    },
    Counter {
        name: "nv_inference_queue_duration_us",
        help: "Cumulative inference queuing duration in microseconds (includes cached requests)",
        value: Value::Micros(|s| s.queue),
    },
    Counter {
        name: "nv_inference_compute_input_duration_us",
        help: "Cumulative compute input duration in microseconds (does not include cached requests)",
        value: Value::Micros(|s| s.compute_input),
    },
    Counter {
        name: "nv_inference_compute_infer_duration_us",
        help: "Cumulative compute inference duration in microseconds (does not include cached requests)",
        value: Value::Micros(|s| s.compute_infer),
    },
    Counter {
        name: "nv_inference_compute_output_duration_us",
        help: "Cumulative inference compute output duration in microseconds (does not include cached requests)",
        value: Value::Micros(|s| s.compute_output),
    },
];

fn write_counter(text: &mut Text, models: &[ModelMetrics<'_>], counter: &Counter) {
    text.family(counter.name, counter.help, Kind::Counter);
    for model in models {
        let s = model.statistics;
        match counter.value {
            Value::Count(of) => text.sample(counter.name, &labels(model, None), of(s)),
            Value::Micros(of) => text.sample(counter.name, &labels(model, None), of(s).ns / 1000),
            Value::ByReason => {
                for (reason, count) in FailureReason::ALL.into_iter().zip(s.failures) {
                    text.sample(counter.name, &labels(model, Some(reason.label())), count);
                }
            }
        }
    }
}

/// Name and help text.
type Gauge = (&'static str, &'static str);

const PENDING: Gauge = (
    "nv_inference_pending_request_count",
    "Instantaneous number of pending requests awaiting execution per-model.",
);
const LOAD: Gauge = ("nv_model_load_duration_secs", "Model load time in seconds");
const MODEL_GAUGES: &[Gauge] = &[PENDING, LOAD];

const POOL_TOTAL: Gauge =
    ("nv_pinned_memory_pool_total_bytes", "Pinned memory pool total memory size, in bytes");
const POOL_USED: Gauge =
    ("nv_pinned_memory_pool_used_bytes", "Pinned memory pool used memory size, in bytes");
const CPU_UTILIZATION: Gauge = ("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]");
const CPU_TOTAL: Gauge = ("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes");
const CPU_USED: Gauge = ("nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes");
const PROCESS_GAUGES: &[Gauge] = &[POOL_TOTAL, POOL_USED, CPU_UTILIZATION, CPU_TOTAL, CPU_USED];

fn write_model_gauges(text: &mut Text, models: &[ModelMetrics<'_>]) {
    text.family(PENDING.0, PENDING.1, Kind::Gauge);
    for model in models {
        text.sample(PENDING.0, &labels(model, None), model.statistics.pending);
    }
    text.family(LOAD.0, LOAD.1, Kind::Gauge);
    for model in models {
        text.sample(LOAD.0, &labels(model, None), model.load_duration.as_secs_f64());
    }
}

fn write_process(text: &mut Text, process: &ProcessMetrics) {
    write_gauge(text, POOL_TOTAL, process.pinned_pool_total_bytes);
    write_gauge(text, POOL_USED, process.pinned_pool_used_bytes);
    gpu::write_gauges(text, &process.gpus);
    let Some(cpu) = &process.cpu else { return };
    write_gauge(text, CPU_UTILIZATION, cpu.utilization);
    write_gauge(text, CPU_TOTAL, cpu.memory_total_bytes);
    write_gauge(text, CPU_USED, cpu.memory_used_bytes);
}

fn write_gauge(text: &mut Text, (name, help): Gauge, value: impl std::fmt::Display) {
    text.family(name, help, Kind::Gauge);
    text.sample(name, "", value);
}

#[cfg(test)]
mod tests;
