//! Points that real runs measured (see testdata): what they printed, with fractions chosen so that the sums of
//! the text report and those of the CSV both come out.

use galatea_client::{CountAndTime, Protocol};
use galatea_perf_types::{
    settings::{Load, Range, Settings, Verbosity},
    status::{LoadPoint, ModelCounters, PerfStatus, ServerStats},
};

use super::{average, calls, counters, ensemble, nanos, server, settings, status};

pub(crate) fn http_point() -> PerfStatus {
    let mut status = status(3136, 1712.69, [419, 688, 1068, 3668]);
    average(&mut status, 578.0, 1893);
    calls(&mut status, [569.0, 70.9, 0.3]);
    status.server = Some(server(counters(3136, [281.5, 60.9, 15.6, 169.9, 34.4])));
    status
}

/// `--percentile 95`, concurrency 1 and 3.
pub(crate) fn percentile_points() -> [PerfStatus; 2] {
    let mut first = status(3737, 2062.51, [455, 551, 590, 794]);
    first.overhead_percent = 1.594;
    first.client.avg_latency_ns = nanos(480.6);
    first.stabilizing_latency_ns = nanos(590.0);
    calls(&mut first, [473.5, 52.4, 0.3]);
    first.server = Some(server(counters(3738, [253.9, 67.5, 15.5, 135.4, 34.3])));

    let mut second = status(7941, 4310.38, [646, 923, 1053, 1519]);
    second.load = LoadPoint::Concurrency(3);
    second.overhead_percent = 0.73;
    second.client.avg_latency_ns = nanos(690.0);
    second.stabilizing_latency_ns = nanos(1053.0);
    calls(&mut second, [683.5, 68.5, 0.3]);
    let mut work = counters(7943, [394.5, 155.4, 20.6, 163.5, 53.4]);
    work.execution_count = 5853;
    second.server = Some(server(work));
    [first, second]
}

pub(crate) fn ensemble_point() -> PerfStatus {
    let mut status = status(2172, 1202.2, [735, 936, 1139, 3707]);
    average(&mut status, 828.0, 1107);
    calls(&mut status, [812.0, 3.9, 1.9]);
    let step = |times| server(counters(2172, times));
    status.server = Some(ensemble(
        counters(2172, [622.5, 1.9, 28.1, 288.1, 199.0]),
        [
            ("simple", "1", step([256.3, 57.9, 15.4, 133.5, 49.3])),
            ("plain", "1", step([378.3, 59.9, 12.7, 154.7, 150.8])),
        ],
    ));
    status
}

pub(crate) fn cached_point() -> PerfStatus {
    let mut status = status(8415, 4443.69, [164, 232, 276, 1800]);
    average(&mut status, 220.0, 836);
    calls(&mut status, [217.0, 57.0, 0.0]);
    status.server = Some(server(ModelCounters {
        success: times(8469, 13.5),
        queue: times(8469, 2.5),
        cache_hit: times(8468, 3.5),
        cache_miss: times(1, 75.0),
        ..counters(1, [0.0, 0.0, 37.0, 48614.0, 182.0])
    }));
    status
}

fn times(count: u64, average: f64) -> CountAndTime {
    CountAndTime { count, ns: count * nanos(average) }
}

/// Counters of a model of which all responses came from the cache.
fn hits(count: u64, [total, queue, hit]: [f64; 3]) -> ModelCounters {
    ModelCounters {
        success: times(count, total),
        queue: times(count, queue),
        cache_hit: times(count, hit),
        ..ModelCounters::default()
    }
}

/// An ensemble with a step that answers from its cache.
pub(crate) fn cached_step_point() -> PerfStatus {
    let mut status = status(4553, 2360.83, [333, 486, 601, 1012]);
    average(&mut status, 420.0, 1483);
    calls(&mut status, [413.0, 49.2, 0.3]);
    status.server = Some(ensemble(
        counters(4554, [219.5, 0.6, 13.1, 94.1, 36.1]),
        [
            ("cached", "1", server(hits(4553, [6.4, 1.9, 3.9]))),
            ("plain", "1", server(counters(4554, [196.5, 52.9, 13.1, 94.0, 36.1]))),
        ],
    ));
    status
}

