//! The measurement: windows, stability, search.
//!
//! A point of the search (a concurrency or a rate) is measured in windows that follow each other without a gap. Three in a
//! row that agree are merged and reported, and the search continues. The rules and the texts are those of perf_analyzer 2.50,
//! so that figures are comparable.
//!
//! **Invariants.** Time comes from a [`Clock`], text goes to a [`Console`], load and counters come through traits:
//! a run is a function of those. A request counts in exactly one window, the one it ends in.

mod latency;
mod merge;
mod point;
mod records;
mod search;
mod server;
mod stability;
mod window;

#[cfg(test)]
mod tests;

use std::time::Duration;

use galatea_perf_report::text;
use galatea_perf_types::{
    console::Console,
    failure::{Exit, Failure, Result},
    load::{Clock, LoadGenerator, LoadStart, MetricsCollector, ServerStatistics},
    model::ModelInfo,
    record::{Nanos, RequestRecord},
    settings::{Load, Settings},
    status::{LoadPoint, PerfStatus},
};

/// Time between two updates of progress, and between two checks for the end of a run of fixed length.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// The parts of a run. `statistics` is absent if the server has no such extension, `metrics` if none were requested.
/// `settings.calls` must already suit the model.
pub struct Profiler<'a> {
    /// The settings of the measurement.
    pub settings: &'a Settings,
    /// The model under load.
    pub model: &'a ModelInfo,
    /// The sender of the requests.
    pub load: &'a mut dyn LoadGenerator,
    /// The clock of windows and progress.
    pub clock: &'a dyn Clock,
    /// The server's counters.
    pub statistics: Option<&'a mut dyn ServerStatistics>,
    /// The GPU gauges.
    pub metrics: Option<&'a mut dyn MetricsCollector>,
    /// The destination of the report and the warnings.
    pub console: &'a mut dyn Console,
}

/// The results of a run, whose report is already printed.
#[derive(Debug)]
pub struct Outcome {
    /// Points in the order of the search; only those within the latency limit. Unstable ones are marked.
    pub points: Vec<PerfStatus>,
    /// Every point that was tried. Empty unless `--profile-export-file` was requested.
    pub profile: Vec<ProfiledLoad>,
    /// The exit status of the program.
    pub exit: Exit,
    /// Warnings, one line each; some are already printed.
    pub warnings: Vec<String>,
}

/// The requests of a point for `--profile-export-file`.
#[derive(Clone, Debug)]
pub struct ProfiledLoad {
    /// Concurrency or rate of the point.
    pub load: LoadPoint,
    /// Every request that has ended in one of its windows.
    pub requests: Vec<RequestRecord>,
    /// Boundaries of the windows, one more than there were windows.
    pub window_boundaries: Vec<Nanos>,
}

impl Profiler<'_> {
    /// Measures everything that was requested, and prints the report meanwhile.
    pub fn run(self) -> Outcome {
        let mut run = Run {
            parts: self,
            points: Vec::new(),
            profile: Vec::new(),
            warnings: Vec::new(),
            interrupted: false,
            opened: None,
        };
        let exit = run.all();
        let Run { points, profile, warnings, .. } = run;
        Outcome { points, profile, exit, warnings }
    }
}

/// A run in progress.
struct Run<'a> {
    parts: Profiler<'a>,
    points: Vec<PerfStatus>,
    profile: Vec<ProfiledLoad>,
    warnings: Vec<String>,
    interrupted: bool,
    /// The counters before a load of a fixed number of requests began.
    opened: Option<window::CounterSnapshot>,
}

impl Run<'_> {
    fn all(&mut self) -> Exit {
        self.out(&text::settings(self.parts.settings, self.parts.model));
        let result = self.search();
        let failure = result.err();
        if let Some(failure) = &failure {
            self.err(&format!("{}\n", failure.message));
        }
        self.end_load(failure.is_some());
        match failure {
            // perf_analyzer ends with an exception whose text is empty.
            Some(failure) if !self.interrupted => {
                self.err("\n");
                failure.exit
            }
            _ => {
                self.out(&text::footer(&self.points, self.parts.settings));
                Exit::Success
            }
        }
    }

    /// Ends the load. An error here is reported only if nothing failed before: otherwise it is the same one.
    fn end_load(&mut self, has_failed: bool) {
        if let Err(failure) = self.parts.load.stop()
            && !has_failed
        {
            self.warn(failure.message);
        }
    }

    fn search(&mut self) -> Result<()> {
        match &self.parts.settings.load {
            Load::Concurrency(range) => search::run(self, *range),
            Load::RequestRate { range, .. } => search::run(self, *range),
            Load::CustomIntervals(_) => self.custom_intervals(),
            Load::PeriodicConcurrency { .. } => self.periodic(),
        }
    }

    /// Measures one point whose load is given by the intervals.
    fn custom_intervals(&mut self) -> Result<()> {
        self.warm_up(LoadStart::CustomIntervals)?;
        self.start_load(LoadStart::CustomIntervals)?;
        let rate = self.parts.load.custom_request_rate().unwrap_or_default();
        self.measure_point(LoadPoint::RequestRate(rate))?;
        Ok(())
    }

    /// Runs the load without measuring: the requests themselves are the result.
    fn periodic(&mut self) -> Result<()> {
        self.parts.load.start(LoadStart::Periodic, None)?;
        let begin = self.parts.clock.now();
        while !self.parts.load.is_finished() && !self.interrupted {
            self.parts.load.check_health()?;
            self.interrupted = !self.parts.clock.sleep(PROGRESS_INTERVAL);
            let elapsed = seconds(self.parts.clock.now().saturating_sub(begin));
            let collected = self.parts.load.collected();
            self.parts.console.progress(&format!("{collected} requests answered, {elapsed:.0} s"));
        }
        self.profile.push(ProfiledLoad {
            load: LoadPoint::Concurrency(1),
            requests: self.parts.load.take_records(),
            window_boundaries: vec![0, Nanos::MAX],
        });
        if self.interrupted { Err(exit_signal()) } else { Ok(()) }
    }

    fn warm_up(&mut self, start: LoadStart) -> Result<()> {
        match self.parts.settings.warmup_request_count {
            0 => Ok(()),
            count => self.parts.load.warm_up(start, count),
        }
    }

    fn start_load(&mut self, start: LoadStart) -> Result<()> {
        let request_count = self.parts.settings.request_count;
        if request_count.is_some() {
            self.open_window();
        }
        self.parts.load.start(start, request_count)
    }

    /// Formats a float for this place of the report.
    fn number(&self, value: f64) -> String {
        text::Notation::after(&self.points).number(value)
    }

    fn out(&mut self, text: &str) {
        self.parts.console.out(text);
    }

    fn err(&mut self, text: &str) {
        self.parts.console.err(text);
    }

    /// Prints a warning, and keeps it for the summary.
    fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        self.parts.console.err(&format!("{warning}\n"));
        self.note(warning);
    }

    /// Keeps a warning for the summary, once.
    fn note(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

fn exit_signal() -> Failure {
    Failure::generic("Received exit signal.")
}

fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}
