//! The text of /metrics as dashboards read it.

mod cache;

use super::*;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

use galatea_gpu::{GpuMetrics, SharedGpuMetrics};
use galatea_types::Clock;

use crate::families::{Family, Kind};
use crate::{
    BatchRecord, DistributionSettings, DistributionsSnapshot, DurationCount, FailureReason,
    ModelStatistics, RefusalReason, RequestRecord, StatisticsSnapshot,
};

fn page(models: &[ModelMetrics<'_>], process: &ProcessMetrics) -> String {
    render(models, process, &Figures::default())
}

/// A version of `m` with these figures.
fn metrics<'a>(
    statistics: &'a StatisticsSnapshot,
    distributions: &'a DistributionsSnapshot,
    tags: &'a BTreeMap<String, String>,
) -> ModelMetrics<'a> {
    ModelMetrics {
        namespace: "",
        name: "m",
        version: 1,
        tags,
        statistics,
        distributions,
        load_duration: Duration::from_nanos(100),
        in_flight: 4,
        instances: Some(InstanceCounts { all: 3, working: 2 }),
        batch_delay: Some(Duration::from_micros(250)),
        admission_limit: Some(7),
        load: Some(0.25),
        has_cache: false,
    }
}

const STATES: SequenceMemoryMetrics =
    SequenceMemoryMetrics { limit_bytes: 500, used_bytes: 8, gave_way: 2, refused: 1 };

const PROCESS: ProcessMetrics = ProcessMetrics {
    has_counter_latencies: true,
    pinned_pool_total_bytes: 268_435_456,
    pinned_pool_used_bytes: 0,
    cpu: Some(CpuMetrics {
        utilization: 0.015,
        memory_total_bytes: 25_276_502_016,
        memory_used_bytes: 845_815_808,
    }),
    gpus: Vec::new(),
    memory: MemoryMetrics { limit_bytes: 1000, used_bytes: 10, refused: 3, sequences: STATES },
    cache: None,
};

/// The lines of one family, head included.
fn family<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let is_ours = |line: &&str| {
        let line = line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ");
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']))
    };
    text.lines().filter(is_ours).collect()
}

/// Families of a page without models, in order.
const FAMILIES: &[&str] = &[
    "nv_inference_request_success",
    "nv_inference_request_failure",
    "nv_inference_count",
    "nv_inference_exec_count",
    "nv_inference_request_duration_us",
    "nv_inference_queue_duration_us",
    "nv_inference_compute_input_duration_us",
    "nv_inference_compute_infer_duration_us",
    "nv_inference_compute_output_duration_us",
    "nv_inference_pending_request_count",
    "nv_model_load_duration_secs",
    "nv_pinned_memory_pool_total_bytes",
    "nv_pinned_memory_pool_used_bytes",
    "nv_cpu_utilization",
    "nv_cpu_memory_total_bytes",
    "nv_cpu_memory_used_bytes",
    "galatea_inference_requests_refused_total",
    "galatea_inference_requests_in_flight",
    "galatea_model_instances",
    "galatea_model_instances_working",
    "galatea_model_instance_restarts_total",
    "galatea_executions_on_connection_threads_total",
    "galatea_model_load",
    "galatea_load",
    "galatea_requests_waiting",
    "galatea_requests_running",
    "galatea_memory_budget_limit_bytes",
    "galatea_memory_budget_used_bytes",
    "galatea_memory_budget_refused_total",
    "galatea_sequence_states_limit_bytes",
    "galatea_sequence_states_used_bytes",
    "galatea_sequence_states_refused_total",
    "galatea_sequences_gave_way_total",
    "process_cpu_seconds_total",
    "process_start_time_seconds",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
    "process_open_fds",
    "process_max_fds",
    "galatea_build_info",
];

