//! Everything a run found, as `--json` writes it, `--html` draws it and `--compare` reads it.
//!
//! Latencies are microseconds (fractions allowed), times of day Unix seconds. Fields are only ever added.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `format` of a [`Summary`] this version writes.
pub const FORMAT: &str = "galatea-perf/1";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    pub format: String,
    /// The command line, words joined with blanks.
    pub command: String,
    /// A name for the run in comparisons: server name and version, or the file's name.
    pub label: String,
    pub started_at: f64,
    pub model: String,
    pub model_version: String,
    pub server_name: String,
    pub server_version: String,
    pub protocol: String,
    pub batch_size: u64,
    /// The percentile that decided about stability; absent: the average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<u8>,
    pub points: Vec<Point>,
    #[serde(default)]
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// `concurrency` or `request_rate`.
    pub mode: String,
    pub value: f64,
    /// The windows do not agree: the figures are a hint. Absent: they do.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unstable: bool,
    pub request_count: u64,
    pub duration_s: f64,
    /// Inferences per second.
    pub throughput: f64,
    /// 95 % confidence interval of the throughput over the windows (Student's t); absent with fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_ci95: Option<[f64; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_throughput: Option<f64>,
    pub latency: Latency,
    /// 95 % confidence interval of the deciding latency over the windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ci95: Option<[f64; 2]>,
    /// From the time the schedule wanted each request sent, so that a stalled server counts (rate modes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_latency: Option<Latency>,
    pub delayed_request_count: u64,
    pub client: ClientTimes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerTimes>,
    pub windows: Vec<WindowPoint>,
    pub overhead_percent: f64,
    /// The tool's own CPU time for each request.
    pub tool_cpu_us_per_request: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    pub avg_us: f64,
    pub std_us: f64,
    pub min_us: f64,
    pub max_us: f64,
    /// "50", "90", "95", "99", "99.9" and the one asked for.
    pub percentiles_us: BTreeMap<String, f64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClientTimes {
    pub send_us: f64,
    pub response_wait_us: f64,
    pub receive_us: f64,
}

/// Of a model version; averages over requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ServerTimes {
    pub model: String,
    pub version: String,
    pub success_count: u64,
    pub inference_count: u64,
    pub execution_count: u64,
    pub request_us: f64,
    pub queue_us: f64,
    pub compute_input_us: f64,
    pub compute_infer_us: f64,
    pub compute_output_us: f64,
    pub cache_hit_us: f64,
    pub cache_miss_us: f64,
    #[serde(default)]
    pub composing: Vec<ServerTimes>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WindowPoint {
    pub throughput: f64,
    pub latency_us: f64,
}

fn is_false(value: &bool) -> bool {
    !value
}
