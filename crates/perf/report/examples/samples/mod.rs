//! Runs that were never measured.

use std::collections::BTreeMap;

use galatea_perf_types::summary::{
    ClientTimes, FORMAT, Instability, Latency, Point, ServerTimes, Summary, TensorBytes, Trial,
    WindowPoint,
};

/// A server as a queue sees it.
#[derive(Clone, Copy)]
pub struct Machine {
    /// A request alone, in microseconds.
    pub service_us: f64,
    /// Inferences per second that it does not exceed.
    pub capacity: f64,
    /// How much longer the slow requests take.
    pub tail: f64,
}

pub const QUICK: Machine = Machine { service_us: 620.0, capacity: 9_400.0, tail: 1.5 };
pub const SLOW: Machine = Machine { service_us: 790.0, capacity: 7_300.0, tail: 2.3 };

/// Names of pages and their runs.
pub fn all() -> Vec<(&'static str, Vec<Summary>)> {
    let loads = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    let one = run("galatea 0.1.0", QUICK, &loads);
    let two = run("triton 2.51.0", SLOW, &loads);
    vec![
        ("one", vec![one.clone()]),
        ("two", vec![one.clone(), two.clone()]),
        ("ensemble", vec![ensemble("galatea 0.1.0", QUICK), ensemble("triton 2.51.0", SLOW)]),
        ("rate", vec![rates("galatea 0.1.0", QUICK), rates("triton 2.51.0", SLOW)]),
        ("empty", vec![Summary { points: Vec::new(), ..one.clone() }]),
        ("nothing", Vec::new()),
        ("single", vec![run("galatea 0.1.0", QUICK, &[8.0])]),
        (
            "many_points",
            vec![run("galatea 0.1.0", QUICK, &(1..=50).map(f64::from).collect::<Vec<_>>())],
        ),
        ("many_runs", many_runs()),
        ("hostile", vec![hostile(one.clone()), hostile(two)]),
        ("not_numbers", vec![not_numbers(one)]),
        ("extremes", vec![extremes()]),
        ("unstable", vec![unstable()]),
        (
            "many_loads",
            vec![run("galatea 0.1.0", QUICK, &(1..=40).map(f64::from).collect::<Vec<_>>()); 2],
        ),
        ("measured_alike", measured(&[AGAIN, STABLE])),
        ("measured_apart", measured(&[SLOW_MODEL, STABLE])),
    ]
}

/// Summaries of real runs: one model twice, and once more with a delay of 5 ms for its batches.
const STABLE: &str = include_str!("../../testdata/summaries/stable.json");
const AGAIN: &str = include_str!("../../testdata/summaries/again.json");
const SLOW_MODEL: &str = include_str!("../../testdata/summaries/slow.json");

fn measured(texts: &[&str]) -> Vec<Summary> {
    let read =
        |text| serde_json::from_str(text).unwrap_or_else(|error| panic!("not a summary: {error}"));
    texts.iter().copied().map(read).collect()
}

/// Five windows, of which the last three were merged and one failed before.
pub fn unstable() -> Summary {
    let mut run = run("galatea 0.1.0", QUICK, &[1.0, 2.0]);
    if let Some(point) = run.points.last_mut() {
        point.unstable = true;
        let windows = [(9_000.0, None), (8_000.0, Some(900.0)), (8_800.0, Some(820.0))];
        let last = [(7_000.0, Some(1_000.0)), (6_200.0, Some(1_300.0))];
        let trials = windows.into_iter().chain(last).enumerate();
        point.instability = Some(Instability {
            reason: "the last 3 windows differ by 42% in throughput, allowed are 10% (--stability-percentage)".into(),
            allowed_percent: 10.0,
            throughput_percent: Some(42.0),
            latency_percent: Some(58.0),
            latency_limit_ms: None,
            trials: trials
                .map(|(i, (throughput, latency_us))| Trial { throughput, latency_us, merged: i >= 2 })
                .collect(),
        });
    }
    run
}

pub fn run(label: &str, machine: Machine, concurrencies: &[f64]) -> Summary {
    let (name, version) = label.split_once(' ').unwrap_or((label, ""));
    Summary {
        format: FORMAT.into(),
        command:
            "galatea perf -m minilm_int8 -u localhost:8001 -i grpc --concurrency-range 1:32:2 \
                  --percentile=95 --shape input_ids:1,64 --html report.html --compare triton.json"
                .into(),
        label: label.into(),
        started_at: 1_785_160_980.0,
        model: "minilm_int8".into(),
        model_version: "1".into(),
        server_name: name.into(),
        server_version: version.into(),
        server_implementation: String::new(),
        protocol: "gRPC".into(),
        batch_size: 1,
        percentile: Some(95),
        shared_memory: Some("memfd".into()),
        tensor_bytes: Some(TensorBytes {
            inputs_per_request: 1_536,
            outputs_per_response: 98_304,
            uncounted_outputs: Vec::new(),
        }),
        points: concurrencies.iter().map(|c| concurrency(machine, *c)).collect(),
        warnings: Vec::new(),
    }
}

