//! Values for tests: a plain run that each test changes where it looks.

mod points;

use galatea_client::CountAndTime;
use galatea_perf_types::{
    model::{ModelInfo, SchedulingKind},
    settings::Settings,
    status::{ClientStats, LoadPoint, ModelCounters, PerfStatus, ServerStats},
};

pub(crate) use points::*;

/// One point of concurrency 1 over HTTP.
pub(crate) fn settings() -> Settings {
    Settings::defaults("simple")
}

pub(crate) fn model() -> ModelInfo {
    ModelInfo {
        name: "simple".to_owned(),
        version: String::new(),
        max_batch_size: 8,
        scheduling: SchedulingKind::Dynamic,
        decoupled: false,
        response_cache: false,
        top_level_response_cache: false,
        inputs: Vec::new(),
        outputs: Vec::new(),
        composing: Vec::new(),
    }
}

/// A point with these figures of the client; `percentiles` are 50, 90, 95 and 99, times in microseconds.
pub(crate) fn status(requests: u64, infer_per_sec: f64, percentiles: [u64; 4]) -> PerfStatus {
    let percentiles = percentiles.map(|micros| micros * 1000);
    let percentile_latency_ns = [50, 90, 95, 99].into_iter().zip(percentiles).collect();
    PerfStatus {
        load: LoadPoint::Concurrency(1),
        batch_size: 1,
        on_sequence_model: false,
        client: ClientStats {
            request_count: requests,
            infer_per_sec,
            percentile_latency_ns,
            ..ClientStats::default()
        },
        server: None,
        metrics: Vec::new(),
        stabilizing_latency_ns: 0,
        overhead_percent: 0.0,
        send_request_rate: 0.0,
        windows: Vec::new(),
        scheduled_latencies: Vec::new(),
        is_stable: true,
        tool_cpu_ns: 0,
        instability: None,
    }
}

/// Averages in microseconds, standard deviation included.
pub(crate) fn average(status: &mut PerfStatus, latency: f64, deviation: u64) {
    status.client.avg_latency_ns = nanos(latency);
    status.client.std_us = deviation;
    status.stabilizing_latency_ns = nanos(latency);
}

/// Parts of an average call in microseconds: all of it, sending, receiving.
pub(crate) fn calls(status: &mut PerfStatus, [total, send, receive]: [f64; 3]) {
    status.client.avg_request_time_ns = nanos(total);
    status.client.avg_send_time_ns = nanos(send);
    status.client.avg_receive_time_ns = nanos(receive);
}

/// Counters of `count` requests of which each was executed alone, from average times in microseconds: whole
/// request, queue, compute input, infer, output.
pub(crate) fn counters(
    count: u64,
    [total, queue, input, infer, output]: [f64; 5],
) -> ModelCounters {
    let times = |average| CountAndTime { count, ns: nanos(average) * count };
    ModelCounters {
        success: times(total),
        inference_count: count,
        execution_count: count,
        queue: times(queue),
        compute_input: times(input),
        compute_infer: times(infer),
        compute_output: times(output),
        ..ModelCounters::default()
    }
}

pub(crate) fn server(counters: ModelCounters) -> ServerStats {
    ServerStats { counters, ..ServerStats::default() }
}

/// An ensemble with the steps it called.
pub(crate) fn ensemble<const N: usize>(
    counters: ModelCounters,
    steps: [(&str, &str, ServerStats); N],
) -> ServerStats {
    let composing = steps
        .into_iter()
        .map(|(name, version, stats)| ((name.to_owned(), version.to_owned()), stats))
        .collect();
    ServerStats { counters, composing }
}

pub(crate) fn nanos(micros: f64) -> u64 {
    (micros * 1000.0).round() as u64
}
