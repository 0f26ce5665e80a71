//! Connects the parts of a run, from its command line to its exit status.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use galatea_client::{ServerMetadata, Target};
use galatea_perf_load::{
    data::{Requests, check_settings, read_model},
    generator,
};
use galatea_perf_report::{csv, html, profile_export::ProfileExport, summary, text};
use galatea_perf_types::{
    console::Console,
    failure::{Exit, Failure, Result},
    load::{MetricsCollector, ServerStatistics},
    model::ModelInfo,
    requests::RequestSource,
    settings::{DEFAULT_THREADS, Load, Settings, SharedMemory},
    summary::{FORMAT, Summary, TensorBytes},
};

use crate::{
    gpu_metrics::GpuMetricsCollector,
    options::{self, ParsedOptions},
    profiler::{Outcome, ProfiledLoad, Profiler},
    server_link::{ServerLink, StatisticsReader},
    shared_memory::RegisteredRegions,
    system_clock::SystemClock,
    target::{registration_target, target},
    terminal::Terminal,
};

/// Runs the tool. `program` is its name as users typed it, `arguments` the words after it.
pub fn run(program: &str, arguments: Vec<String>) -> Exit {
    let mut terminal = Terminal::default();
    let command = format!("{program} {}", arguments.join(" "));
    let parsed = options::parse(program, arguments.into_iter(), &mut terminal);
    let ended = match parsed {
        Ok(ParsedOptions::Help(text) | ParsedOptions::Version(text)) => {
            terminal.out(&text);
            return Exit::Success;
        }
        Ok(ParsedOptions::Run(settings)) => {
            Session::open(*settings, command, &mut terminal).and_then(|session| session.run())
        }
        Err(failure) => Err(failure),
    };
    ended.unwrap_or_else(|failure| {
        terminal.err(&format!("{}\n", failure.message));
        failure.exit
    })
}

/// The parts that exist before the first request.
struct Session<'a> {
    settings: Settings,
    command: String,
    console: &'a mut Terminal,
    clock: SystemClock,
    compared: Vec<Summary>,
    target: Target,
    link: ServerLink,
    server: ServerMetadata,
    model: ModelInfo,
}

/// The facts about a run that are not measured.
struct RunFacts {
    /// In Unix seconds.
    started_at: f64,
    bytes: TensorBytes,
}

impl<'a> Session<'a> {
    fn open(settings: Settings, command: String, console: &'a mut Terminal) -> Result<Self> {
        if settings.json_file.as_deref() == Some(Path::new("-")) {
            console.reports_to_stderr = true;
        }
        let compared =
            settings.compare.iter().map(|path| read_summary(path)).collect::<Result<_>>()?;
        let clock = SystemClock::start()?;
        let target = target(&settings)?;
        let mut link = ServerLink::open(target.clone())?;
        set_trace(&mut link, &settings)?;
        let model = link.ask(async |admin| read_model(admin, &settings).await)?;
        let server = link
            .need("failed to get server metadata", async |admin| admin.server_metadata().await)?;
        let mut session =
            Self { settings, command, console, clock, compared, target, link, server, model };
        session.adapt_to_model()?;
        Ok(session)
    }

    /// Adapts the calls to the model.
    fn adapt_to_model(&mut self) -> Result<()> {
        check_settings(&self.settings, &self.model)?;
        self.settings.calls.asynchronous = self.settings.is_asynchronous(&self.model);
        if !self.settings.calls.asynchronous {
            self.limit_threads();
        }
        Ok(())
    }

    /// In perf_analyzer a synchronous request needs a thread. Its warning about that is kept, and so is the end of an open-ended
    /// search.
    fn limit_threads(&mut self) {
        let asked = self.settings.max_threads;
        let Load::Concurrency(range) = &mut self.settings.load else { return };
        if range.end == 0 {
            range.end = asked.unwrap_or(DEFAULT_THREADS) as u64;
            self.console.err(
                "WARNING: The maximum attainable concurrency will be limited by max_threads specification.\n",
            );
        } else if asked.is_some() {
            self.console
                .err("WARNING: Overriding max_threads specification to ensure requested concurrency range.\n");
        }
    }

    fn run(mut self) -> Result<Exit> {
        let started_at =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let mut requests = Requests::new(&self.settings, &self.model, self.console)?;
        let regions = self.registered_regions(&mut requests)?;
        let bytes = requests.tensor_bytes();
        let requests: Arc<dyn RequestSource> = Arc::new(requests);
        let measured = self.measure(requests.clone());
        // Also after a failure: the server would keep the registered regions.
        if let Some(regions) = regions {
            regions.unregister(&self.clock, self.console);
        }
        let outcome = measured?;
        if !outcome.points.is_empty() {
            self.console.out(&text::shared_memory(self.settings.shared_memory, &bytes));
        }
        let facts = RunFacts { started_at, bytes };
        self.write_reports(&outcome, requests.as_ref(), facts)?;
        Ok(outcome.exit)
    }

