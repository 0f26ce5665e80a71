//! Whole reports of fake runs, compared with files under `tests/golden`. A line begins with the stream it went to;
//! `~` is a blank at the end of a line. `UPDATE_GOLDEN=1` writes the files anew.

use std::{cell::RefCell, env, fs, path::PathBuf, rc::Rc};

use galatea_client::{Compression, Protocol, TensorFormat};
use galatea_perf_types::{
    load::{MetricsCollector, ServerStatistics},
    model::{ComposingModel, ModelInfo, SchedulingKind},
    settings::{
        Calls, DataSettings, DataSource, Distribution, Load, MetricsSettings, Range, Search,
        SequenceSettings, Settings, SharedMemory, TraceSettings, Verbosity, Window,
    },
};

use super::{
    Outcome, Profiler,
    fake::{
        BEGIN, Behaviour, FakeClock, FakeGpu, FakeLoad, FakeModel, FakeStatistics, MICRO, MILLI,
        SECOND, Sent, Served, Transcript, World, after, per_request,
    },
};

/// A fake run about to begin: change what differs, then [`Play::run`] or [`Play::check`] it.
pub(super) struct Play {
    pub settings: Settings,
    pub model: ModelInfo,
    pub clock: Rc<FakeClock>,
    pub world: Rc<RefCell<World>>,
    pub models: Vec<FakeModel>,
    gpu_fails: bool,
}

impl Play {
    pub(super) fn new(behaviour: Behaviour) -> Self {
        let clock = FakeClock::new();
        let world = World::new(clock.clone(), behaviour);
        let models = vec![FakeModel {
            name: "simple",
            version: "1",
            per_request: per_request([1500, 200, 30, 1200, 50]),
        }];
        Self { settings: settings(), model: model(), clock, world, models, gpu_fails: false }
    }

    /// Latencies around 2 ms for each concurrent request.
    pub(super) fn steady() -> Self {
        Self::new(Box::new(|sent| after(2 * MILLI * sent.concurrency + jitter(sent))))
    }

    pub(super) fn concurrency(mut self, start: u64, end: u64, step: u64) -> Self {
        self.settings.load = Load::Concurrency(Range { start, end, step });
        self
    }

    pub(super) fn rate(mut self, start: f64, end: f64, step: f64) -> Self {
        let (range, distribution) = (Range { start, end, step }, Distribution::Constant);
        self.settings.load = Load::RequestRate { range, distribution };
        self
    }

    pub(super) fn run(&mut self) -> (Outcome, Transcript) {
        let mut load = FakeLoad(self.world.clone());
        let models = std::mem::take(&mut self.models);
        let mut statistics = FakeStatistics { world: self.world.clone(), models };
        let mut gpu = FakeGpu::default();
        gpu.fails = self.gpu_fails;
        let mut console = Transcript::default();
        let has_statistics = !statistics.models.is_empty();
        let outcome = Profiler {
            settings: &self.settings,
            model: &self.model,
            load: &mut load,
            clock: &*self.clock,
            statistics: has_statistics.then_some(&mut statistics as &mut dyn ServerStatistics),
            metrics: self
                .settings
                .metrics
                .is_some()
                .then_some(&mut gpu as &mut dyn MetricsCollector),
            console: &mut console,
        }
        .run();
        (outcome, console)
    }

    #[track_caller]
    fn check(mut self, name: &str) -> Outcome {
        let (outcome, console) = self.run();
        let text = format!("{}exit {}\n", console.text, outcome.exit as u8);
        let path =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.txt"));
        if env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, expected, "{} differs; UPDATE_GOLDEN=1 writes it anew", path.display());
        outcome
    }
}

/// The same for the same request, and small.
fn jitter(sent: &Sent) -> u64 {
    (sent.index * 7919 % 101) * MICRO
}

fn settings() -> Settings {
    Settings {
        model_name: "simple".into(),
        model_version: String::new(),
        url: "localhost:8000".into(),
        protocol: Protocol::Http,
        verbosity: Verbosity::Quiet,
        batch_size: 1,
        load: Load::Concurrency(Range { start: 1, end: 1, step: 1 }),
        search: Search::Linear,
        latency_limit: None,
        window: Window::Time(1000),
        stability: 0.1,
        max_trials: 10,
        percentile: None,
        request_count: None,
        warmup_request_count: 0,
        max_threads: None,
        calls: Calls { asynchronous: false, forced_sync: false, streaming: false },
        sequences: SequenceSettings {
            count: 4,
            length: 20,
            length_specified: false,
            length_variation: 20.0,
            first_id: 1,
            id_count: None,
            serial: false,
        },
        data: DataSettings {
            source: DataSource::Random,
            shapes: Default::default(),
            string_length: 128,
            string_data: None,
            input_format: TensorFormat::Binary,
            output_format: TensorFormat::Binary,
        },
        shared_memory: SharedMemory::None,
        output_region_size: 102_400,
        request_parameters: Vec::new(),
        headers: Vec::new(),
        compression: Compression::None,
        tls: None,
        bls_composing_models: Vec::new(),
        metrics: None,
        trace: TraceSettings::default(),
        csv_file: None,
        verbose_csv: false,
        profile_export_file: None,
        json_file: None,
        html_file: None,
        compare: Vec::new(),
        label: None,
    }
}

