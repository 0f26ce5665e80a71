//! Results of one measurement. Reports are functions of these values alone.

use std::collections::BTreeMap;

use galatea_client::CountAndTime;

use crate::record::Nanos;

/// The load of one point of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadPoint {
    /// Requests in flight.
    Concurrency(u64),
    /// Requests per second, also of custom intervals.
    RequestRate(f64),
}

/// One window, or the merge of several.
#[derive(Clone, Debug)]
pub struct PerfStatus {
    /// The load at which this was measured.
    pub load: LoadPoint,
    /// Batch size of every request.
    pub batch_size: u64,
    /// The requests belonged to sequences.
    pub on_sequence_model: bool,
    /// False only for a merge of windows that do not agree: its figures are a hint.
    pub is_stable: bool,
    /// Measurements of the client.
    pub client: ClientStats,
    /// `None`: the server has no statistics extension.
    pub server: Option<ServerStats>,
    /// The GPU samples of the window, or their merge; empty when none were requested.
    pub metrics: Vec<GpuMetrics>,
    /// The requested percentile, or the average.
    pub stabilizing_latency_ns: Nanos,
    /// Share of the time in which the tool's threads were busy, in percent.
    pub overhead_percent: f64,
    /// Requests sent per second, whether they have ended or not.
    pub send_request_rate: f64,
    /// The windows of a merged status, oldest first; empty in a window's own status.
    pub windows: Vec<WindowFigures>,
    /// Latencies from the intended start, rate modes only: sorted.
    pub scheduled_latencies: Vec<Nanos>,
    /// CPU time of the tool itself in this window, user and system.
    pub tool_cpu_ns: u64,
    /// The reason why the windows do not agree; `None`: they do, or it is a window's own status.
    pub instability: Option<Instability>,
}

/// The reason why the windows of a point count as unstable, and the result of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instability {
    /// Largest difference between windows that is allowed, as a ratio: the largest over the smallest, less one.
    pub allowed: f64,
    /// Number of last windows that must agree.
    pub needed: usize,
    /// Their difference in throughput; `None`: there are fewer, or one of them measured nothing.
    pub throughput: Option<f64>,
    /// Their difference in latency.
    pub latency: Option<f64>,
    /// The latency limit that one of them exceeded, in milliseconds: more windows would not have helped.
    pub limit_ms: Option<u64>,
    /// Every window of the point, oldest first. The last ones are those that were merged.
    pub trials: Vec<Trial>,
}

/// A window of a point that the tool gave up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Throughput in inferences per second.
    pub infer_per_sec: f64,
    /// The latency that decides about stability; `None`: the window failed.
    pub latency_ns: Option<Nanos>,
}

/// Share of busy time, in percent, above which the tool itself may be the limit.
const OVERHEAD_LIMIT_PERCENT: f64 = 50.0;

impl PerfStatus {
    /// Returns true if the tool itself, and not the server, may have been the limit.
    pub fn is_bound_by_the_tool(&self) -> bool {
        self.overhead_percent > OVERHEAD_LIMIT_PERCENT
    }
}

/// The figures of one window, for confidence intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowFigures {
    /// Throughput in inferences per second.
    pub infer_per_sec: f64,
    /// The latency that decides about stability.
    pub latency_ns: Nanos,
    /// Length of the window.
    pub duration_ns: Nanos,
}

/// Measurements of the client.
#[derive(Clone, Debug, Default)]
pub struct ClientStats {
    /// Requests that ended in the window.
    pub request_count: u64,
    /// Sequences that ended in the window.
    pub sequence_count: u64,
    /// Requests that could not be sent on schedule.
    pub delayed_request_count: u64,
    /// Responses; more than requests for decoupled models.
    pub response_count: u64,
    /// Length of the window, or of all windows together.
    pub duration_ns: Nanos,
    /// Latencies of all requests, sorted.
    pub latencies: Vec<Nanos>,
    /// Average latency.
    pub avg_latency_ns: Nanos,
    /// Standard deviation of the latency in microseconds; `u64::MAX` with a single request.
    pub std_us: u64,
    /// Latency at the percentiles 50, 90, 95, 99 and the requested one.
    pub percentile_latency_ns: BTreeMap<u8, Nanos>,
    /// Inferences per second: requests times the batch size.
    pub infer_per_sec: f64,
    /// Responses per second.
    pub responses_per_sec: f64,
    /// Sequences per second.
    pub sequence_per_sec: f64,
    /// Calls that the library completed; zero for decoupled models. The averages below are over these.
    pub completed_count: u64,
    /// Average time of a call.
    pub avg_request_time_ns: Nanos,
    /// Average time until a request was sent.
    pub avg_send_time_ns: Nanos,
    /// Average time from the first byte of a response to the last.
    pub avg_receive_time_ns: Nanos,
}

/// Differences of a model's counters over the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// Counters of the model itself.
    pub counters: ModelCounters,
    /// Statistics of its composing models, by name and version.
    pub composing: BTreeMap<(String, String), ServerStats>,
}

/// Counters of one model version from the statistics endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelCounters {
    /// Requests that succeeded, from arrival to response.
    pub success: CountAndTime,
    /// Inferences: requests times their batch size.
    pub inference_count: u64,
    /// Executions of the model.
    pub execution_count: u64,
    /// Items of all executions, failed ones included; zero: the server does not report batch sizes.
    pub executed_items: u64,
    /// Time in the queue.
    pub queue: CountAndTime,
    /// Time in which inputs were prepared.
    pub compute_input: CountAndTime,
    /// Time in which the model was executed.
    pub compute_infer: CountAndTime,
    /// Time in which outputs were prepared.
    pub compute_output: CountAndTime,
    /// Responses from the cache.
    pub cache_hit: CountAndTime,
    /// Requests that were not in the cache: the lookup and the storing.
    pub cache_miss: CountAndTime,
}

/// Averages of GPU gauges over a window, by the GPU's UUID.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuMetrics {
    /// Ratio of busy time, 0 to 1.
    pub utilization: BTreeMap<String, f64>,
    /// Power in watts.
    pub power_watts: BTreeMap<String, f64>,
    /// Memory in use, in bytes.
    pub memory_used_bytes: BTreeMap<String, u64>,
    /// Memory of the GPU, in bytes.
    pub memory_total_bytes: BTreeMap<String, u64>,
}
