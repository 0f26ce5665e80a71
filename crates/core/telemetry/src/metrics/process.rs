//! Figures of the whole process and machine: CPU and memory.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use galatea_gpu::GpuMetrics;
use galatea_system::{CpuTimes, MachineMemory};
use galatea_types::LockExt;

use super::{cache::CacheMetrics, memory::MemoryMetrics};

/// The metrics to measure besides those of models; one field per flag.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricsOptions {
    /// `--allow-cpu-metrics`: show CPU and memory of the machine.
    pub has_cpu_metrics: bool,
    /// `--metrics-config counter_latencies`: show durations as counters.
    pub has_counter_latencies: bool,
    /// `--metrics-config histogram_latencies`: show durations and batch sizes as histograms.
    pub has_histogram_latencies: bool,
    /// `--metrics-config summary_latencies`: show durations as summaries.
    pub has_summary_latencies: bool,
    /// `--metrics-config summary_quantiles`: the quantiles of the summaries.
    pub summary_quantiles: Vec<f64>,
    /// CPU figures older than this are read again.
    pub interval: Duration,
    /// `--pinned-memory-pool-byte-size`. It is only shown: the server pins no memory.
    pub pinned_memory_pool_bytes: u64,
}

impl Default for MetricsOptions {
    fn default() -> Self {
        Self {
            has_cpu_metrics: true,
            has_counter_latencies: true,
            has_histogram_latencies: false,
            has_summary_latencies: false,
            summary_quantiles: vec![0.5, 0.9, 0.95, 0.99, 0.999],
            interval: Duration::from_millis(2000),
            pinned_memory_pool_bytes: 268_435_456,
        }
    }
}

/// Gauges of the whole process and machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessMetrics {
    /// Show durations as counters.
    pub has_counter_latencies: bool,
    /// Size of the pool of pinned memory, as configured.
    pub pinned_pool_total_bytes: u64,
    /// Bytes of the pool that are in use.
    pub pinned_pool_used_bytes: u64,
    /// `None` when switched off, or when the machine does not report them.
    pub cpu: Option<CpuMetrics>,
    /// One entry per GPU that is watched.
    pub gpus: Vec<GpuMetrics>,
    /// The memory that requests and responses take.
    pub memory: MemoryMetrics,
    /// The response cache; `None` when this server has none in memory.
    pub cache: Option<CacheMetrics>,
}

/// CPU and memory of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuMetrics {
    /// Share of all cores' time that was not idle since the sample before, 0 to 1.
    pub utilization: f64,
    /// Memory of the machine, in bytes.
    pub memory_total_bytes: u64,
    /// Memory that is not available to new programs, in bytes.
    pub memory_used_bytes: u64,
}

/// Reads the machine's figures when a caller asks, at most once per interval; there is no sampling thread.
#[derive(Debug)]
pub struct ProcessSampler {
    options: MetricsOptions,
    last: Mutex<LastSample>,
}

#[derive(Debug)]
struct LastSample {
    at: Instant,
    times: CpuTimes,
    sample: Option<CpuMetrics>,
}

impl ProcessSampler {
    /// Makes a sampler. Its first CPU figure covers the time since now.
    pub fn new(options: MetricsOptions) -> Self {
        let times = CpuTimes::read().unwrap_or_default();
        Self { options, last: Mutex::new(LastSample { at: Instant::now(), times, sample: None }) }
    }

    /// Returns everything except the GPUs and the memory budget, which other parts know.
    pub fn sample(&self) -> ProcessMetrics {
        ProcessMetrics {
            has_counter_latencies: self.options.has_counter_latencies,
            pinned_pool_total_bytes: self.options.pinned_memory_pool_bytes,
            cpu: self.options.has_cpu_metrics.then(|| self.cpu()).flatten(),
            ..ProcessMetrics::default()
        }
    }

    #[expect(clippy::disallowed_methods, reason = "samples of the process are of the real time")]
    fn cpu(&self) -> Option<CpuMetrics> {
        let mut last = self.last.lock_unpoisoned();
        if last.sample.is_some() && last.at.elapsed() < self.options.interval {
            return last.sample;
        }
        let (times, memory) = (CpuTimes::read()?, MachineMemory::read()?);
        let sample = Some(CpuMetrics {
            utilization: times.busy_share_since(last.times),
            memory_total_bytes: memory.total,
            memory_used_bytes: memory.used,
        });
        *last = LastSample { at: Instant::now(), times, sample };
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_reused_within_the_interval() {
        let sampler = ProcessSampler::new(MetricsOptions {
            interval: Duration::from_secs(3600),
            ..MetricsOptions::default()
        });
        let first = sampler.sample();
        assert_eq!(sampler.sample(), first);
        assert!(first.cpu.is_some_and(|cpu| cpu.memory_used_bytes < cpu.memory_total_bytes));
        let off = MetricsOptions { has_cpu_metrics: false, ..MetricsOptions::default() };
        assert_eq!(ProcessSampler::new(off).sample().cpu, None);
    }
}