fn concurrency(machine: Machine, value: f64) -> Point {
    // A closed loop: it saturates smoothly, and Little's law gives the latency.
    let free = value / machine.service_us * 1e6;
    let throughput = free / (1.0 + (free / machine.capacity).powi(3)).cbrt();
    let average = value / throughput * 1e6;
    point("concurrency", value, throughput, average, machine)
}

fn point(mode: &str, value: f64, throughput: f64, average: f64, machine: Machine) -> Point {
    let windows = [-0.8, 0.5, 0.3].map(|noise| {
        let share = 1.0 + noise * (0.012 + 0.0011 * (value * 1.7).sin().abs() * 20.0);
        WindowPoint { throughput: throughput * share, latency_us: average * 1.3 / share }
    });
    let infer = machine.service_us * 0.62;
    let queue = (average - machine.service_us).max(0.0) * 0.9 + 9.0;
    Point {
        mode: mode.into(),
        value,
        unstable: false,
        instability: None,
        request_count: (throughput * 15.0) as u64,
        duration_s: 15.0,
        throughput,
        throughput_ci95: Some([throughput * 0.966, throughput * 1.034]),
        response_throughput: None,
        latency: latency(average, machine.tail),
        latency_ci95: Some([average * 1.3 * 0.97, average * 1.3 * 1.05]),
        scheduled_latency: None,
        delayed_request_count: 0,
        client: ClientTimes { send_us: 11.0, response_wait_us: average - 18.0, receive_us: 7.0 },
        server: Some(ServerTimes {
            model: "minilm_int8".into(),
            version: "1".into(),
            success_count: (throughput * 15.0) as u64,
            inference_count: (throughput * 15.0) as u64,
            execution_count: (throughput * 15.0 / value.clamp(1.0, 8.0)) as u64,
            request_us: queue + infer + 40.0,
            queue_us: queue,
            compute_input_us: 14.0,
            compute_infer_us: infer,
            compute_output_us: 9.0,
            ..ServerTimes::default()
        }),
        windows: windows.into(),
        overhead_percent: 1.4 + throughput * 0.0007,
        tool_cpu_us_per_request: 17.3,
    }
}

fn latency(average: f64, tail: f64) -> Latency {
    let shares = [("50", 0.94), ("90", 1.2), ("95", 1.3), ("99", 1.3 * tail), ("99.9", 2.0 * tail)];
    Latency {
        avg_us: average,
        std_us: average * 0.2 * tail,
        min_us: average * 0.71,
        max_us: average * 3.1 * tail,
        percentiles_us: shares.map(|(key, share)| (key.into(), average * share)).into(),
    }
}

fn rates(label: &str, machine: Machine) -> Summary {
    let rates = [1000.0, 2000.0, 4000.0, 6000.0, 7000.0, 8000.0];
    let points = rates.map(|rate| {
        let load = (rate / machine.capacity).min(0.995);
        let average = machine.service_us * (1.0 + load.powi(6) / (1.0 - load) * 0.4);
        let throughput = rate.min(machine.capacity);
        let mut point = point("request_rate", rate, throughput, average, machine);
        let stall = 1.0 + 9.0 * load.powi(8);
        point.scheduled_latency = Some(latency(average * stall, machine.tail));
        point.delayed_request_count = (rate * 15.0 - throughput * 15.0) as u64;
        point
    });
    let mut run = run(label, machine, &[]);
    run.command = "galatea perf -m minilm_int8 --request-rate-range 1000:8000:1000 --request-distribution poisson".into();
    run.points = points.into();
    run.warnings = vec![
        "at 8,000 requests/s 10,500 requests could not be sent when the schedule wanted them"
            .into(),
    ];
    run
}

fn ensemble(label: &str, machine: Machine) -> Summary {
    let mut run = run(label, machine, &[1.0, 2.0, 4.0, 8.0, 16.0]);
    run.model = "document_search".into();
    for point in &mut run.points {
        if let Some(server) = &mut point.server {
            let queue = server.queue_us;
            let step =
                |model: &str, infer: f64, queue: f64, composing: Vec<ServerTimes>| ServerTimes {
                    model: model.into(),
                    version: "1".into(),
                    request_us: queue + infer + 20.0 + 12.0,
                    queue_us: queue,
                    compute_input_us: 12.0,
                    compute_infer_us: infer,
                    compute_output_us: 8.0,
                    composing,
                    ..server.clone()
                };
            let embed = vec![
                step("tokenizer", 35.0, 4.0, Vec::new()),
                step("minilm_int8", server.compute_infer_us * 0.7, queue * 0.8, Vec::new()),
            ];
            let inner = ServerTimes {
                model: "embed_text".into(),
                version: "1".into(),
                request_us: embed.iter().map(|s| s.request_us).sum::<f64>() + 30.0,
                success_count: server.success_count,
                composing: embed,
                ..ServerTimes::default()
            };
            let steps = vec![inner, step("rank_candidates", 60.0, queue * 0.1, Vec::new())];
            *server = ServerTimes {
                model: "document_search".into(),
                version: "1".into(),
                success_count: server.success_count,
                inference_count: server.inference_count,
                execution_count: server.execution_count,
                request_us: steps.iter().map(|s| s.request_us).sum::<f64>() + 25.0,
                composing: steps,
                ..ServerTimes::default()
            };
            point.client.response_wait_us = server.request_us + 90.0;
        }
    }
    run
}

