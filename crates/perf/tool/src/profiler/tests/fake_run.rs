//! Fake runs, and the comparison of their reports with files under `tests/golden`. A line of those begins with the
//! stream it went to; `~` is a blank at the end of a line. `UPDATE_GOLDEN=1` writes the files again.

use std::{cell::RefCell, env, fs, path::PathBuf, rc::Rc};

use galatea_perf_types::{
    load::{MetricsCollector, ServerStatistics},
    model::{ModelInfo, SchedulingKind},
    settings::{Distribution, Load, Range, Settings, Window},
};

use super::{
    super::{Outcome, Profiler},
    fake::{
        Behaviour, FakeClock, FakeGpu, FakeLoad, FakeModel, FakeStatistics, MICRO, MILLI, Sent,
        Transcript, World, after, per_request,
    },
};

/// A fake run about to begin: change what differs, then [`FakeRun::run`] or [`FakeRun::check`] it.
pub(super) struct FakeRun {
    pub settings: Settings,
    pub model: ModelInfo,
    pub clock: Rc<FakeClock>,
    pub world: Rc<RefCell<World>>,
    pub models: Vec<FakeModel>,
    pub gpu_fails: bool,
}

impl FakeRun {
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
        assert_eq!(text, expected, "{} differs; UPDATE_GOLDEN=1 writes it again", path.display());
        outcome
    }
}

/// The same for the same request, and small.
pub(super) fn jitter(sent: &Sent) -> u64 {
    (sent.index * 7919 % 101) * MICRO
}

fn settings() -> Settings {
    Settings { window: Window::Time(1000), ..Settings::defaults("simple") }
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