/// An ensemble that answers from its own cache.
pub(crate) fn cached_ensemble_point() -> PerfStatus {
    let mut status = status(10093, 5322.24, [130, 220, 251, 1745]);
    average(&mut status, 183.0, 312);
    calls(&mut status, [178.0, 48.9, 0.9]);
    status.server = Some(ensemble(
        hits(10092, [5.5, 1.9, 3.0]),
        [("plain", "-1", ServerStats::default()), ("cached", "-1", ServerStats::default())],
    ));
    status
}

pub(crate) fn decoupled_point() -> PerfStatus {
    let mut status = status(376, 208.543, [3554, 7210, 7913, 9974]);
    status.client.responses_per_sec = 625.63;
    status.overhead_percent = 0.17;
    average(&mut status, 4546.2, 4602);
    status.server = Some(server(counters(376, [1279.9, 137.6, 16.9, 1116.9, 6.4])));
    status
}

pub(crate) fn metrics_point() -> PerfStatus {
    let mut status = status(3217, 1771.65, [412, 963, 1244, 2532]);
    status.overhead_percent = 1.9;
    average(&mut status, 559.0, 500);
    calls(&mut status, [552.5, 64.5, 0.4]);
    status.server = Some(server(counters(3218, [274.5, 67.5, 15.5, 137.5, 53.5])));
    status.metrics.push(Default::default());
    status
}

/// 20000 and 30000 requests a second, far too many.
pub(crate) fn late_points() -> [PerfStatus; 2] {
    let mut first = status(5752, 3017.99, [845, 2187, 3603, 7655]);
    first.load = LoadPoint::RequestRate(20000.0);
    first.client.delayed_request_count = 5749;
    first.send_request_rate = 3065.98;
    average(&mut first, 1306.0, 2132);
    calls(&mut first, [1290.0, 265.0, 0.3]);
    let mut work = counters(5755, [398.9, 148.9, 16.9, 194.9, 36.5]);
    work.execution_count = 4823;
    first.server = Some(server(work));

    let mut second = status(4635, 2546.49, [983, 2976, 4352, 7168]);
    second.load = LoadPoint::RequestRate(30000.0);
    average(&mut second, 1565.5, 3261);
    calls(&mut second, [1558.0, 106.0, 0.2]);
    let mut work = counters(4637, [735.5, 322.9, 22.5, 340.9, 49.5]);
    work.execution_count = 3178;
    second.server = Some(server(work));
    [first, second]
}

/// The run of the first seed document, and its settings.
pub(crate) fn seed_report() -> (PerfStatus, Settings) {
    let mut settings = Settings {
        protocol: Protocol::Grpc,
        verbosity: Verbosity::Verbose,
        percentile: Some(95),
        load: Load::Concurrency(Range { start: 4, end: 1, step: 1 }),
        ..settings()
    };
    settings.calls.asynchronous = true;
    let mut status = status(10070, 93.2384, [42808, 44314, 44660, 45685]);
    status.load = LoadPoint::Concurrency(4);
    status.stabilizing_latency_ns = nanos(44660.0);
    calls(&mut status, [42844.0, 2.0, 0.0]);
    let step = |count, times| server(counters(count, times));
    status.server = Some(ensemble(
        counters(10070, [42650.0, 0.0, 0.0, 0.0, 0.0]),
        [
            (
                "flair-ner-english-fast-viterbi-decoder",
                "",
                step(10070, [31653.0, 10221.0, 45.0, 21327.0, 52.0]),
            ),
            ("flair-ner-english-fast", "", step(10072, [4271.0, 751.0, 20.5, 2223.5, 1261.0])),
            (
                "flair-ner-english-fast-tokenization",
                "",
                step(10073, [6724.0, 40.0, 7.0, 6644.0, 29.0]),
            ),
        ],
    ));
    (status, settings)
}
