//! What one measurement found. Reports are functions of these values alone.

use std::collections::BTreeMap;

use crate::record::Nanos;

/// The load of one point of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadPoint {
    Concurrency(u64),
    /// Requests per second, also of custom intervals.
    RequestRate(f64),
}

/// One window, or the merge of several.
#[derive(Clone, Debug)]
pub struct PerfStatus {
    pub load: LoadPoint,
    pub batch_size: u64,
    pub on_sequence_model: bool,
    /// False only of a merge of windows that do not agree: its figures are a hint.
    pub is_stable: bool,
    pub client: ClientStats,
    /// `None`: the server has no statistics extension.
    pub server: Option<ServerStats>,
    pub metrics: Vec<GpuMetrics>,
    /// The asked percentile, or the average.
    pub stabilizing_latency_ns: Nanos,
    /// Share of the time in which the tool's threads were busy, in percent.
    pub overhead_percent: f64,
    pub send_request_rate: f64,
    /// The windows behind a merged status, oldest first; empty in a window's own status.
    pub windows: Vec<WindowFigures>,
    /// Latencies from the intended start, rate modes only: sorted.
    pub scheduled_latencies: Vec<Nanos>,
    /// CPU time of the tool itself in this window, user and system.
    pub tool_cpu_ns: u64,
}

/// What a window contributed, for confidence intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowFigures {
    pub infer_per_sec: f64,
    pub latency_ns: Nanos,
    pub duration_ns: Nanos,
}

#[derive(Clone, Debug, Default)]
pub struct ClientStats {
    pub request_count: u64,
    pub sequence_count: u64,
    pub delayed_request_count: u64,
    pub response_count: u64,
    pub duration_ns: Nanos,
    /// Sorted.
    pub latencies: Vec<Nanos>,
    pub avg_latency_ns: Nanos,
    pub std_us: u64,
    /// 50, 90, 95, 99 and the one asked for.
    pub percentile_latency_ns: BTreeMap<u8, Nanos>,
    pub infer_per_sec: f64,
    pub responses_per_sec: f64,
    pub sequence_per_sec: f64,
    /// Averages over calls the library completed; zero for decoupled models.
    pub completed_count: u64,
    pub avg_request_time_ns: Nanos,
    pub avg_send_time_ns: Nanos,
    pub avg_receive_time_ns: Nanos,
}

/// Differences of a model's counters over the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    pub counters: ModelCounters,
    /// By name and version, in this order, each with its own.
    pub composing: BTreeMap<(String, String), ServerStats>,
}

/// Counters of one model version as the statistics endpoint gives them. Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelCounters {
    pub success_count: u64,
    pub inference_count: u64,
    pub execution_count: u64,
    pub queue_count: u64,
    pub compute_input_count: u64,
    pub compute_infer_count: u64,
    pub compute_output_count: u64,
    pub cache_hit_count: u64,
    pub cache_miss_count: u64,
    pub cumulative_time_ns: u64,
    pub queue_time_ns: u64,
    pub compute_input_time_ns: u64,
    pub compute_infer_time_ns: u64,
    pub compute_output_time_ns: u64,
    pub cache_hit_time_ns: u64,
    pub cache_miss_time_ns: u64,
}

/// Averages of GPU gauges over a window, by the GPU's UUID.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuMetrics {
    /// Ratio, 0 to 1.
    pub utilization: BTreeMap<String, f64>,
    pub power_watts: BTreeMap<String, f64>,
    pub memory_used_bytes: BTreeMap<String, u64>,
    pub memory_total_bytes: BTreeMap<String, u64>,
}