    fn registered_regions(&mut self, requests: &mut Requests) -> Result<Option<RegisteredRegions>> {
        if self.settings.shared_memory == SharedMemory::None {
            return Ok(None);
        }
        let target = registration_target(&self.settings)?;
        let regions = RegisteredRegions::register(requests, &self.settings, target, &self.clock)?;
        regions.use_for(requests, self.console);
        Ok(Some(regions))
    }

    fn measure(&mut self, requests: Arc<dyn RequestSource>) -> Result<Outcome> {
        let mut load =
            generator::Load::new(&self.settings, &self.model, self.target.clone(), requests)?;
        let has_statistics =
            self.server.extensions.iter().any(|extension| extension == "statistics");
        let mut statistics = has_statistics.then(|| StatisticsReader {
            link: &mut self.link,
            model: &self.model.name,
            version: &self.model.version,
        });
        let mut metrics = self
            .settings
            .metrics
            .clone()
            .map(|settings| GpuMetricsCollector::new(settings, self.settings.headers.clone()));
        let profiler = Profiler {
            settings: &self.settings,
            model: &self.model,
            load: &mut load,
            clock: &self.clock,
            statistics: statistics.as_mut().map(|reader| reader as &mut dyn ServerStatistics),
            metrics: metrics.as_mut().map(|collector| collector as &mut dyn MetricsCollector),
            console: self.console,
        };
        Ok(profiler.run())
    }

    fn write_reports(
        &mut self,
        outcome: &Outcome,
        requests: &dyn RequestSource,
        facts: RunFacts,
    ) -> Result<()> {
        let tables = csv::write(&outcome.points, &self.settings, &self.model);
        tables.warnings.iter().for_each(|warning| self.console.err(&format!("{warning}\n")));
        for (path, table) in &tables.files {
            fs::write(path, table).map_err(|error| cannot_write(path, &error))?;
        }
        if let Some(path) = &self.settings.profile_export_file {
            write_profile(path, &outcome.profile, requests)
                .map_err(|error| cannot_write(path, &error))?;
        }
        if self.settings.json_file.is_none() && self.settings.html_file.is_none() {
            return Ok(());
        }
        let run = summary::Run {
            server: std::mem::take(&mut self.server),
            command: std::mem::take(&mut self.command),
            started_at: facts.started_at,
            tensor_bytes: facts.bytes,
            warnings: outcome.warnings.clone(),
        };
        self.write_summary(summary::summarize(&outcome.points, &self.settings, &self.model, run))
    }

    fn write_summary(&mut self, summary: Summary) -> Result<()> {
        if let Some(path) = &self.settings.json_file {
            let text = serde_json::to_string_pretty(&summary)
                .map_err(|error| cannot_write(path, &io::Error::other(error)))?;
            write_text(path, &(text + "\n"))?;
        }
        if let Some(path) = &self.settings.html_file {
            let paths = self.settings.compare.iter();
            let mut runs = vec![summary];
            for (path, mut other) in paths.zip(self.compared.drain(..)) {
                if runs.iter().any(|run| run.label == other.label) {
                    other.label = format!("{} ({})", other.label, file_name(path));
                }
                runs.push(other);
            }
            write_text(
                path,
                &html::page(&runs).map_err(|error| cannot_write(path, &error.into()))?,
            )?;
        }
        Ok(())
    }
}

/// Sets trace settings. Those the user did not give are left unchanged.
fn set_trace(link: &mut ServerLink, settings: &Settings) -> Result<()> {
    if settings.trace.fields.is_empty() {
        return Ok(());
    }
    let fields: Vec<(String, Vec<String>)> = settings.trace.fields.clone().into_iter().collect();
    // For the whole server, as in perf_analyzer: the steps of an ensemble are traced too.
    link.need("failed to create triton client backend", async |admin| {
        admin.set_trace("", &fields).await
    })
}

fn read_summary(path: &Path) -> Result<Summary> {
    let refuse = |reason: &dyn std::fmt::Display| {
        Failure::option(format!("cannot compare with '{}' (--compare): {reason}", path.display()))
    };
    let text = fs::read_to_string(path).map_err(|error| refuse(&error))?;
    let mut summary: Summary = serde_json::from_str(&text)
        .map_err(|error| refuse(&format_args!("it is not a summary that --json wrote: {error}")))?;
    if summary.format != FORMAT {
        return Err(refuse(&format_args!(
            "its format is '{}', this program reads '{FORMAT}'",
            summary.format
        )));
    }
    if summary.label.is_empty() {
        summary.label = file_name(path);
    }
    Ok(summary)
}

fn file_name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn write_profile(
    path: &Path,
    profile: &[ProfiledLoad],
    requests: &dyn RequestSource,
) -> io::Result<()> {
    let mut export = ProfileExport::new(BufWriter::new(File::create(path)?), requests)?;
    for point in profile {
        export.experiment(point.load, &point.requests, &point.window_boundaries)?;
    }
    export.finish().map(drop)
}

fn write_text(path: &Path, text: &str) -> Result<()> {
    let written = match path.to_str() {
        Some("-") => io::stdout().write_all(text.as_bytes()),
        _ => fs::write(path, text),
    };
    written.map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::generic(format!("error: cannot write '{}': {error}", path.display()))
}