#[test]
fn families_are_in_order_even_without_models() {
    let text = page(&[], &PROCESS);
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(names, FAMILIES);
    assert_eq!(
        family(&text, "galatea_memory_budget_refused_total")[2..],
        ["galatea_memory_budget_refused_total 3"]
    );
    assert_eq!(
        family(&text, "galatea_sequences_gave_way_total")[2..],
        ["galatea_sequences_gave_way_total 2"]
    );
    let version = env!("CARGO_PKG_VERSION");
    let build =
        format!("galatea_build_info{{version=\"{version}\",triton_version=\"2.74.0\"}} 1\n");
    assert!(text.ends_with(&build), "{text}");
    assert_eq!(
        family(&text, "nv_cpu_utilization"),
        [
            "# HELP nv_cpu_utilization CPU utilization rate [0.0 - 1.0]",
            "# TYPE nv_cpu_utilization gauge",
            "nv_cpu_utilization 0.015",
        ]
    );
}

#[test]
fn the_short_page_has_no_family_with_a_model() {
    let mut figures = Figures::default();
    figures.set(&families::CONNECTIONS, 7_u32);
    let counts = ServerCounts { load: 0.5, waiting: 3, running: 4 };
    let text = render_server(counts, PROCESS.memory, &figures);
    for line in [
        "galatea_load 0.5",
        "galatea_requests_waiting 3",
        "galatea_requests_running 4",
        "galatea_connections_open 7",
        "galatea_memory_budget_used_bytes 10",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} is missing in {text}");
    }
    assert!(!text.contains("model="), "{text}");
}

#[test]
fn a_model_has_all_its_metrics() {
    let counted = ModelStatistics::default();
    let batch = BatchRecord { batch_size: 8, inferences: 8, ..BatchRecord::default() };
    let request = RequestRecord {
        total: Duration::from_nanos(12_345_678),
        queue: Duration::from_nanos(1_999),
        ..RequestRecord::default()
    };
    counted.record_execution(&batch, [request, request]);
    counted.record_failure(FailureReason::Backend, Duration::ZERO);
    counted.pending_up();
    counted.record_refusal(RefusalReason::QueueTimeout);
    counted.record_restart();
    counted.record_execution_in_place();
    let tags = BTreeMap::from([("team".to_owned(), "a \"b\"\\\n".to_owned())]);
    let (statistics, distributions) = counted.scrape();
    let model = ModelMetrics {
        namespace: "/models \"a\"",
        name: "simple",
        version: 3,
        load_duration: Duration::from_micros(2_341_632),
        ..metrics(&statistics, &distributions, &tags)
    };
    let text = page(&[model], &PROCESS);
    let labels = r#"_team="a \"b\"\\\n",model="simple",namespace="/models \"a\"""#;
    for (name, expected) in [
        ("nv_inference_request_success", "2"),
        ("nv_inference_count", "8"),
        ("nv_inference_exec_count", "1"),
        ("nv_inference_request_duration_us", "24691"),
        ("nv_inference_queue_duration_us", "3"),
        ("nv_inference_pending_request_count", "1"),
        ("nv_model_load_duration_secs", "2.341632"),
        ("galatea_inference_requests_in_flight", "4"),
        ("galatea_model_instances", "3"),
        ("galatea_model_instances_working", "2"),
        ("galatea_model_instance_restarts_total", "1"),
        ("galatea_executions_on_connection_threads_total", "1"),
        ("galatea_model_load", "0.25"),
    ] {
        let line = format!("{name}{{{labels},version=\"3\"}} {expected}");
        assert_eq!(family(&text, name).get(2), Some(&line.as_str()));
    }
    let worse = ModelMetrics { name: "worse", load: Some(1.5), ..model };
    let ensemble = ModelMetrics { load: None, ..model };
    let of_all = page(&[model, worse, ensemble], &PROCESS);
    let sums = ["galatea_load 1.5", "galatea_requests_waiting 2", "galatea_requests_running 6"];
    assert!(sums.iter().all(|sum| of_all.lines().any(|line| line == *sum)), "{of_all}");
    assert_eq!(family(&of_all, "galatea_model_load").len(), 2 + 2);
    let failures = family(&text, "nv_inference_request_failure");
    let expected =
        [("REJECTED", 0), ("CANCELED", 0), ("BACKEND", 1), ("OTHER", 0)].map(|(reason, n)| {
            format!(
                "nv_inference_request_failure{{{labels},reason=\"{reason}\",version=\"3\"}} {n}"
            )
        });
    assert_eq!(failures[2..], expected);
    let refused = family(&text, "galatea_inference_requests_refused_total");
    let line = format!("{{{labels},reason=\"queue_timeout\",version=\"3\"}} 1");
    assert_eq!(refused.len(), 2 + RefusalReason::ALL.len());
    assert!(refused[3].ends_with(&line), "{refused:?}");
}

