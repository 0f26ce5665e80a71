//! The summary of a run as data (`--json`). Beyond the text report it has unrounded times, higher percentiles, confidence
//! intervals, latencies free of coordinated omission, and the tool's own CPU time.

mod interval;

use std::collections::BTreeMap;

use galatea_client::{CountAndTime, Protocol, ServerMetadata, TensorFormat};
use galatea_perf_types::{
    model::ModelInfo,
    percentile::percentile,
    record::Nanos,
    settings::{Settings, SharedMemory},
    status::{self, ClientStats, LoadPoint, ModelCounters, PerfStatus, ServerStats, WindowFigures},
    summary::{
        ClientTimes, FORMAT, Instability, Latency, Point, ServerTimes, Summary, TensorBytes, Trial,
        WindowPoint,
    },
};

use crate::instability::reason;

/// The facts about a run that are not measured.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The server's metadata.
    pub server: ServerMetadata,
    /// Words of the command line joined with blanks.
    pub command: String,
    /// Start of the run, in Unix seconds.
    pub started_at: f64,
    /// Bytes of the tensors in the run's requests and responses.
    pub tensor_bytes: TensorBytes,
    /// Warnings, one line each, in the order in which they occurred.
    pub warnings: Vec<String>,
}

/// Makes the summary of a run: the data that all reports share.
pub fn summarize(
    points: &[PerfStatus],
    settings: &Settings,
    model: &ModelInfo,
    run: Run,
) -> Summary {
    Summary {
        format: FORMAT.to_owned(),
        label: label(settings, &run),
        command: run.command,
        started_at: run.started_at,
        model: model.name.clone(),
        model_version: model.version.clone(),
        server_name: run.server.name,
        server_version: run.server.version,
        server_implementation: run.server.implementation,
        protocol: match settings.protocol {
            Protocol::Http => "http".to_owned(),
            Protocol::Grpc => "grpc".to_owned(),
        },
        batch_size: settings.batch_size,
        percentile: settings.percentile,
        shared_memory: Some(settings.shared_memory.name().to_owned()),
        tensor_bytes: are_tensors_binary(settings).then_some(run.tensor_bytes),
        points: points.iter().map(|status| point(status, settings, model)).collect(),
        warnings: run.warnings,
    }
}

/// Returns true if tensors travel as their own bytes, and not as JSON.
fn are_tensors_binary(settings: &Settings) -> bool {
    let formats = [settings.data.input_format, settings.data.output_format];
    let is_json = settings.protocol == Protocol::Http && formats.contains(&TensorFormat::Json);
    settings.shared_memory != SharedMemory::None || !is_json
}

fn label(settings: &Settings, run: &Run) -> String {
    let of_server = || match run.server.implementation.as_str() {
        "" => format!("{} {}", run.server.name, run.server.version).trim().to_owned(),
        implementation => implementation.to_owned(),
    };
    settings.label.clone().unwrap_or_else(of_server)
}

fn point(status: &PerfStatus, settings: &Settings, model: &ModelInfo) -> Point {
    let client = &status.client;
    let (mode, value) = match status.load {
        LoadPoint::Concurrency(concurrency) => ("concurrency", concurrency as f64),
        LoadPoint::RequestRate(rate) => ("request_rate", rate),
    };
    let latencies = |sorted: &[Nanos]| latency(sorted, settings.percentile);
    let over_windows = |figure: fn(&WindowFigures) -> f64| {
        interval::confidence_95(&status.windows.iter().map(figure).collect::<Vec<_>>())
    };
    Point {
        mode: mode.to_owned(),
        value,
        unstable: !status.is_stable,
        instability: status.instability.as_ref().map(|why| instability(why, status.windows.len())),
        request_count: client.request_count,
        duration_s: client.duration_ns as f64 / 1e9,
        throughput: client.infer_per_sec,
        throughput_ci95: over_windows(|window| window.infer_per_sec),
        response_throughput: model.decoupled.then_some(client.responses_per_sec),
        latency: latencies(&client.latencies),
        latency_ci95: over_windows(|window| micros(window.latency_ns)),
        scheduled_latency: (!status.scheduled_latencies.is_empty())
            .then(|| latencies(&status.scheduled_latencies)),
        delayed_request_count: client.delayed_request_count,
        client: client_times(client),
        server: status
            .server
            .as_ref()
            .map(|stats| server_times(&model.name, &model.version, stats)),
        windows: status.windows.iter().map(window).collect(),
        overhead_percent: status.overhead_percent,
        tool_cpu_us_per_request: per(CountAndTime {
            count: client.request_count,
            ns: status.tool_cpu_ns,
        }),
    }
}

