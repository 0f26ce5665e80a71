//! The report for people, in the layout of perf_analyzer 2.50. Scripts read numbers from it, so the words, the blanks and the
//! order of lines are a format.
//!
//! Source of the format: transcripts of perf_analyzer. Lines that end in a blank there do so here.

mod client;
mod gpu;
mod server;
mod shared_memory;

use std::fmt::Write as _;

use crate::instability::reason;
pub use crate::number::{Notation, general};
use galatea_perf_types::{
    model::ModelInfo,
    settings::{DEFAULT_THREADS, Distribution, Load, Range, Search, Settings, Window},
    status::{LoadPoint, PerfStatus},
};

pub(crate) use client::CallMicros;
pub use shared_memory::shared_memory;

/// Writes the block before the first measurement. `settings.calls` must already suit the model.
pub fn settings(settings: &Settings, model: &ModelInfo) -> String {
    let mut text = format!(
        "*** Measurement Settings ***\n  Batch size: {}\n  Service Kind: TRITON\n",
        settings.batch_size
    );
    request_counts(&mut text, settings);
    if settings.request_count.is_none() {
        stabilization(&mut text, settings);
    }
    limits(&mut text, settings);
    if let Load::RequestRate { distribution, .. } = settings.load {
        let name = match distribution {
            Distribution::Constant => "uniform",
            Distribution::Poisson => "poisson",
        };
        let _ = writeln!(text, "  Using {name} distribution on request generation");
    }
    if settings.search == Search::Binary {
        text.push_str("  Using Binary Search algorithm\n");
    }
    let calls = if settings.calls.asynchronous { "asynchronous" } else { "synchronous" };
    let _ = writeln!(text, "  Using {calls} calls for inference");
    if model.decoupled {
        text.push_str(
            "  Detected decoupled model, using the first response for measuring latency\n",
        );
    }
    text.push('\n');
    text
}

fn request_counts(text: &mut String, settings: &Settings) {
    let counts = [
        (settings.warmup_request_count, "warmup"),
        (settings.request_count.unwrap_or(0), "benchmark"),
    ];
    for (count, kind) in counts.into_iter().filter(|(count, _)| *count > 0) {
        let plural = if count > 1 { "s" } else { "" };
        let _ = writeln!(text, "  Sending {count} {kind} request{plural}");
    }
}

fn stabilization(text: &mut String, settings: &Settings) {
    let (mode, length) = match settings.window {
        Window::Time(ms) => ("time_windows", format!("  Measurement window: {ms} msec\n")),
        Window::Count(count) => {
            ("count_windows", format!("  Minimum number of samples in each window: {count}\n"))
        }
    };
    let _ = writeln!(text, "  Using \"{mode}\" mode for stabilization");
    let measure = if settings.calls.asynchronous { "throughput" } else { "latency and throughput" };
    // No blank after the percentile: perf_analyzer prints it so.
    let _ = match settings.percentile {
        None => writeln!(text, "  Stabilizing using average {measure}"),
        Some(percentile) => writeln!(text, "  Stabilizing using p{percentile}{measure}"),
    };
    text.push_str(&length);
}

/// Writes the limits. They are reported whenever the range does not end at 1, the default, even if it is a single value.
fn limits(text: &mut String, settings: &Settings) {
    let latency = settings.latency_limit.unwrap_or(0);
    match &settings.load {
        Load::Concurrency(Range { start, end, .. }) if *end != 1 => {
            let _ = writeln!(text, "  Latency limit: {latency} msec");
            if let Some(end) = last_concurrency(*end, settings) {
                let most = end.max(*start);
                let _ = writeln!(text, "  Concurrency limit: {most} concurrent requests");
            }
        }
        Load::RequestRate { range: Range { start, end, .. }, .. } if *end != 1.0 => {
            let _ = writeln!(text, "  Latency limit: {latency} msec");
            if *end != 0.0 {
                let most = general(start.max(*end));
                let _ = writeln!(text, "  Request Rate limit: {most} requests per seconds");
            }
        }
        _ => {}
    }
}

/// Returns the last concurrency. Without an end, synchronous calls stop at the number of threads, asynchronous ones never.
fn last_concurrency(end: u64, settings: &Settings) -> Option<u64> {
    match end {
        0 if settings.calls.asynchronous => None,
        0 => Some(settings.max_threads.unwrap_or(DEFAULT_THREADS) as u64),
        end => Some(end),
    }
}

/// Writes the results of one point of the search; `notation` is that after the points before.
pub fn point(
    mut notation: Notation,
    status: &PerfStatus,
    settings: &Settings,
    model: &ModelInfo,
) -> String {
    let mut text = unstable_windows(notation, status);
    text.push_str("  Client: \n");
    client::write(&mut text, &mut notation, status, settings, model);
    if let Some(stats) = &status.server {
        text.push_str("  Server: \n");
        server::write(&mut text, stats, model, 1);
    }
    if settings.metrics.is_some() {
        text.push_str("  Server Prometheus Metrics: \n");
        if let Some(metrics) = status.metrics.first() {
            gpu::write(&mut text, notation, metrics);
        }
    }
    if status.is_bound_by_the_tool() {
        text.push_str(
            "[WARNING] Perf Analyzer is not able to keep up with the desired load. The results may not be accurate.\n",
        );
    }
    text
}

/// Most windows of an unstable point that are listed: more would not tell more.
const MOST_TRIALS: usize = 20;

/// Writes the last windows of a point that is not stable, marks those in the figures, and gives the reason. perf_analyzer's
/// report does not have this.
fn unstable_windows(notation: Notation, status: &PerfStatus) -> String {
    let Some(why) = &status.instability else { return String::new() };
    let mut text = String::from("  Unstable windows:\n");
    let hidden = why.trials.len().saturating_sub(MOST_TRIALS);
    if hidden > 0 {
        let _ = writeln!(text, "    {hidden} earlier windows (--json has all)");
    }
    let merged_from = why.trials.len().saturating_sub(status.windows.len());
    for (i, trial) in why.trials.iter().enumerate().skip(hidden) {
        let throughput = notation.number(trial.infer_per_sec);
        let latency = match trial.latency_ns {
            Some(ns) => format!("latency {} usec", ns / 1000),
            None => "failed".to_owned(),
        };
        let mark = if i >= merged_from { " (merged)" } else { "" };
        let _ = writeln!(text, "    throughput: {throughput} infer/sec, {latency}{mark}");
    }
    let _ = writeln!(text, "  Unstable because {}", reason(why));
    text
}

/// The summary at the end: one line for each point, in the order of the search. Empty without points, and for
/// periodic concurrency, which measures none.
pub fn footer(points: &[PerfStatus], settings: &Settings) -> String {
    if points.is_empty() || matches!(settings.load, Load::PeriodicConcurrency { .. }) {
        return String::new();
    }
    let latency = settings.percentile.map_or("Average".to_owned(), |p| format!("p{p}"));
    let mut text = format!("Inferences/Second vs. Client {latency} Batch Latency\n");
    let notation = Notation::after(points);
    for status in points {
        let load = match status.load {
            LoadPoint::Concurrency(concurrency) => format!("Concurrency: {concurrency}"),
            LoadPoint::RequestRate(rate) => format!("Request Rate: {}", notation.number(rate)),
        };
        let _ = writeln!(
            text,
            "{load}, throughput: {} infer/sec, latency {} usec{}",
            notation.number(status.client.infer_per_sec),
            status.stabilizing_latency_ns / 1000,
            if status.is_stable { "" } else { " (unstable)" }
        );
    }
    text
}

#[cfg(test)]
mod tests;
