//! Cells of a row.

use std::{collections::BTreeMap, fmt::Display};

use galatea_perf_types::status::{GpuMetrics, ModelCounters};

use crate::{breakdown::compute_ns, number::general};

/// The server's part of a row; averages in nanoseconds.
pub(super) struct ServerCells {
    /// What of the whole time no part accounts for: the network's share, or a step's overhead.
    pub rest_ns: u64,
    queue_ns: u64,
    compute_ns: [u64; 3],
    cache_hit_ns: u64,
    cache_miss_ns: u64,
}

impl ServerCells {
    pub fn names(with_cache: bool) -> impl Iterator<Item = &'static str> {
        let cache = ["Server Cache Hit", "Server Cache Miss"];
        [
            "Network+Server Send/Recv",
            "Server Queue",
            "Server Compute Input",
            "Server Compute Infer",
            "Server Compute Output",
        ]
        .into_iter()
        .chain(cache.into_iter().filter(move |_| with_cache))
    }

    /// `whole_ns` is the time to divide, of an average request.
    pub fn new(counters: &ModelCounters, whole_ns: u64) -> Self {
        let queue_ns = average(counters.queue_time_ns, counters.queue_count);
        let cache_hit_ns = average(counters.cache_hit_time_ns, counters.cache_hit_count);
        let cache_miss_ns = average(counters.cache_miss_time_ns, counters.cache_miss_count);
        let compute = average(compute_ns(counters), counters.compute_input_count);
        let parts = [queue_ns, compute, cache_hit_ns, cache_miss_ns];
        Self {
            rest_ns: parts.into_iter().fold(whole_ns, u64::saturating_sub),
            queue_ns,
            compute_ns: [
                average(counters.compute_input_time_ns, counters.compute_input_count),
                average(counters.compute_infer_time_ns, counters.compute_infer_count),
                average(counters.compute_output_time_ns, counters.compute_output_count),
            ],
            cache_hit_ns,
            cache_miss_ns,
        }
    }

    /// In the order of [`Self::names`], in microseconds.
    pub fn cells(&self, with_cache: bool) -> impl Iterator<Item = String> {
        let cache = [self.cache_hit_ns, self.cache_miss_ns];
        [self.rest_ns, self.queue_ns]
            .into_iter()
            .chain(self.compute_ns)
            .chain(cache.into_iter().filter(move |_| with_cache))
            .map(|ns| (ns / 1000).to_string())
    }
}

/// Zero without a count.
pub(super) fn average(total_ns: u64, count: u64) -> u64 {
    total_ns.checked_div(count).unwrap_or(0)
}

/// `uuid:value;` for each GPU.
pub(super) fn gpu(metrics: &GpuMetrics) -> [String; 4] {
    [
        by_gpu(&metrics.utilization, |ratio| general(*ratio)),
        by_gpu(&metrics.power_watts, |watts| general(*watts)),
        by_gpu(&metrics.memory_used_bytes, ToString::to_string),
        by_gpu(&metrics.memory_total_bytes, ToString::to_string),
    ]
}

fn by_gpu<V, S: Display>(gauges: &BTreeMap<String, V>, show: impl Fn(&V) -> S) -> String {
    gauges.iter().map(|(uuid, value)| format!("{uuid}:{};", show(value))).collect()
}
