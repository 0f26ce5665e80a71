//! Summaries of points made by hand.

use galatea_perf_types::model::ModelInfo;

use super::*;
use crate::tests::samples;

fn run() -> Run {
    Run {
        server: ServerMetadata {
            name: "triton".to_owned(),
            version: "2.51.0".to_owned(),
            ..ServerMetadata::default()
        },
        command: "perf_analyzer -m simple".to_owned(),
        started_at: 1_700_000_000.5,
        tensor_bytes: tensor_bytes(),
        warnings: vec!["late".to_owned()],
    }
}

fn tensor_bytes() -> TensorBytes {
    TensorBytes { inputs_per_request: 128, ..TensorBytes::default() }
}

fn only_point(status: &PerfStatus, settings: &Settings, model: &ModelInfo) -> Point {
    let summary = summarize(std::slice::from_ref(status), settings, model, run());
    summary.points.into_iter().next().unwrap()
}

fn assert_close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-6, "{value}, not {expected}");
}

#[test]
fn the_summary_describes_the_run() {
    let settings = Settings { percentile: Some(95), ..samples::settings() };
    let summary = summarize(&[], &settings, &samples::model(), run());
    assert_eq!(summary.format, FORMAT);
    assert_eq!(summary.label, "triton 2.51.0");
    assert_eq!((summary.protocol.as_str(), summary.percentile), ("http", Some(95)));
    assert_eq!((summary.model.as_str(), summary.batch_size), ("simple", 1));
    assert_eq!(summary.warnings, ["late"]);
    let implementation = "galatea 0.1.0".to_owned();
    let ours = Run { server: ServerMetadata { implementation, ..run().server }, ..run() };
    assert_eq!(summarize(&[], &settings, &samples::model(), ours).label, "galatea 0.1.0");
    let named = Settings { label: Some("before".to_owned()), ..settings };
    assert_eq!(summarize(&[], &named, &samples::model(), run()).label, "before");
}

#[test]
fn bytes_of_tensors_are_reported_unless_they_are_json() {
    let mut settings = samples::settings();
    let found = |settings: &Settings| {
        let summary = summarize(&[], settings, &samples::model(), run());
        (summary.shared_memory.unwrap(), summary.tensor_bytes)
    };
    assert_eq!(found(&settings), ("none".to_owned(), Some(tensor_bytes())));
    settings.data.output_format = TensorFormat::Json;
    assert_eq!(found(&settings), ("none".to_owned(), None));
    let grpc = Settings { protocol: Protocol::Grpc, ..settings.clone() };
    assert_eq!(found(&grpc).1, Some(tensor_bytes()), "the format is for HTTP");
    settings.shared_memory = SharedMemory::Memfd;
    assert_eq!(found(&settings), ("memfd".to_owned(), Some(tensor_bytes())));
}

#[test]
fn the_summary_has_more_percentiles_than_the_text_report() {
    let mut status = samples::http_point();
    status.client.latencies = (1..=1001).map(|n| n * 1000).collect();
    let settings = Settings { percentile: Some(75), ..samples::settings() };
    let latency = only_point(&status, &settings, &samples::model()).latency;
    let percentiles: Vec<(&str, f64)> =
        latency.percentiles_us.iter().map(|(name, us)| (name.as_str(), *us)).collect();
    let expected = [
        ("50", 501.0),
        ("75", 751.0),
        ("90", 901.0),
        ("95", 951.0),
        ("99", 991.0),
        ("99.9", 1000.0),
    ];
    assert_eq!(percentiles, expected);
    assert_close(latency.avg_us, 501.0);
    assert_close(latency.std_us, 289.108_111_3);
    assert_eq!((latency.min_us, latency.max_us), (1.0, 1001.0));
}

#[test]
fn percentiles_equal_those_of_the_text_report() {
    // Of 10 values: index 4 (4.5 + 0.5 cut), 8 (8.1 + 0.5), 9, 9.
    let sorted: Vec<Nanos> = (0..10).map(|n| n * 10).collect();
    let picked = [50.0, 90.0, 95.0, 99.0].map(|percent| percentile(&sorted, percent).unwrap());
    assert_eq!(picked, [50, 80, 90, 90]);
    assert_eq!(percentile(&[7], 99.9), Some(7));
    assert_eq!(percentile(&[], 50.0), None);
}

#[test]
fn fewer_than_two_requests_have_no_deviation() {
    let mut status = samples::status(1, 1.0, [1; 4]);
    let point = |status: &PerfStatus| only_point(status, &samples::settings(), &samples::model());
    assert!(point(&status).latency.percentiles_us.is_empty());
    status.client.latencies = vec![5_500];
    let latency = point(&status).latency;
    assert_eq!((latency.avg_us, latency.std_us), (5.5, 0.0));
}

#[test]
fn windows_give_confidence_intervals() {
    let mut status = samples::http_point();
    let point = |status: &PerfStatus| only_point(status, &samples::settings(), &samples::model());
    assert_eq!(point(&status).throughput_ci95, None);
    status.windows = [(10.0, 3000), (11.0, 4000), (12.0, 5000)]
        .map(|(infer_per_sec, latency_ns)| WindowFigures {
            infer_per_sec,
            latency_ns,
            duration_ns: 1,
        })
        .into();
    let point = point(&status);
    let [low, high] = point.throughput_ci95.unwrap();
    assert!(low < 8.52 && low > 8.51 && high > 13.48 && high < 13.49, "{low} {high}");
    let [low, high] = point.latency_ci95.unwrap();
    assert!(low < 1.52 && low > 1.51 && high > 6.48 && high < 6.49, "{low} {high}");
    assert_eq!(point.windows.len(), 3);
    assert_eq!(point.windows[2].latency_us, 5.0);
}