fn model() -> ModelInfo {
    ModelInfo {
        name: "simple".into(),
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
fn concurrency_average() {
    let outcome = Play::steady().check("concurrency_average");
    let [point] = outcome.points.as_slice() else { panic!("{outcome:?}") };
    assert_eq!(point.windows.len(), 3);
    assert_eq!(point.tool_cpu_ns, 3 * 1200 * MILLI / 5);
    assert!(point.scheduled_latencies.is_empty() && outcome.profile.is_empty());
}

#[test]
fn concurrency_percentile_verbose() {
    let mut play = Play::steady().concurrency(4, 4, 1);
    play.settings.percentile = Some(95);
    play.settings.verbosity = Verbosity::Verbose;
    play.settings.protocol = Protocol::Grpc;
    play.check("concurrency_percentile_verbose");
}

#[test]
fn average_verbose() {
    let mut play = Play::steady();
    play.settings.verbosity = Verbosity::Verbose;
    play.settings.percentile = None;
    play.check("average_verbose");
}

#[test]
fn several_concurrencies() {
    let outcome = Play::steady().concurrency(1, 5, 2).check("several_concurrencies");
    assert_eq!(outcome.points.len(), 3);
}

#[test]
fn count_windows() {
    let mut play = Play::steady();
    play.settings.window = Window::Count(700);
    play.check("count_windows");
}

#[test]
fn count_windows_unstable() {
    let mut play = Play::new(Box::new(unsteady));
    play.settings.window = Window::Count(50);
    play.check("count_windows_unstable");
}

#[test]
fn request_count() {
    let mut play = Play::steady().concurrency(2, 2, 1);
    play.settings.request_count = Some(100);
    let outcome = play.check("request_count");
    assert_eq!(outcome.points[0].client.request_count, 100);
    assert!(outcome.warnings[0].contains("counts the rest as idle"), "{:?}", outcome.warnings);
}

#[test]
fn one_request() {
    let mut play = Play::steady();
    play.settings.request_count = Some(1);
    play.check("one_request");
}

#[test]
fn no_request_in_a_window() {
    let mut play = Play::new(Box::new(|_| after(90 * SECOND)));
    play.settings.max_trials = 4;
    play.settings.verbosity = Verbosity::Verbose;
    play.check("no_request_in_a_window");
}

#[test]
fn a_failed_window_is_forgotten_after_three_good_ones() {
    let slow_at_first = |sent: &Sent| after(if sent.index == 0 { 1500 * MILLI } else { 2 * MILLI });
    let mut play = Play::new(Box::new(slow_at_first));
    play.settings.verbosity = Verbosity::Verbose;
    play.check("failed_first_window");
}

#[test]
fn request_rate_constant() {
    let outcome = Play::steady().rate(50.5, 151.5, 50.5).check("request_rate_constant");
    let point = &outcome.points[0];
    assert_eq!(point.scheduled_latencies, point.client.latencies, "all were sent in time");
}

#[test]
fn request_rate_poisson() {
    let mut play = Play::steady();
    let range = Range { start: 100.0, end: 100.0, step: 1.0 };
    play.settings.load = Load::RequestRate { range, distribution: Distribution::Poisson };
    play.settings.batch_size = 4;
    play.check("request_rate_poisson");
}

#[test]
fn request_rate_unstable() {
    Play::new(Box::new(unsteady)).rate(20.0, 60.0, 20.0).check("request_rate_unstable");
}

#[test]
fn delayed_requests() {
    let late = |sent: &Sent| Served {
        late: if sent.index % 4 == 1 { 3 * MILLI } else { 0 },
        ..after(2 * MILLI + jitter(sent))
    };
    let mut play = Play::new(Box::new(late)).rate(100.0, 200.0, 100.0);
    play.settings.verbosity = Verbosity::Verbose;
    let outcome = play.check("delayed_requests");
    let point = &outcome.points[0];
    let most = *point.scheduled_latencies.last().unwrap();
    assert!(most >= 5 * MILLI && most > *point.client.latencies.last().unwrap());
}

#[test]
fn custom_intervals() {
    let mut play = Play::steady();
    play.settings.load = Load::CustomIntervals(Vec::new());
    play.check("custom_intervals");
}

#[test]
fn binary_search() {
    let mut play = Play::steady().concurrency(1, 16, 2);
    play.settings.search = Search::Binary;
    play.settings.latency_limit = Some(12);
    let outcome = play.check("binary_search");
    assert_eq!(outcome.points.len(), 2);
}

#[test]
fn latency_limit() {
    let mut play = Play::steady().concurrency(1, 8, 1);
    play.settings.latency_limit = Some(5);
    play.check("latency_limit");
}

#[test]
fn search_until_limit() {
    let mut play = Play::steady().concurrency(2, 0, 4);
    play.settings.latency_limit = Some(15);
    play.settings.calls.asynchronous = true;
    play.check("search_until_limit");
}

/// Every second of the run is slower or faster than the last.
fn unsteady(sent: &Sent) -> Served {
    after(MILLI * if (sent.after / SECOND).is_multiple_of(2) { 10 } else { 50 })
}

#[test]
fn unstable() {
    let mut play = Play::new(Box::new(unsteady)).concurrency(2, 4, 1);
    play.settings.max_trials = 5;
    let outcome = play.check("unstable");
    assert!(outcome.points.is_empty());
}

#[test]
fn async_latency_not_stabilizing() {
    let growing = |sent: &Sent| after(2 * MILLI + sent.index * 20 * MICRO);
    let mut play = Play::new(Box::new(growing)).rate(100.0, 100.0, 1.0);
    play.settings.calls.asynchronous = true;
    play.settings.max_trials = 3;
    play.check("async_not_stabilizing");
}

#[test]
fn warm_up() {
    let mut play = Play::steady().concurrency(4, 4, 1);
    play.settings.warmup_request_count = 3;
    play.check("warm_up");
}

#[test]
fn ensemble() {
    let mut play =
        Play::new(Box::new(|sent| after(42 * MILLI + jitter(sent)))).concurrency(4, 4, 1);
    let name = "flair-ner-english-fast-ensemble";
    play.settings.percentile = Some(95);
    play.settings.verbosity = Verbosity::Verbose;
    play.settings.calls.asynchronous = true;
    play.settings.protocol = Protocol::Grpc;
    play.model.name = name.into();
    play.model.scheduling = SchedulingKind::Ensemble;
    play.model.composing = vec![
        step("flair-ner-english-fast-tokenization", vec![]),
        step("flair-ner-english-fast", vec![]),
        step("flair-ner-english-fast-viterbi-decoder", vec![]),
    ];
    play.models = vec![
        fake_ensemble(name, 42650),
        fake_model("flair-ner-english-fast", [4271, 751, 20, 2223, 1261]),
        fake_model("flair-ner-english-fast-tokenization", [6724, 40, 7, 6644, 29]),
        fake_model("flair-ner-english-fast-viterbi-decoder", [31653, 10221, 45, 21327, 52]),
    ];
    play.check("ensemble");
}

#[test]
fn nested_ensemble() {
    let mut play = Play::steady();
    play.model.name = "outer".into();
    play.model.scheduling = SchedulingKind::Ensemble;
    play.model.composing = vec![
        step("prepare", vec![]),
        step("inner", vec![step("encode", vec![]), step("decode", vec![])]),
    ];
    play.models = vec![
        fake_ensemble("outer", 1900),
        fake_model("prepare", [300, 20, 10, 250, 15]),
        fake_ensemble("inner", 1500),
        fake_model("encode", [700, 30, 15, 600, 20]),
        fake_model("decode", [650, 25, 10, 580, 15]),
    ];
    play.check("nested_ensemble");
}

#[test]
fn bls() {
    let mut play = Play::steady();
    play.model.composing = vec![step("called", vec![])];
    play.models.push(fake_model("called", [600, 20, 10, 500, 15]));
    play.check("bls");
}

#[test]
fn several_versions() {
    let mut play = Play::steady();
    play.model.composing = vec![step("called", vec![])];
    for version in ["9", "10"] {
        let per_request = per_request([600, 20, 10, 500, 15]);
        play.models.push(FakeModel { name: "called", version, per_request });
    }
    play.check("several_versions");
}

#[test]
fn missing_version() {
    let mut play = Play::steady();
    play.model.version = "7".into();
    play.check("missing_version");
}

#[test]
fn decoupled() {
    let streamed = |sent: &Sent| Served {
        responses: [4, 6, 8, 9].map(|ms| ms * MILLI + jitter(sent)).into(),
        last_is_empty: true,
        late: 0,
    };
    let mut play = Play::new(Box::new(streamed));
    play.settings.protocol = Protocol::Grpc;
    play.settings.calls.asynchronous = true;
    play.settings.calls.streaming = true;
    play.model.decoupled = true;
    play.check("decoupled");
}

#[test]
fn sequences() {
    let mut play = Play::steady().concurrency(2, 2, 1);
    play.world.borrow_mut().sequence_length = 20;
    play.model.scheduling = SchedulingKind::Sequence;
    play.settings.calls.asynchronous = true;
    play.check("sequences");
}

#[test]
fn cache() {
    let mut play = Play::steady();
    play.model.response_cache = true;
    let counters = &mut play.models[0].per_request;
    (counters.cache_miss_count, counters.cache_miss_time_ns) = (1, 25 * MICRO);
    play.check("cache");
}

#[test]
fn cached_ensemble() {
    let mut play = Play::steady();
    play.model.name = "outer".into();
    play.model.scheduling = SchedulingKind::Ensemble;
    play.model.response_cache = true;
    play.model.top_level_response_cache = true;
    play.model.composing = vec![step("encode", vec![])];
    let mut outer = fake_ensemble("outer", 40);
    (outer.per_request.cache_hit_count, outer.per_request.cache_hit_time_ns) = (1, 30 * MICRO);
    play.models = vec![outer];
    play.check("cached_ensemble");
}

#[test]
fn without_statistics() {
    let mut play = Play::steady();
    play.models.clear();
    play.check("without_statistics");
}

#[test]
fn overhead() {
    for (asynchronous, name) in [(true, "overhead_async"), (false, "overhead_sync")] {
        let play = Play::steady();
        play.world.borrow_mut().idle_share = 0.2;
        let mut play = play;
        play.settings.calls.asynchronous = asynchronous;
        let outcome = play.check(name);
        assert!(outcome.points[0].overhead_percent > 79.9);
        assert_eq!(outcome.warnings.len(), 1);
    }
}

#[test]
fn gpu_metrics() {
    let mut play = Play::steady();
    play.settings.metrics = Some(MetricsSettings {
        url: "localhost:8002/metrics".into(),
        interval: std::time::Duration::from_secs(1),
    });
    let outcome = play.check("gpu_metrics");
    assert_eq!(outcome.points[0].metrics.len(), 1);
}

#[test]
fn metrics_unreachable() {
    let mut play = Play::steady();
    play.settings.metrics = Some(MetricsSettings {
        url: "localhost:9799/metrics".into(),
        interval: std::time::Duration::from_secs(1),
    });
    play.gpu_fails = true;
    play.check("metrics_unreachable");
}

#[test]
fn interrupt() {
    let mut play = Play::steady().concurrency(1, 4, 1);
    play.settings.profile_export_file = Some("export.json".into());
    play.settings.verbosity = Verbosity::Verbose;
    play.clock.interrupt_after.set(Some(5 * SECOND));
    let outcome = play.check("interrupt");
    assert_eq!(outcome.points.len(), 1);
    let cut = &outcome.profile[1];
    assert_eq!(cut.window_boundaries.last(), Some(&(BEGIN + 5 * SECOND)));
    assert!(cut.requests.iter().any(|request| request.start > BEGIN + 4900 * MILLI));
}

#[test]
fn interrupt_before_the_first_result() {
    let play = Play::steady();
    play.clock.interrupt_after.set(Some(2 * SECOND));
    play.check("interrupt_at_once");
}

#[test]
fn failing_workers() {
    let play = Play::steady().concurrency(1, 4, 1);
    play.world.borrow_mut().fails_after = Some(5 * SECOND);
    play.check("failing_workers");
}

#[test]
fn periodic_concurrency() {
    let mut play = Play::steady();
    let range = Range { start: 4, end: 12, step: 4 };
    play.settings.load = Load::PeriodicConcurrency { range, period: 10 };
    play.settings.profile_export_file = Some("export.json".into());
    let outcome = play.check("periodic_concurrency");
    let [profiled] = outcome.profile.as_slice() else { panic!("{outcome:?}") };
    assert_eq!(profiled.requests.len(), 12);
    assert_eq!(profiled.window_boundaries, [0, u64::MAX]);
}
