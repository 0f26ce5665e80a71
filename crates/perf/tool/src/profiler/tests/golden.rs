//! The report of every mode.

use galatea_client::{CountAndTime, Protocol};
use galatea_perf_types::{
    model::{ComposingModel, SchedulingKind},
    settings::{Distribution, Load, MetricsSettings, Range, Search, Verbosity, Window},
};

use super::{
    fake::{BEGIN, FakeModel, MICRO, MILLI, SECOND, Sent, Served, after, per_request},
    fake_run::{FakeRun, jitter},
};

fn step(name: &str, composing: Vec<ComposingModel>) -> ComposingModel {
    ComposingModel { name: name.into(), version: String::new(), composing }
}

fn fake_model(name: &'static str, times: [u64; 5]) -> FakeModel {
    FakeModel { name, version: "1", per_request: per_request(times) }
}

/// An ensemble whose own counters have no compute times.
fn fake_ensemble(name: &'static str, total: u64) -> FakeModel {
    let mut per_request = per_request([total, 0, 0, 0, 0]);
    per_request.execution_count = 0;
    FakeModel { name, version: "1", per_request }
}

#[test]
fn output_equals_the_golden_file_for_concurrency_average() {
    let outcome = FakeRun::steady().check("concurrency_average");
    let [point] = outcome.points.as_slice() else { panic!("{outcome:?}") };
    assert_eq!(point.windows.len(), 3);
    assert_eq!(point.tool_cpu_ns, 3 * 1200 * MILLI / 5);
    assert!(point.scheduled_latencies.is_empty() && outcome.profile.is_empty());
}

#[test]
fn output_equals_the_golden_file_for_concurrency_percentile_verbose() {
    let mut fake_run = FakeRun::steady().concurrency(4, 4, 1);
    fake_run.settings.percentile = Some(95);
    fake_run.settings.verbosity = Verbosity::Verbose;
    fake_run.settings.protocol = Protocol::Grpc;
    fake_run.check("concurrency_percentile_verbose");
}

#[test]
fn output_equals_the_golden_file_for_average_verbose() {
    let mut fake_run = FakeRun::steady();
    fake_run.settings.verbosity = Verbosity::Verbose;
    fake_run.settings.percentile = None;
    fake_run.check("average_verbose");
}

#[test]
fn output_equals_the_golden_file_for_several_concurrencies() {
    let outcome = FakeRun::steady().concurrency(1, 5, 2).check("several_concurrencies");
    assert_eq!(outcome.points.len(), 3);
}

#[test]
fn output_equals_the_golden_file_for_count_windows() {
    let mut fake_run = FakeRun::steady();
    fake_run.settings.window = Window::Count(700);
    fake_run.check("count_windows");
}

#[test]
fn output_equals_the_golden_file_for_count_windows_unstable() {
    let mut fake_run = FakeRun::new(Box::new(unsteady));
    fake_run.settings.window = Window::Count(50);
    fake_run.check("count_windows_unstable");
}

#[test]
fn output_equals_the_golden_file_for_request_count() {
    let mut fake_run = FakeRun::steady().concurrency(2, 2, 1);
    fake_run.settings.request_count = Some(100);
    let outcome = fake_run.check("request_count");
    assert_eq!(outcome.points[0].client.request_count, 100);
    assert!(outcome.warnings[0].contains("counts the rest as idle"), "{:?}", outcome.warnings);
}

#[test]
fn output_equals_the_golden_file_for_one_request() {
    let mut fake_run = FakeRun::steady();
    fake_run.settings.request_count = Some(1);
    fake_run.check("one_request");
}

#[test]
fn output_equals_the_golden_file_for_no_request_in_a_window() {
    let mut fake_run = FakeRun::new(Box::new(|_| after(90 * SECOND)));
    fake_run.settings.max_trials = 4;
    fake_run.settings.verbosity = Verbosity::Verbose;
    fake_run.check("no_request_in_a_window");
}

#[test]
fn a_failed_window_is_forgotten_after_three_good_ones() {
    let slow_at_first = |sent: &Sent| after(if sent.index == 0 { 1500 * MILLI } else { 2 * MILLI });
    let mut fake_run = FakeRun::new(Box::new(slow_at_first));
    fake_run.settings.verbosity = Verbosity::Verbose;
    fake_run.check("failed_first_window");
}

#[test]
fn output_equals_the_golden_file_for_request_rate_constant() {
    let outcome = FakeRun::steady().rate(50.5, 151.5, 50.5).check("request_rate_constant");
    let point = &outcome.points[0];
    assert_eq!(point.scheduled_latencies, point.client.latencies, "all were sent in time");
}

