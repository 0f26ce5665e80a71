//! Fake runs, and the comparison of their reports with files under `tests/golden`. A line of those begins with the
//! stream it went to; `~` is a blank at the end of a line. `UPDATE_GOLDEN=1` writes the files anew.

use std::{cell::RefCell, env, fs, path::PathBuf, rc::Rc};

use galatea_client::{Compression, Protocol, TensorFormat};
use galatea_perf_types::{
    load::{MetricsCollector, ServerStatistics},
    model::{ModelInfo, SchedulingKind},
    settings::{
        Calls, DataSettings, DataSource, Distribution, Load, Range, Search, SequenceSettings,
        Settings, SharedMemory, TraceSettings, Verbosity, Window,
    },
};

use super::{
    Outcome, Profiler,
    fake::{
        Behaviour, FakeClock, FakeGpu, FakeLoad, FakeModel, FakeStatistics, MICRO, MILLI, Sent,
        Transcript, World, after, per_request,
    },
};

/// A fake run about to begin: change what differs, then [`Play::run`] or [`Play::check`] it.
pub(super) struct Play {
    pub settings: Settings,
    pub model: ModelInfo,
    pub clock: Rc<FakeClock>,
    pub world: Rc<RefCell<World>>,
    pub models: Vec<FakeModel>,
    pub gpu_fails: bool,
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
    pub(super) fn check(mut self, name: &str) -> Outcome {
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
pub(super) fn jitter(sent: &Sent) -> u64 {
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
