//! Cells of a row.

use std::collections::BTreeMap;

use galatea_client::CountAndTime;
use galatea_perf_types::status::{GpuMetrics, ModelCounters};

use crate::{breakdown::compute, number::general};

/// The warning when the server accounts for more time than the client waited.
pub(super) const UNACCOUNTED: &str = "Server average accounted time was larger than client average wait time due to small sample size. Increase the measurement interval with `--measurement-interval`.";

/// The name of a column, and its value in a row.
pub(super) type Cell = (String, String);

pub(super) fn cell(name: &str, value: impl ToString) -> Cell {
    (name.to_owned(), value.to_string())
}

pub(super) fn micros(name: &str, ns: u64) -> Cell {
    cell(name, ns / 1000)
}

/// Returns the server's cells of a row. `whole_ns`: average time of a request. Time that no part accounts for is the network's,
/// or a step's overhead.
pub(super) fn server(
    counters: &ModelCounters,
    whole_ns: u64,
    with_cache: bool,
    warnings: &mut Vec<String>,
) -> Vec<Cell> {
    let [queue, compute, hit, miss] =
        [counters.queue, compute(counters), counters.cache_hit, counters.cache_miss]
            .map(average_ns);
    let rest = [queue, compute, hit, miss].into_iter().fold(whole_ns, u64::saturating_sub);
    if rest == 0 {
        warnings.push(UNACCOUNTED.to_owned());
    }
    let mut cells = vec![
        micros("Network+Server Send/Recv", rest),
        micros("Server Queue", queue),
        micros("Server Compute Input", average_ns(counters.compute_input)),
        micros("Server Compute Infer", average_ns(counters.compute_infer)),
        micros("Server Compute Output", average_ns(counters.compute_output)),
    ];
    if with_cache {
        cells.extend([micros("Server Cache Hit", hit), micros("Server Cache Miss", miss)]);
    }
    cells
}

/// Returns the average in nanoseconds; zero without a count.
pub(super) fn average_ns(of: CountAndTime) -> u64 {
    of.ns.checked_div(of.count).unwrap_or(0)
}

/// Returns cells of the form `uuid:value;` for each GPU.
pub(super) fn gpu(metrics: &GpuMetrics) -> [Cell; 4] {
    [
        cell("Avg GPU Utilization", by_gpu(&metrics.utilization, |ratio| general(*ratio))),
        cell("Avg GPU Power Usage", by_gpu(&metrics.power_watts, |watts| general(*watts))),
        cell("Max GPU Memory Usage", by_gpu(&metrics.memory_used_bytes, u64::to_string)),
        cell("Total GPU Memory", by_gpu(&metrics.memory_total_bytes, u64::to_string)),
    ]
}

fn by_gpu<V>(gauges: &BTreeMap<String, V>, show: impl Fn(&V) -> String) -> String {
    gauges.iter().map(|(uuid, value)| format!("{uuid}:{};", show(value))).collect()
}