#[test]
fn output_equals_the_golden_file_for_request_rate_poisson() {
    let mut fake_run = FakeRun::steady();
    let range = Range { start: 100.0, end: 100.0, step: 1.0 };
    fake_run.settings.load = Load::RequestRate { range, distribution: Distribution::Poisson };
    fake_run.settings.batch_size = 4;
    fake_run.check("request_rate_poisson");
}

#[test]
fn output_equals_the_golden_file_for_request_rate_unstable() {
    FakeRun::new(Box::new(unsteady)).rate(20.0, 60.0, 20.0).check("request_rate_unstable");
}

#[test]
fn output_equals_the_golden_file_for_delayed_requests() {
    let late = |sent: &Sent| Served {
        late: if sent.index % 4 == 1 { 3 * MILLI } else { 0 },
        ..after(2 * MILLI + jitter(sent))
    };
    let mut fake_run = FakeRun::new(Box::new(late)).rate(100.0, 200.0, 100.0);
    fake_run.settings.verbosity = Verbosity::Verbose;
    let outcome = fake_run.check("delayed_requests");
    let point = &outcome.points[0];
    let most = *point.scheduled_latencies.last().unwrap();
    assert!(most >= 5 * MILLI && most > *point.client.latencies.last().unwrap());
}

#[test]
fn output_equals_the_golden_file_for_custom_intervals() {
    let mut fake_run = FakeRun::steady();
    fake_run.settings.load = Load::CustomIntervals(Vec::new());
    fake_run.check("custom_intervals");
}

#[test]
fn output_equals_the_golden_file_for_binary_search() {
    let mut fake_run = FakeRun::steady().concurrency(1, 16, 2);
    fake_run.settings.search = Search::Binary;
    fake_run.settings.latency_limit = Some(12);
    let outcome = fake_run.check("binary_search");
    assert_eq!(outcome.points.len(), 2);
}

#[test]
fn output_equals_the_golden_file_for_latency_limit() {
    let mut fake_run = FakeRun::steady().concurrency(1, 8, 1);
    fake_run.settings.latency_limit = Some(5);
    fake_run.check("latency_limit");
}

#[test]
fn output_equals_the_golden_file_for_search_until_limit() {
    let mut fake_run = FakeRun::steady().concurrency(2, 0, 4);
    fake_run.settings.latency_limit = Some(15);
    fake_run.settings.calls.asynchronous = true;
    fake_run.check("search_until_limit");
}

/// Every second of the run is slower or faster than the last.
fn unsteady(sent: &Sent) -> Served {
    after(MILLI * if (sent.after / SECOND).is_multiple_of(2) { 10 } else { 50 })
}

#[test]
fn output_equals_the_golden_file_for_unstable() {
    let mut fake_run = FakeRun::new(Box::new(unsteady)).concurrency(2, 4, 1);
    fake_run.settings.max_trials = 5;
    let outcome = fake_run.check("unstable");
    let [point] = outcome.points.as_slice() else { panic!("{outcome:?}") };
    assert!(!point.is_stable);
    assert_eq!(point.windows.len(), 3, "the last ones");
}

#[test]
fn an_unstable_point_among_stable_ones_is_marked() {
    let steady_alone = |sent: &Sent| {
        if sent.concurrency == 1 { after(2 * MILLI + jitter(sent)) } else { unsteady(sent) }
    };
    let mut fake_run = FakeRun::new(Box::new(steady_alone)).concurrency(1, 2, 1);
    fake_run.settings.max_trials = 4;
    let outcome = fake_run.check("unstable_second");
    let stable: Vec<bool> = outcome.points.iter().map(|point| point.is_stable).collect();
    assert_eq!(stable, [true, false]);
}

#[test]
fn a_single_window_can_never_be_stable() {
    let mut fake_run = FakeRun::steady();
    fake_run.settings.max_trials = 1;
    let outcome = fake_run.check("unstable_one_window");
    assert_eq!(outcome.points[0].windows.len(), 1);
}

#[test]
fn output_equals_the_golden_file_for_growing_async_latency() {
    let growing = |sent: &Sent| after(2 * MILLI + sent.index * 20 * MICRO);
    let mut fake_run = FakeRun::new(Box::new(growing)).rate(100.0, 100.0, 1.0);
    fake_run.settings.calls.asynchronous = true;
    fake_run.settings.max_trials = 3;
    fake_run.check("async_not_stabilizing");
}

