//! Merges several windows into one result.

use std::collections::BTreeMap;

use galatea_perf_types::{
    failure::{Failure, Result},
    status::{ClientStats, GpuMetrics, PerfStatus, ServerStats, WindowFigures},
};

use super::{Run, server};

impl Run<'_> {
    /// Sums counts and pools latencies; the figures follow from those.
    pub(super) fn merge(&mut self, windows: &[PerfStatus]) -> Result<PerfStatus> {
        let Some(first) = windows.first() else {
            return Err(Failure::generic("Failed to obtain stable measurement."));
        };
        let mut merged = PerfStatus {
            load: first.load,
            batch_size: first.batch_size,
            on_sequence_model: first.on_sequence_model,
            is_stable: true,
            client: pooled(windows),
            server: merged_server(windows)?,
            metrics: Vec::new(),
            stabilizing_latency_ns: 0,
            overhead_percent: mean(windows, |window| window.overhead_percent),
            send_request_rate: mean(windows, |window| window.send_request_rate),
            windows: windows.iter().map(figures).collect(),
            scheduled_latencies: sorted(windows, |window| &window.scheduled_latencies),
            tool_cpu_ns: sum(windows, |window| window.tool_cpu_ns),
            instability: None,
        };
        if self.parts.metrics.is_some() {
            let samples = windows.iter().flat_map(|window| &window.metrics);
            merged.metrics = vec![merged_metrics(samples)];
        }
        self.summarize(&mut merged)?;
        Ok(merged)
    }
}

fn figures(window: &PerfStatus) -> WindowFigures {
    WindowFigures {
        infer_per_sec: window.client.infer_per_sec,
        latency_ns: window.stabilizing_latency_ns,
        duration_ns: window.client.duration_ns,
    }
}

fn sum(windows: &[PerfStatus], of: impl Fn(&PerfStatus) -> u64) -> u64 {
    windows.iter().map(of).sum()
}

fn mean(windows: &[PerfStatus], of: impl Fn(&PerfStatus) -> f64) -> f64 {
    windows.iter().map(of).sum::<f64>() / windows.len() as f64
}

fn sorted(windows: &[PerfStatus], of: impl Fn(&PerfStatus) -> &Vec<u64>) -> Vec<u64> {
    let mut all: Vec<u64> = windows.iter().flat_map(|window| of(window).iter().copied()).collect();
    all.sort_unstable();
    all
}

fn pooled(windows: &[PerfStatus]) -> ClientStats {
    let count = |of: fn(&ClientStats) -> u64| sum(windows, |window| of(&window.client));
    let completed_count = count(|client| client.completed_count);
    let per_call = |of: fn(&ClientStats) -> u64| {
        sum(windows, |window| of(&window.client) * window.client.completed_count)
            .checked_div(completed_count)
            .unwrap_or(0)
    };
    ClientStats {
        request_count: count(|client| client.request_count),
        sequence_count: count(|client| client.sequence_count),
        delayed_request_count: count(|client| client.delayed_request_count),
        response_count: count(|client| client.response_count),
        duration_ns: count(|client| client.duration_ns),
        latencies: sorted(windows, |window| &window.client.latencies),
        completed_count,
        avg_request_time_ns: per_call(|client| client.avg_request_time_ns),
        avg_send_time_ns: per_call(|client| client.avg_send_time_ns),
        avg_receive_time_ns: per_call(|client| client.avg_receive_time_ns),
        ..ClientStats::default()
    }
}

fn merged_server(windows: &[PerfStatus]) -> Result<Option<ServerStats>> {
    let stats: Vec<_> = windows.iter().filter_map(|window| window.server.as_ref()).collect();
    if stats.is_empty() { Ok(None) } else { server::merge(&stats).map(Some) }
}

/// Merges gauges: averages of those that vary, the maximum of memory in use, the first value of constants.
fn merged_metrics<'s>(samples: impl Iterator<Item = &'s GpuMetrics>) -> GpuMetrics {
    let mut merged = GpuMetrics::default();
    let mut utilization = Averages::default();
    let mut power = Averages::default();
    for sample in samples {
        utilization.add(&sample.utilization);
        power.add(&sample.power_watts);
        for (uuid, used) in &sample.memory_used_bytes {
            let most = merged.memory_used_bytes.entry(uuid.clone()).or_default();
            *most = (*most).max(*used);
        }
        for (uuid, total) in &sample.memory_total_bytes {
            merged.memory_total_bytes.entry(uuid.clone()).or_insert(*total);
        }
    }
    merged.utilization = utilization.finish();
    merged.power_watts = power.finish();
    merged
}

/// Sum and count by GPU.
#[derive(Default)]
struct Averages(BTreeMap<String, (f64, f64)>);

impl Averages {
    fn add(&mut self, gauge: &BTreeMap<String, f64>) {
        for (uuid, value) in gauge {
            let (sum, count) = self.0.entry(uuid.clone()).or_default();
            *sum += value;
            *count += 1.0;
        }
    }

    fn finish(self) -> BTreeMap<String, f64> {
        self.0.into_iter().map(|(uuid, (sum, count))| (uuid, sum / count)).collect()
    }
}