#[test]
fn numbers_have_no_exponent() {
    let statistics = StatisticsSnapshot {
        inference_count: u64::MAX,
        success: DurationCount { count: 1, ns: 10_u64.pow(19) },
        ..StatisticsSnapshot::default()
    };
    let (tags, distributions) = (BTreeMap::new(), DistributionsSnapshot::default());
    let model = metrics(&statistics, &distributions, &tags);
    let text = page(&[model], &PROCESS);
    let values: Vec<&str> =
        ["nv_inference_count", "nv_inference_request_duration_us", "nv_model_load_duration_secs"]
            .iter()
            .filter_map(|name| family(&text, name).get(2)?.split(' ').next_back())
            .collect();
    assert_eq!(values, ["18446744073709551615", "10000000000000000", "0.0000001"]);
}

#[test]
fn latency_and_cpu_metrics_can_be_switched_off() {
    let quiet = ProcessMetrics { has_counter_latencies: false, cpu: None, ..PROCESS };
    let text = page(&[], &quiet);
    assert!(!text.contains("_duration_us") && !text.contains("nv_cpu"), "{text}");
    assert!(text.contains("nv_inference_exec_count"), "{text}");
}

#[test]
fn gpu_metrics_appear_with_gpus() {
    let first = GpuMetrics {
        uuid: "GPU-one".to_owned(),
        utilization: Some(0.37),
        memory_total_bytes: Some(85_520_809_984),
        memory_used_bytes: Some(0),
        power_usage_watts: Some(101.5),
        power_limit_watts: Some(700.0),
        energy_joules: Some(12.25),
    };
    let second = GpuMetrics { uuid: "GPU-two".to_owned(), ..GpuMetrics::default() };
    let text = page(&[], &ProcessMetrics { gpus: vec![first, second], ..PROCESS });
    let gpus: Vec<&str> =
        text.lines().filter(|line| line.contains("nv_gpu") || line.contains("nv_energy")).collect();
    assert_eq!(
        gpus,
        [
            "# HELP nv_energy_consumption GPU energy consumption in joules since the Triton Server started",
            "# TYPE nv_energy_consumption counter",
            "nv_energy_consumption{gpu_uuid=\"GPU-one\"} 12.25",
            "# HELP nv_gpu_utilization GPU utilization rate [0.0 - 1.0)",
            "# TYPE nv_gpu_utilization gauge",
            "nv_gpu_utilization{gpu_uuid=\"GPU-one\"} 0.37",
            "# HELP nv_gpu_memory_total_bytes GPU total memory, in bytes",
            "# TYPE nv_gpu_memory_total_bytes gauge",
            "nv_gpu_memory_total_bytes{gpu_uuid=\"GPU-one\"} 85520809984",
            "# HELP nv_gpu_memory_used_bytes GPU used memory, in bytes",
            "# TYPE nv_gpu_memory_used_bytes gauge",
            "nv_gpu_memory_used_bytes{gpu_uuid=\"GPU-one\"} 0",
            "# HELP nv_gpu_power_usage GPU power usage in watts",
            "# TYPE nv_gpu_power_usage gauge",
            "nv_gpu_power_usage{gpu_uuid=\"GPU-one\"} 101.5",
            "# HELP nv_gpu_power_limit GPU power management limit in watts",
            "# TYPE nv_gpu_power_limit gauge",
            "nv_gpu_power_limit{gpu_uuid=\"GPU-one\"} 700",
        ]
    );
    assert!(is_server_family("nv_energy_consumption") && is_server_family("nv_gpu_power_limit"));
    assert!(!page(&[], &PROCESS).contains("nv_gpu"), "none without GPUs");
}