#[test]
fn output_equals_the_golden_file_for_warm_up() {
    let mut fake_run = FakeRun::steady().concurrency(4, 4, 1);
    fake_run.settings.warmup_request_count = 3;
    fake_run.check("warm_up");
}

#[test]
fn output_equals_the_golden_file_for_ensemble() {
    let mut fake_run =
        FakeRun::new(Box::new(|sent| after(42 * MILLI + jitter(sent)))).concurrency(4, 4, 1);
    let name = "flair-ner-english-fast-ensemble";
    fake_run.settings.percentile = Some(95);
    fake_run.settings.verbosity = Verbosity::Verbose;
    fake_run.settings.calls.asynchronous = true;
    fake_run.settings.protocol = Protocol::Grpc;
    fake_run.model.name = name.into();
    fake_run.model.scheduling = SchedulingKind::Ensemble;
    fake_run.model.composing = vec![
        step("flair-ner-english-fast-tokenization", vec![]),
        step("flair-ner-english-fast", vec![]),
        step("flair-ner-english-fast-viterbi-decoder", vec![]),
    ];
    fake_run.models = vec![
        fake_ensemble(name, 42650),
        fake_model("flair-ner-english-fast", [4271, 751, 20, 2223, 1261]),
        fake_model("flair-ner-english-fast-tokenization", [6724, 40, 7, 6644, 29]),
        fake_model("flair-ner-english-fast-viterbi-decoder", [31653, 10221, 45, 21327, 52]),
    ];
    fake_run.check("ensemble");
}

#[test]
fn output_equals_the_golden_file_for_nested_ensemble() {
    let mut fake_run = FakeRun::steady();
    fake_run.model.name = "outer".into();
    fake_run.model.scheduling = SchedulingKind::Ensemble;
    fake_run.model.composing = vec![
        step("prepare", vec![]),
        step("inner", vec![step("encode", vec![]), step("decode", vec![])]),
    ];
    fake_run.models = vec![
        fake_ensemble("outer", 1900),
        fake_model("prepare", [300, 20, 10, 250, 15]),
        fake_ensemble("inner", 1500),
        fake_model("encode", [700, 30, 15, 600, 20]),
        fake_model("decode", [650, 25, 10, 580, 15]),
    ];
    fake_run.check("nested_ensemble");
}

#[test]
fn output_equals_the_golden_file_for_bls() {
    let mut fake_run = FakeRun::steady();
    fake_run.model.composing = vec![step("called", vec![])];
    fake_run.models.push(fake_model("called", [600, 20, 10, 500, 15]));
    fake_run.check("bls");
}

#[test]
fn output_equals_the_golden_file_for_several_versions() {
    let mut fake_run = FakeRun::steady();
    fake_run.model.composing = vec![step("called", vec![])];
    for version in ["9", "10"] {
        let per_request = per_request([600, 20, 10, 500, 15]);
        fake_run.models.push(FakeModel { name: "called", version, per_request });
    }
    fake_run.check("several_versions");
}

#[test]
fn output_equals_the_golden_file_for_missing_version() {
    let mut fake_run = FakeRun::steady();
    fake_run.model.version = "7".into();
    fake_run.check("missing_version");
}

#[test]
fn output_equals_the_golden_file_for_decoupled() {
    let streamed = |sent: &Sent| Served {
        responses: [4, 6, 8, 9].map(|ms| ms * MILLI + jitter(sent)).into(),
        last_is_empty: true,
        late: 0,
    };
    let mut fake_run = FakeRun::new(Box::new(streamed));
    fake_run.settings.protocol = Protocol::Grpc;
    fake_run.settings.calls.asynchronous = true;
    fake_run.settings.calls.streaming = true;
    fake_run.model.decoupled = true;
    fake_run.check("decoupled");
}

#[test]
fn output_equals_the_golden_file_for_sequences() {
    let mut fake_run = FakeRun::steady().concurrency(2, 2, 1);
    fake_run.world.borrow_mut().sequence_length = 20;
    fake_run.model.scheduling = SchedulingKind::Sequence;
    fake_run.settings.calls.asynchronous = true;
    fake_run.check("sequences");
}

#[test]
fn output_equals_the_golden_file_for_cache() {
    let mut fake_run = FakeRun::steady();
    fake_run.model.response_cache = true;
    let counters = &mut fake_run.models[0].per_request;
    counters.cache_miss = CountAndTime { count: 1, ns: 25 * MICRO };
    fake_run.check("cache");
}

