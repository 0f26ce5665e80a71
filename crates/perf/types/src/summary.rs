//! The results of a run. `--json` writes them, `--html` draws them, `--compare` reads them.
//!
//! Latencies are microseconds (fractions allowed), times of day Unix seconds. Fields are only ever added.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The value of `format` in a [`Summary`] of this version.
pub const FORMAT: &str = "galatea-perf/1";

/// The results of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// [`FORMAT`].
    pub format: String,
    /// The command line, words joined with blanks.
    pub command: String,
    /// A name for the run in comparisons: server name and version, or the file's name.
    pub label: String,
    /// Time at which the run began, in Unix seconds.
    pub started_at: f64,
    /// The model's name.
    pub model: String,
    /// The version requested; empty: the latest.
    pub model_version: String,
    /// The name in the server's metadata.
    pub server_name: String,
    /// The version in the server's metadata.
    pub server_version: String,
    /// The program with that name, if the server reports it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub server_implementation: String,
    /// `http` or `grpc`.
    pub protocol: String,
    /// Batch size of every request.
    pub batch_size: u64,
    /// The percentile that decided about stability; absent: the average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<u8>,
    /// Way of the tensors: `none` (in requests and responses), or the kind of shared memory, `system` or `memfd`. Absent: it was
    /// not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_memory: Option<String>,
    /// Bytes of the tensors. With shared memory they did not go through the socket. Absent: they were not counted, as the requests
    /// were JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_bytes: Option<TensorBytes>,
    /// Points in the order of the search.
    pub points: Vec<Point>,
    /// Warnings that the user saw, one line each.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Bytes of the tensors in one request and in one response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorBytes {
    /// Bytes of the inputs of a request, on average over the data.
    pub inputs_per_request: u64,
    /// Bytes of the outputs of a response, those that are not counted left out.
    pub outputs_per_response: u64,
    /// Names of outputs that are not counted, because the model leaves their size open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted_outputs: Vec<String>,
}

/// The results at one load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// `concurrency` or `request_rate`.
    pub mode: String,
    /// Requests in flight, or requests per second.
    pub value: f64,
    /// The windows do not agree: the figures are a hint. Absent: they do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unstable: bool,
    /// The reason why they do not agree, and every window that was measured; absent: they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instability: Option<Instability>,
    /// Requests that ended in the windows.
    pub request_count: u64,
    /// Length of all windows together, in seconds.
    pub duration_s: f64,
    /// Inferences per second.
    pub throughput: f64,
    /// 95 % confidence interval of the throughput over the windows (Student's t); absent with fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_ci95: Option<[f64; 2]>,
    /// Responses per second, for decoupled models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_throughput: Option<f64>,
    /// Latency from sending to the last response.
    pub latency: Latency,
    /// 95 % confidence interval of the deciding latency over the windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ci95: Option<[f64; 2]>,
    /// Latency from the time the schedule wanted each request sent, so that a stalled server counts (rate modes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_latency: Option<Latency>,
    /// Requests that could not be sent on schedule.
    pub delayed_request_count: u64,
    /// The parts of an average call.
    pub client: ClientTimes,
    /// The server's times; absent: it has no statistics extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerTimes>,
    /// The windows that were merged, oldest first.
    pub windows: Vec<WindowPoint>,
    /// Share of the time in which the tool's threads were busy.
    pub overhead_percent: f64,
    /// The tool's own CPU time for each request.
    pub tool_cpu_us_per_request: f64,
}

/// A distribution of latencies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    /// The average.
    pub avg_us: f64,
    /// Standard deviation of the sample.
    pub std_us: f64,
    /// The shortest.
    pub min_us: f64,
    /// The longest.
    pub max_us: f64,
    /// "50", "90", "95", "99", "99.9" and the one requested.
    pub percentiles_us: BTreeMap<String, f64>,
}

/// Averages of the parts of a call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClientTimes {
    /// Time until the request was sent.
    pub send_us: f64,
    /// Time from then until the response began.
    pub response_wait_us: f64,
    /// Time from then until the response was complete.
    pub receive_us: f64,
}

/// Averages over the requests of a model version.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ServerTimes {
    /// The model's name.
    pub model: String,
    /// Its version; empty: the latest.
    pub version: String,
    /// Requests that succeeded.
    pub success_count: u64,
    /// Inferences: requests times their batch size.
    pub inference_count: u64,
    /// Executions of the model.
    pub execution_count: u64,
    /// Items of all executions, failed ones included; absent: the server does not report batch sizes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub executed_items: u64,
    /// Time from arrival to response.
    pub request_us: f64,
    /// Time in the queue.
    pub queue_us: f64,
    /// Time in which inputs were prepared.
    pub compute_input_us: f64,
    /// Time in which the model was executed.
    pub compute_infer_us: f64,
    /// Time in which outputs were prepared.
    pub compute_output_us: f64,
    /// Time to answer from the cache.
    pub cache_hit_us: f64,
    /// Time of lookups that found nothing and of storing.
    pub cache_miss_us: f64,
    /// The steps of an ensemble.
    #[serde(default)]
    pub composing: Vec<ServerTimes>,
}

impl ServerTimes {
    /// Returns the mean batch size: the items of all executions over all executions. Without batch sizes from the server,
    /// inferences replace the items. They leave out failed requests: `None` if the mean is below one.
    pub fn batch_size(&self) -> Option<f64> {
        let items = match self.executed_items {
            0 => self.inference_count,
            items => items,
        };
        let executions = self.execution_count;
        (executions > 0 && items >= executions).then(|| items as f64 / executions as f64)
    }
}

/// The figures of one window.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WindowPoint {
    /// Inferences per second.
    pub throughput: f64,
    /// The latency that decides about stability.
    pub latency_us: f64,
}

/// The reason why the windows of a point do not agree. Differences are the largest window over the smallest, less one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Instability {
    /// The reason as a text.
    pub reason: String,
    /// Largest difference of the last windows that is allowed (`--stability-percentage`).
    pub allowed_percent: f64,
    /// Their difference in throughput; absent: there are too few windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_percent: Option<f64>,
    /// Their difference in the latency that decides; absent: there are too few windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_percent: Option<f64>,
    /// The latency limit that was exceeded, so that no more windows were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_limit_ms: Option<u64>,
    /// Every window of the point, oldest first.
    pub trials: Vec<Trial>,
}

/// A window of a point that the tool gave up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Trial {
    /// Inferences per second.
    pub throughput: f64,
    /// The latency that decides about stability; absent: the window failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<f64>,
    /// It is part of the figures reported for the point.
    pub merged: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_size_below_one_is_never_reported() {
        let failing =
            ServerTimes { inference_count: 69, execution_count: 100, ..ServerTimes::default() };
        assert_eq!(failing.batch_size(), None, "the inferences leave out what failed");
        let known = ServerTimes { executed_items: 250, ..failing };
        assert_eq!(known.batch_size(), Some(2.5));
        assert_eq!(ServerTimes::default().batch_size(), None);
    }
}
