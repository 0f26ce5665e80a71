//! The text of /metrics as dashboards read it.

use super::*;
use crate::{BatchRecord, ModelStatistics, RequestRecord};

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
    memory: MemoryMetrics { limit_bytes: 1000, used_bytes: 10, refused: 3 },
};

/// The lines of one family, head included.
fn family<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let is_ours = |line: &&str| {
        let line = line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ");
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']))
    };
    text.lines().filter(is_ours).collect()
}

#[test]
fn families_come_in_order_even_without_models() {
    let text = render(&[], &PROCESS);
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(
        names,
        [
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
            "galatea_memory_budget_limit_bytes",
            "galatea_memory_budget_used_bytes",
            "galatea_memory_budget_refused_total",
            "galatea_build_info",
        ]
    );
    assert_eq!(
        family(&text, "galatea_memory_budget_refused_total")[2..],
        ["galatea_memory_budget_refused_total 3"]
    );
    let version = env!("CARGO_PKG_VERSION");
    let build =
        format!("galatea_build_info{{version=\"{version}\",triton_version=\"2.73.0\"}} 1\n");
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
fn figures_of_a_model() {
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
    let tags = BTreeMap::from([("team".to_owned(), "a \"b\"\\\n".to_owned())]);
    let model = ModelMetrics {
        namespace: "/models \"a\"",
        name: "simple",
        version: 3,
        tags: &tags,
        statistics: &counted.snapshot(),
        load_duration: Duration::from_micros(2_341_632),
    };
    let text = render(&[model], &PROCESS);
    let labels = r#"_team="a \"b\"\\\n",model="simple",namespace="/models \"a\"""#;
    for (name, expected) in [
        ("nv_inference_request_success", "2"),
        ("nv_inference_count", "8"),
        ("nv_inference_exec_count", "1"),
        ("nv_inference_request_duration_us", "24691"),
        ("nv_inference_queue_duration_us", "3"),
        ("nv_inference_pending_request_count", "1"),
        ("nv_model_load_duration_secs", "2.341632"),
    ] {
        let line = format!("{name}{{{labels},version=\"3\"}} {expected}");
        assert_eq!(family(&text, name).get(2), Some(&line.as_str()));
    }
    let failures = family(&text, "nv_inference_request_failure");
    let expected =
        [("REJECTED", 0), ("CANCELED", 0), ("BACKEND", 1), ("OTHER", 0)].map(|(reason, n)| {
            format!(
                "nv_inference_request_failure{{{labels},reason=\"{reason}\",version=\"3\"}} {n}"
            )
        });
    assert_eq!(failures[2..], expected);
}

#[test]
fn large_and_small_numbers_have_no_exponent() {
    let statistics = StatisticsSnapshot {
        inference_count: u64::MAX,
        success: DurationCount { count: 1, ns: 10_u64.pow(19) },
        ..StatisticsSnapshot::default()
    };
    let model = ModelMetrics {
        namespace: "",
        name: "m",
        version: 1,
        tags: &BTreeMap::new(),
        statistics: &statistics,
        load_duration: Duration::from_nanos(100),
    };
    let text = render(&[model], &PROCESS);
    let values: Vec<&str> =
        ["nv_inference_count", "nv_inference_request_duration_us", "nv_model_load_duration_secs"]
            .iter()
            .filter_map(|name| family(&text, name).get(2)?.split(' ').next_back())
            .collect();
    assert_eq!(values, ["18446744073709551615", "10000000000000000", "0.0000001"]);
}

#[test]
fn latency_counters_and_cpu_can_be_switched_off() {
    let quiet = ProcessMetrics { has_counter_latencies: false, cpu: None, ..PROCESS };
    let text = render(&[], &quiet);
    assert!(!text.contains("_duration_us") && !text.contains("nv_cpu"), "{text}");
    assert!(text.contains("nv_inference_exec_count"), "{text}");
}

#[test]
fn gpus_have_their_families_when_there_are_some() {
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
    let text = render(&[], &ProcessMetrics { gpus: vec![first, second], ..PROCESS });
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
    assert!(!render(&[], &PROCESS).contains("nv_gpu"), "none without GPUs");
}

#[test]
fn shared_metrics_are_those_published_last() {
    let shared = SharedGpuMetrics::default();
    let reader = shared.clone();
    assert_eq!(reader.latest(), []);
    shared.publish(vec![GpuMetrics::default()]);
    assert_eq!(reader.latest(), [GpuMetrics::default()]);
}