#[test]
fn readers_see_the_latest_published_gpu_metrics() {
    let shared = SharedGpuMetrics::default();
    let reader = shared.clone();
    assert_eq!(reader.latest(), []);
    shared.publish(vec![GpuMetrics::default()]);
    assert_eq!(reader.latest(), [GpuMetrics::default()]);
}

/// Of a decoupled model, with all that can be recorded.
fn everything() -> ModelStatistics {
    let settings = DistributionSettings {
        has_histograms: true,
        has_cache: false,
        quantiles: Some(Arc::from([0.5, 0.99])),
        bounds: BTreeMap::new(),
    };
    ModelStatistics::new(&settings, Clock::system())
}

#[test]
fn histograms_and_summaries_follow_the_gauges() {
    let ((statistics, distributions), tags) = (everything().scrape(), BTreeMap::new());
    let text = page(&[metrics(&statistics, &distributions, &tags)], &PROCESS);
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let from = names.iter().position(|n| n.starts_with("nv_cpu_memory_used")).expect("there") + 1;
    assert_eq!(
        names[from..from + 12],
        [
            "nv_inference_first_response_histogram_ms histogram",
            "nv_inference_request_summary_us summary",
            "nv_inference_queue_summary_us summary",
            "nv_inference_compute_input_summary_us summary",
            "nv_inference_compute_infer_summary_us summary",
            "nv_inference_compute_output_summary_us summary",
            "galatea_inference_request_duration_seconds histogram",
            "galatea_inference_queue_duration_seconds histogram",
            "galatea_inference_compute_input_duration_seconds histogram",
            "galatea_inference_compute_infer_duration_seconds histogram",
            "galatea_inference_compute_output_duration_seconds histogram",
            "galatea_inference_batch_size histogram",
        ]
    );
}

#[test]
fn a_model_has_its_distributions() {
    let counted = everything();
    let request = |micros| RequestRecord {
        total: Duration::from_micros(micros),
        queue: Duration::from_nanos(2_900),
        ..RequestRecord::default()
    };
    let batch = BatchRecord { batch_size: 3, inferences: 3, ..BatchRecord::default() };
    counted.record_execution(&batch, [request(40), request(60), request(700)]);
    counted.record_first_response(Duration::from_micros(500_900));
    let (statistics, distributions) = counted.scrape();
    let tags = BTreeMap::new();
    let text = page(&[metrics(&statistics, &distributions, &tags)], &PROCESS);
    let lines = |name: &str| -> Vec<&str> {
        let own = |line: &&str| line.starts_with(name);
        text.lines()
            .filter(own)
            .filter_map(|l| l.split_once("version=\"1\""))
            .map(|l| l.1)
            .collect()
    };
    assert_eq!(
        lines("nv_inference_first_response_histogram_ms"),
        [
            "} 1",
            "} 500",
            ",le=\"100\"} 0",
            ",le=\"500\"} 1",
            ",le=\"2000\"} 1",
            ",le=\"5000\"} 1",
            ",le=\"+Inf\"} 1"
        ]
    );
    assert_eq!(
        lines("nv_inference_request_summary_us"),
        ["} 3", "} 800", ",quantile=\"0.5\"} 60", ",quantile=\"0.99\"} 695"]
    );
    assert_eq!(lines("nv_inference_queue_summary_us")[1], "} 6", "whole microseconds each");
    let durations = lines("galatea_inference_request_duration_seconds");
    assert_eq!(durations[..4], ["} 3", "} 0.0008", ",le=\"0.00005\"} 1", ",le=\"0.0001\"} 2"]);
    assert_eq!(durations.last(), Some(&",le=\"+Inf\"} 3"));
    let sizes = lines("galatea_inference_batch_size");
    assert_eq!(sizes[..5], ["} 1", "} 3", ",le=\"1\"} 0", ",le=\"2\"} 0", ",le=\"4\"} 1"]);
    assert!(!page(&[], &PROCESS).contains("histogram"), "off by default");
}

