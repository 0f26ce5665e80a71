//! Measurement for commands that have started a server themselves: loads a model, reads its answers, and returns its figures at
//! one concurrency as values instead of a report.

mod agreement;
mod generated_request;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use galatea_client::{Connector, InferMark, KeepResponse, PreparedInfer, Target};
use galatea_perf_load::{
    data::{Requests, check_settings, read_model},
    generator,
};
use galatea_perf_types::{
    console::Console,
    model::ModelInfo,
    requests::RequestSource,
    settings::{DataSource, Load, Range, Settings, Window},
};

pub use self::agreement::{AnswerDifference, Answers};
pub use crate::system_clock::Interrupt;
pub use galatea_perf_types::failure::{Failure, Result};

use self::generated_request::GeneratedRequest;
use crate::{
    options::{self, ParsedOptions},
    profiler::Profiler,
    server_link::ServerLink,
    system_clock::SystemClock,
    target::target,
};

/// Most bytes of the tool's own messages that are kept of a measurement.
const MOST_WORDS: usize = 4096;

/// A server with one model to measure.
pub struct Probe {
    settings: Settings,
    target: Target,
    clock: SystemClock,
    link: ServerLink,
}

/// A loaded model, with the requests for it.
pub struct ProbedModel {
    probe: Probe,
    model: ModelInfo,
    requests: Arc<dyn RequestSource>,
}

/// The figures at one concurrency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Requests in flight.
    pub concurrency: u64,
    /// Inferences per second.
    pub throughput: f64,
    /// The median latency, p50.
    pub p50: Duration,
    /// The latency that one of a hundred requests exceeds, p99.
    pub p99: Duration,
    /// The windows agreed.
    pub is_stable: bool,
}

impl Probe {
    /// Connects. `words`: a command line of the tool, which names model, address and data; `program`: its name in error messages;
    /// `interrupt`: ends the measurement.
    ///
    /// # Errors
    /// If a word is wrong, or the server cannot be reached.
    pub fn open(program: &str, words: Vec<String>, interrupt: Arc<Interrupt>) -> Result<Self> {
        let mut console = CollectedErrors::default();
        let settings = match options::parse(program, words.into_iter(), &mut console)? {
            ParsedOptions::Run(settings) => *settings,
            ParsedOptions::Help(_) | ParsedOptions::Version(_) => {
                return Err(Failure::option("a measurement is expected, and no question for help"));
            }
        };
        let target = target(&settings)?;
        let link = ServerLink::open(target.clone())?;
        Ok(Self { settings, target, clock: SystemClock::interrupted_by(interrupt), link })
    }

    /// Loads the model on the server, and returns the time it took.
    ///
    /// # Errors
    /// If the server refuses; the error has its reason.
    #[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
    pub fn load(mut self) -> Result<(ProbedModel, Duration)> {
        let (started, name) = (Instant::now(), self.settings.model_name.clone());
        let loaded = self.link.ask(async |admin| admin.load_model(&name, None).await);
        loaded.map_err(|error| Failure::generic(error.message()))?;
        let took = started.elapsed();
        let settings = &self.settings;
        let model = self.link.ask(async |admin| read_model(admin, settings).await)?;
        check_settings(&self.settings, &model)?;
        let requests: Arc<dyn RequestSource> = match self.settings.data.source {
            DataSource::Files(_) => {
                Arc::new(Requests::new(&self.settings, &model, &mut CollectedErrors::default())?)
            }
            DataSource::Zero | DataSource::Random => {
                Arc::new(GeneratedRequest::new(&self.settings, &model)?)
            }
        };
        Ok((ProbedModel { probe: self, model, requests }, took))
    }
}

impl ProbedModel {
    /// Returns the answers to the first requests, at most `most`.
    ///
    /// # Errors
    /// If the server refuses one; the error has its reason.
    pub fn answers(&mut self, most: usize) -> Result<Answers> {
        let count = self.requests.step_count(0).min(most);
        let templates: Vec<_> = (0..count).map(|step| self.requests.template(0, step)).collect();
        let target = self.probe.target.clone();
        let asked = self.probe.link.ask(async |_| {
            let mut caller = Connector::new(target.clone())?.caller().await?;
            let mut answers = Vec::new();
            for template in templates {
                let request = PreparedInfer::new(&target, &template)?;
                let reply =
                    caller.infer(&request, InferMark::default(), KeepResponse::Outputs).await?;
                answers.push(reply.outputs);
            }
            Ok(Answers(answers))
        });
        asked.map_err(|error: galatea_types::Error| Failure::generic(error.message()))
    }

    /// Keeps this many requests in flight until the figures agree, or as long as the settings allow. `least`: shortest length
    /// of a window.
    ///
    /// # Errors
    /// If a request fails.
    pub fn measure(&mut self, concurrency: u64, least: Duration) -> Result<Figures> {
        let least = u64::try_from(least.as_millis()).unwrap_or(u64::MAX);
        let settings = Settings {
            load: Load::Concurrency(Range { start: concurrency, end: concurrency, step: 1 }),
            window: match self.probe.settings.window {
                Window::Time(given) => Window::Time(given.max(least)),
                count @ Window::Count(_) => count,
            },
            ..self.probe.settings.clone()
        };
        let mut load = generator::Load::new(
            &settings,
            &self.model,
            self.probe.target.clone(),
            self.requests.clone(),
        )?;
        let mut console = CollectedErrors::default();
        let profiler = Profiler {
            settings: &settings,
            model: &self.model,
            load: &mut load,
            clock: &self.probe.clock,
            statistics: None,
            metrics: None,
            console: &mut console,
        };
        let outcome = profiler.run();
        let Some(point) = outcome.points.first() else {
            return Err(Failure::generic(console.reason()));
        };
        let latency = |percentile| {
            let found = point.client.percentile_latency_ns.get(&percentile);
            Duration::from_nanos(found.copied().unwrap_or_default())
        };
        Ok(Figures {
            concurrency,
            throughput: point.client.infer_per_sec,
            p50: latency(50),
            p99: latency(99),
            is_stable: point.is_stable,
        })
    }
}

/// Keeps the errors, and drops the report.
#[derive(Default)]
struct CollectedErrors {
    errors: String,
}

impl CollectedErrors {
    /// Returns the reason that ended the measurement: the last line of the errors.
    fn reason(&self) -> String {
        let last = self.errors.lines().rfind(|line| !line.trim().is_empty());
        last.unwrap_or("nothing was measured").to_owned()
    }
}

impl Console for CollectedErrors {
    fn out(&mut self, _: &str) {}

    fn err(&mut self, text: &str) {
        if self.errors.len() + text.len() <= MOST_WORDS {
            self.errors.push_str(text);
        }
    }
}