/// `merged`: number of last windows that the point's figures include.
fn instability(why: &status::Instability, merged: usize) -> Instability {
    let percent = |ratio: f64| ratio * 100.0;
    let merged_from = why.trials.len().saturating_sub(merged);
    let trial = |(i, trial): (usize, &status::Trial)| Trial {
        throughput: trial.infer_per_sec,
        latency_us: trial.latency_ns.map(micros),
        merged: i >= merged_from,
    };
    Instability {
        reason: reason(why),
        allowed_percent: percent(why.allowed),
        throughput_percent: why.throughput.map(percent),
        latency_percent: why.latency.map(percent),
        latency_limit_ms: why.limit_ms,
        trials: why.trials.iter().enumerate().map(trial).collect(),
    }
}

fn window(figures: &WindowFigures) -> WindowPoint {
    WindowPoint { throughput: figures.infer_per_sec, latency_us: micros(figures.latency_ns) }
}

/// `sorted` ascends.
fn latency(sorted: &[Nanos], asked: Option<u8>) -> Latency {
    let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else { return Latency::default() };
    let count = sorted.len() as f64;
    let mean = sorted.iter().map(|ns| *ns as f64).sum::<f64>() / count;
    let squares = sorted.iter().map(|ns| (*ns as f64 - mean).powi(2)).sum::<f64>();
    let variance = if sorted.len() > 1 { squares / (count - 1.0) } else { 0.0 };
    Latency {
        avg_us: mean / 1000.0,
        std_us: variance.sqrt() / 1000.0,
        min_us: micros(*min),
        max_us: micros(*max),
        percentiles_us: percentiles(sorted, asked),
    }
}

fn percentiles(sorted: &[Nanos], asked: Option<u8>) -> BTreeMap<String, f64> {
    let usual = [50.0, 90.0, 95.0, 99.0, 99.9];
    let wanted = usual.into_iter().chain(asked.map(f64::from));
    wanted
        .filter_map(|percent| Some((percent.to_string(), micros(percentile(sorted, percent)?))))
        .collect()
}

fn client_times(client: &ClientStats) -> ClientTimes {
    let wait = client
        .avg_request_time_ns
        .saturating_sub(client.avg_send_time_ns)
        .saturating_sub(client.avg_receive_time_ns);
    ClientTimes {
        send_us: micros(client.avg_send_time_ns),
        response_wait_us: micros(wait),
        receive_us: micros(client.avg_receive_time_ns),
    }
}

fn server_times(model: &str, version: &str, stats: &ServerStats) -> ServerTimes {
    let steps = stats.composing.iter();
    let composing: Vec<ServerTimes> =
        steps.map(|((name, version), step)| server_times(name, version, step)).collect();
    let own = own_times(model, version, &stats.counters);
    if composing.is_empty() {
        return own;
    }
    // An ensemble has its queue and compute times in its steps.
    let sum = |part: fn(&ServerTimes) -> f64| composing.iter().map(part).sum::<f64>();
    ServerTimes {
        queue_us: sum(|step| step.queue_us),
        compute_input_us: sum(|step| step.compute_input_us),
        compute_infer_us: sum(|step| step.compute_infer_us),
        compute_output_us: sum(|step| step.compute_output_us),
        cache_hit_us: own.cache_hit_us + sum(|step| step.cache_hit_us),
        cache_miss_us: own.cache_miss_us + sum(|step| step.cache_miss_us),
        composing,
        ..own
    }
}

fn own_times(model: &str, version: &str, counters: &ModelCounters) -> ServerTimes {
    ServerTimes {
        model: model.to_owned(),
        version: version.to_owned(),
        success_count: counters.success.count,
        inference_count: counters.inference_count,
        execution_count: counters.execution_count,
        executed_items: counters.executed_items,
        request_us: per(counters.success),
        queue_us: per(counters.queue),
        compute_input_us: per(counters.compute_input),
        compute_infer_us: per(counters.compute_infer),
        compute_output_us: per(counters.compute_output),
        cache_hit_us: per(counters.cache_hit),
        cache_miss_us: per(counters.cache_miss),
        composing: Vec::new(),
    }
}

fn micros(ns: Nanos) -> f64 {
    ns as f64 / 1000.0
}

/// Returns microseconds per event; zero without any.
fn per(of: CountAndTime) -> f64 {
    if of.count == 0 { 0.0 } else { micros(of.ns) / of.count as f64 }
}

#[cfg(test)]
mod tests;