#[test]
fn output_equals_the_golden_file_for_cached_ensemble() {
    let mut fake_run = FakeRun::steady();
    fake_run.model.name = "outer".into();
    fake_run.model.scheduling = SchedulingKind::Ensemble;
    fake_run.model.response_cache = true;
    fake_run.model.top_level_response_cache = true;
    fake_run.model.composing = vec![step("encode", vec![])];
    let mut outer = fake_ensemble("outer", 40);
    outer.per_request.cache_hit = CountAndTime { count: 1, ns: 30 * MICRO };
    fake_run.models = vec![outer];
    fake_run.check("cached_ensemble");
}

#[test]
fn output_equals_the_golden_file_for_without_statistics() {
    let mut fake_run = FakeRun::steady();
    fake_run.models.clear();
    fake_run.check("without_statistics");
}

#[test]
fn output_equals_the_golden_file_for_tool_overhead() {
    for (asynchronous, name) in [(true, "overhead_async"), (false, "overhead_sync")] {
        let fake_run = FakeRun::steady();
        fake_run.world.borrow_mut().idle_share = 0.2;
        let mut fake_run = fake_run;
        fake_run.settings.calls.asynchronous = asynchronous;
        let outcome = fake_run.check(name);
        assert!(outcome.points[0].overhead_percent > 79.9);
        assert_eq!(outcome.warnings.len(), 1);
    }
}

#[test]
fn output_equals_the_golden_file_for_gpu_metrics() {
    let mut fake_run = FakeRun::steady();
    fake_run.settings.metrics = Some(MetricsSettings {
        url: "localhost:8002/metrics".into(),
        interval: std::time::Duration::from_secs(1),
    });
    let outcome = fake_run.check("gpu_metrics");
    assert_eq!(outcome.points[0].metrics.len(), 1);
}

#[test]
fn output_equals_the_golden_file_for_metrics_unreachable() {
    let mut fake_run = FakeRun::steady();
    fake_run.settings.metrics = Some(MetricsSettings {
        url: "localhost:9799/metrics".into(),
        interval: std::time::Duration::from_secs(1),
    });
    fake_run.gpu_fails = true;
    fake_run.check("metrics_unreachable");
}

#[test]
fn output_equals_the_golden_file_for_interrupt() {
    let mut fake_run = FakeRun::steady().concurrency(1, 4, 1);
    fake_run.settings.profile_export_file = Some("export.json".into());
    fake_run.settings.verbosity = Verbosity::Verbose;
    fake_run.clock.interrupt_after.set(Some(5 * SECOND));
    let outcome = fake_run.check("interrupt");
    assert_eq!(outcome.points.len(), 1);
    let cut = &outcome.profile[1];
    assert_eq!(cut.window_boundaries.last(), Some(&(BEGIN + 5 * SECOND)));
    assert!(cut.requests.iter().any(|request| request.start > BEGIN + 4900 * MILLI));
}

#[test]
fn output_equals_the_golden_file_for_an_early_interrupt() {
    let fake_run = FakeRun::steady();
    fake_run.clock.interrupt_after.set(Some(2 * SECOND));
    fake_run.check("interrupt_at_once");
}

#[test]
fn output_equals_the_golden_file_for_failing_workers() {
    let fake_run = FakeRun::steady().concurrency(1, 4, 1);
    fake_run.world.borrow_mut().fails_after = Some(5 * SECOND);
    fake_run.check("failing_workers");
}

#[test]
fn output_equals_the_golden_file_for_periodic_concurrency() {
    let mut fake_run = FakeRun::steady();
    let range = Range { start: 4, end: 12, step: 4 };
    fake_run.settings.load = Load::PeriodicConcurrency { range, period: 10 };
    fake_run.settings.profile_export_file = Some("export.json".into());
    let outcome = fake_run.check("periodic_concurrency");
    let [profiled] = outcome.profile.as_slice() else { panic!("{outcome:?}") };
    assert_eq!(profiled.requests.len(), 12);
    assert_eq!(profiled.window_boundaries, [0, u64::MAX]);
}

#[test]
fn output_equals_the_golden_file_for_custom_intervals_unstable() {
    let mut fake_run = FakeRun::new(Box::new(unsteady));
    fake_run.settings.load = Load::CustomIntervals(Vec::new());
    fake_run.check("custom_intervals_unstable");
}

#[test]
fn output_equals_the_golden_file_for_binary_search_unstable() {
    let mut fake_run = FakeRun::new(Box::new(unsteady)).concurrency(1, 4, 1);
    fake_run.settings.search = Search::Binary;
    fake_run.settings.latency_limit = Some(1000);
    fake_run.check("binary_search_unstable");
}