fn many_runs() -> Vec<Summary> {
    let loads: Vec<f64> = (0..7).map(|power| f64::from(1 << power)).collect();
    (0..6)
        .map(|i| {
            let grade = 1.0 + f64::from(i) * 0.17;
            let machine = Machine {
                service_us: QUICK.service_us * grade,
                capacity: QUICK.capacity / grade,
                tail: 1.2 + f64::from(i) * 0.4,
            };
            run(&format!("candidate {i}, ONNX runtime with {} threads", 1 << i), machine, &loads)
        })
        .collect()
}

/// Names that would break out of the page if anything forgot to escape them.
pub const HOSTILE: &str =
    "</script><img src=x onerror=\"alert('1')\">&amp;<![CDATA[\u{0}\u{202e}]]>";

fn hostile(mut run: Summary) -> Summary {
    let long = format!("{HOSTILE}_{}", "a_very_long_model_name".repeat(6));
    run.model.clone_from(&long);
    run.label = HOSTILE.into();
    run.command = format!("galatea perf -m '{long}' --input-data \"{HOSTILE}\"");
    run.server_name = HOSTILE.into();
    run.server_version = HOSTILE.into();
    run.server_implementation = HOSTILE.into();
    run.protocol = HOSTILE.into();
    run.model_version = HOSTILE.into();
    run.shared_memory = Some(HOSTILE.into());
    run.tensor_bytes = Some(TensorBytes {
        inputs_per_request: u64::MAX,
        outputs_per_response: 0,
        uncounted_outputs: vec![HOSTILE.into(), long.clone()],
    });
    run.warnings = vec![HOSTILE.into(), long.clone()];
    for point in &mut run.points {
        let step = ServerTimes {
            model: long.clone(),
            version: HOSTILE.into(),
            request_us: 80.0,
            compute_infer_us: 60.0,
            ..ServerTimes::default()
        };
        if let Some(server) = &mut point.server {
            server.model = HOSTILE.into();
            server.composing = vec![step];
        }
        point.latency.percentiles_us.insert(HOSTILE.into(), 900.0);
    }
    if let Some(point) = run.points.last_mut() {
        point.mode = HOSTILE.into();
    }
    run
}

/// The results of a division by zero.
fn not_numbers(mut run: Summary) -> Summary {
    let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0];
    for (point, bad) in run.points.iter_mut().zip(bad) {
        point.latency = Latency {
            avg_us: bad,
            std_us: bad,
            min_us: bad,
            max_us: bad,
            percentiles_us: BTreeMap::from([
                ("50".into(), bad),
                ("95".into(), bad),
                ("99".into(), bad),
            ]),
        };
        point.throughput_ci95 = Some([bad, bad]);
        point.latency_ci95 = Some([bad, bad]);
        point.client = ClientTimes { send_us: bad, response_wait_us: bad, receive_us: bad };
        point.overhead_percent = bad;
        point.tool_cpu_us_per_request = bad;
        point.duration_s = bad;
        point.windows = vec![WindowPoint { throughput: bad, latency_us: bad }; 3];
        if let Some(server) = &mut point.server {
            server.queue_us = bad;
            server.request_us = bad;
        }
    }
    if let Some(point) = run.points.first_mut() {
        point.throughput = f64::NAN;
    }
    run.started_at = f64::NAN;
    run
}

/// From nanoseconds to hours, from one request a day to more than there are.
fn extremes() -> Summary {
    let mut run = run("extremes", QUICK, &[1.0, 1000.0, 1_000_000.0, 1e12]);
    let scales = [(1e-5, 0.0004), (1.0, 35.0), (5e6, 2e6), (4e14, 3e10)];
    for (point, (throughput, us)) in run.points.iter_mut().zip(scales) {
        point.throughput = throughput;
        point.throughput_ci95 = Some([-throughput, throughput * 3.0]);
        point.latency = latency(us, 2.0);
        point.latency_ci95 = Some([us * 0.2, us * 4.0]);
        point.client.response_wait_us = us;
        for (i, window) in point.windows.iter_mut().enumerate() {
            window.throughput = throughput * i as f64;
        }
    }
    run
}