#[test]
fn a_model_without_requests_has_distributions_too() {
    let (statistics, distributions) = everything().scrape();
    let tags = BTreeMap::new();
    let text = page(&[metrics(&statistics, &distributions, &tags)], &PROCESS);
    assert!(text.contains("nv_inference_queue_summary_us_count{model=\"m\",version=\"1\"} 0\n"));
    assert!(text.contains(
        "nv_inference_queue_summary_us{model=\"m\",version=\"1\",quantile=\"0.5\"} Nan\n"
    ));
    assert!(text.contains(
        "galatea_inference_batch_size_bucket{model=\"m\",version=\"1\",le=\"+Inf\"} 0\n"
    ));
}

#[test]
fn metrics_are_consistent_while_requests_are_counted() {
    let counted = everything();
    let request = RequestRecord { total: Duration::from_micros(64), ..RequestRecord::default() };
    let batch = BatchRecord { batch_size: 2, inferences: 2, ..BatchRecord::default() };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..3000).for_each(|_| counted.record_execution(&batch, [request; 2])));
        }
        let mut last = 0;
        while last < 18_000 {
            let (s, d) = counted.scrape();
            let histograms = d.histograms.expect("on");
            assert!(histograms.phases.iter().all(|phase| phase.count() == s.success.count));
            assert_eq!(histograms.batch_size.count(), s.execution_count);
            let [whole, ..] = d.summaries.expect("on");
            assert_eq!((whole.count, whole.micros * 1000), (s.success.count, s.success.ns));
            assert!((histograms.phases[0].sum() * 1e6 - whole.micros as f64).abs() < 0.1);
            assert!(s.success.count >= last, "counters only grow");
            last = s.success.count;
        }
    });
}

#[test]
fn metric_names_follow_the_conventions_of_prometheus() {
    let mut names = Vec::new();
    for family in families::all() {
        let Family { name, kind, help, labels, .. } = family;
        assert!(!help.is_empty() && !help.contains('\n'), "{name}");
        assert!(labels.iter().all(|label| !name.contains(&format!("_by_{label}"))), "{name}");
        names.push(name);
        let Some(own) = name.strip_prefix("galatea_") else {
            // The last are the names of client libraries.
            assert!(name.starts_with("nv_") || name.starts_with("process_"), "{name}");
            continue;
        };
        assert_eq!(*kind == Kind::Counter, own.ends_with("_total"), "{name}");
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(own.chars().all(is_plain) && !own.contains("__"), "{name}");
        for wrong in ["_count", "_sum", "_bucket", "_us", "_ms", "_millis", "_micros", "_kb", "_mb"]
        {
            assert!(!own.ends_with(wrong), "{name}: {wrong} is reserved or no base unit");
        }
        for kind in ["counter", "gauge", "histogram", "summary"] {
            assert!(!own.contains(kind), "{name}: a name does not say its type");
        }
        assert_eq!(own.contains("duration"), own.ends_with("_seconds"), "{name}");
        assert!(!own.contains("bytes") || own.ends_with("_bytes"), "{name}");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name is there once");
}

#[test]
fn every_rendered_family_is_in_the_reference() {
    let gpu = GpuMetrics { uuid: "GPU-one".to_owned(), ..GpuMetrics::default() };
    let mut figures = Figures::default();
    families::FIGURES.iter().for_each(|family| figures.set(family, 1_u64));
    let ((statistics, distributions), tags) = (everything().scrape(), BTreeMap::new());
    let model = metrics(&statistics, &distributions, &tags);
    let of_cache = cache::cached().scrape();
    let cached = ModelMetrics { has_cache: true, ..metrics(&of_cache.0, &of_cache.1, &tags) };
    let cache = Some(CacheMetrics::default());
    let process = ProcessMetrics { gpus: vec![gpu], cache, ..PROCESS };
    let text = render(&[model, cached], &process, &figures);
    let page = reference();
    let shown: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    for family in &shown {
        let (name, _) = family.split_once(' ').expect("two words");
        assert!(page.contains(&format!("| `{name}` | ")), "{name}");
    }
    assert_eq!(shown.len(), families::all().count(), "and the other way round");
}