#[test]
fn latencies_from_the_scheduled_time_are_separate() {
    let mut status = samples::late_points()[0].clone();
    status.client.latencies = vec![1000, 2000];
    status.scheduled_latencies = vec![9000, 11000];
    let point = only_point(&status, &samples::settings(), &samples::model());
    assert_eq!((point.mode.as_str(), point.value), ("request_rate", 20000.0));
    assert_eq!(point.latency.max_us, 2.0);
    assert_eq!(point.scheduled_latency.unwrap().avg_us, 10.0);
    assert_eq!(point.delayed_request_count, 5749);
}

#[test]
fn the_overhead_of_the_tool_is_reported() {
    let mut status = samples::http_point();
    status.tool_cpu_ns = 3136 * 20_500;
    status.overhead_percent = 12.5;
    let point = only_point(&status, &samples::settings(), &samples::model());
    assert_close(point.tool_cpu_us_per_request, 20.5);
    assert_eq!(point.overhead_percent, 12.5);
    assert_close(point.client.response_wait_us, 569.0 - 70.9 - 0.3);
    assert_eq!(point.response_throughput, None);
    let model = ModelInfo { decoupled: true, ..samples::model() };
    let point = only_point(&samples::decoupled_point(), &samples::settings(), &model);
    assert_eq!(point.response_throughput, Some(625.63));
}

#[test]
fn the_times_of_an_ensemble_are_the_sums_of_its_steps() {
    let status = samples::ensemble_point();
    let server = only_point(&status, &samples::settings(), &samples::model()).server.unwrap();
    assert_eq!(server.model, "simple");
    assert_close(server.request_us, 622.5);
    assert_close(server.queue_us, 57.9 + 59.9);
    assert_close(server.compute_infer_us, 133.5 + 154.7);
    let steps: Vec<&str> = server.composing.iter().map(|step| step.model.as_str()).collect();
    assert_eq!(steps, ["plain", "simple"]);
    assert_eq!(server.composing[0].version, "1");
    assert_close(server.composing[0].compute_output_us, 150.8);
    assert_eq!(server.composing[0].success_count, 2172);
}

#[test]
fn a_summary_round_trips() {
    let summary =
        summarize(&samples::percentile_points(), &samples::settings(), &samples::model(), run());
    let text = serde_json::to_string(&summary).unwrap();
    assert!(!text.contains("null"), "{text}");
    let back: Summary = serde_json::from_str(&text).unwrap();
    let values = |summary: &Summary| {
        let points = summary.points.iter();
        points.map(|point| (point.value, point.throughput, point.request_count)).collect::<Vec<_>>()
    };
    assert_eq!(values(&back), [(1.0, 2062.51, 3737), (3.0, 4310.38, 7941)]);
    assert_eq!(values(&back), values(&summary));
    assert_eq!(back.points[0].server.as_ref().unwrap().queue_us, 67.5);
}

#[test]
fn only_unstable_points_are_marked() {
    let stable = only_point(&samples::http_point(), &samples::settings(), &samples::model());
    assert!(!serde_json::to_string(&stable).unwrap().contains("unstable"));
    let status = PerfStatus { is_stable: false, ..samples::http_point() };
    let unstable = only_point(&status, &samples::settings(), &samples::model());
    let text = serde_json::to_string(&unstable).unwrap();
    assert!(text.contains("\"unstable\":true"), "{text}");
    assert!(serde_json::from_str::<Point>(&text).unwrap().unstable);
}

#[test]
fn an_unstable_point_lists_every_window_and_the_reason() {
    let trial = |infer_per_sec: f64, latency_ns| status::Trial { infer_per_sec, latency_ns };
    let why = status::Instability {
        allowed: 0.1,
        needed: 3,
        throughput: Some(0.5),
        latency: Some(0.05),
        limit_ms: None,
        trials: vec![trial(0.0, None), trial(10.0, Some(3000)), trial(15.0, Some(3150))],
    };
    let merged = WindowFigures { infer_per_sec: 10.0, latency_ns: 3000, duration_ns: 1 };
    let status = PerfStatus {
        is_stable: false,
        windows: vec![merged; 2],
        instability: Some(why),
        ..samples::http_point()
    };
    let point = only_point(&status, &samples::settings(), &samples::model());
    let text = serde_json::to_string(&point).unwrap();
    let why = serde_json::from_str::<Point>(&text).unwrap().instability.unwrap();
    assert!(why.reason.starts_with("the last 3 windows differ by 50% in throughput"), "{text}");
    assert_eq!((why.allowed_percent, why.throughput_percent), (10.0, Some(50.0)));
    let trials: Vec<_> =
        why.trials.iter().map(|t| (t.throughput, t.latency_us, t.merged)).collect();
    assert_eq!(trials, [(0.0, None, false), (10.0, Some(3.0), true), (15.0, Some(3.15), true)]);
}
