//! A server, from its options to its end.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc::Receiver},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use galatea_engine::{Engine, EngineOptions, RepositoryRoot, StartupError};
use galatea_frontend::TlsReload;
use galatea_gpu::GpuSampler;
use galatea_telemetry::{
    families,
    logger::{self, LogSettings},
};
use galatea_triton_agent::AgentLibraries;
use galatea_types::Error;

use crate::{
    agents,
    backends::{self, Backends},
    banner,
    debug_events::{self, LogChanges},
    front_ends::{
        FrontEnds, access_log,
        authentication::{self, PolicyWatch},
        connections, encryption, exposure, traces,
    },
    gpus::Gpus,
    memory::BudgetRule,
    options::{Note, ServeOptions},
    reload::Reload,
    repositories::{self, Poller},
    response_cache,
    stop::{Event, StopHandle},
    takeover::{TakenSockets, Takeover},
    upkeep::Upkeep,
};

/// A server: its engine, its front ends, and the threads that look after both.
pub struct Server {
    // Dropped in this order.
    poller: Option<Poller>,
    upkeep: Option<Upkeep>,
    front_ends: FrontEnds,
    takeover: Takeover,
    stop: StopHandle,
    events: Receiver<Event>,
    /// Time by which an interrupted start must end.
    deadline: Option<Instant>,
    _gpu_watch: Option<GpuSampler>,
    policy: Option<PolicyWatch>,
    engine: Arc<Engine>,
    backends: Backends,
    agents: Arc<AgentLibraries>,
    budget_rule: BudgetRule,
    _log_changes: Option<Arc<LogChanges>>,
    tls_reload: Option<TlsReload>,
    access_log: access_log::LastLines,
    _traces: traces::LastTraces,
    options: ServeOptions,
}

/// The outcome of a server's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The server serves.
    Complete,
    /// A request to stop came while models were loaded. Loading has stopped, unless a load did not react in time.
    Interrupted,
}

impl Server {
    /// Makes a server that holds its ports, but neither listens nor loads a model.
    ///
    /// # Errors
    /// If a file in the options cannot be used, a repository cannot be read or a port is taken.
    pub fn build(mut options: ServeOptions) -> Result<Self> {
        log_notes(&options.notes);
        let budget_rule = BudgetRule::new(options.memory_budget);
        connections::share(&mut options, budget_rule.budget());
        let traces = traces::open(&mut options)?;
        let access_log = access_log::open(&mut options)?;
        // A user who asked for encryption gets no server without it.
        let tls_reload = encryption::open(&mut options)?;
        let policy = authentication::open(&mut options)?;
        response_cache::open(&mut options)?;
        let log_changes = debug_events::open(&mut options)?;
        let repositories = repositories::open(&options)?;
        // Bound before models are loaded, which may take minutes: a port in use should be known at once.
        let takeover = Takeover::open(options.takeover.as_deref())?;
        let front_ends = FrontEnds::bind(&options, takeover.predecessor())?;
        let backends = Backends::new(&options);
        let gpus = Gpus::find();
        let mut engine = engine_options(&options, repositories, &gpus);
        let agents = agents::add(&mut engine, options.agent_directory.clone());
        let engine = Engine::new(engine, backends.registry());
        add_figures(&engine, &options);
        engine.add_figures(traces::figures(traces.clone()));
        if let Some(access_log) = access_log.clone() {
            engine.add_figures(access_log::figures(access_log));
        }
        if let Some(policy) = &policy {
            engine.add_figures(authentication::figures(policy));
        }
        let policy = policy.map(PolicyWatch::start).transpose().context(NO_THREAD)?;
        options.http_options.about.set_options(&options.rows);
        let (stop, events) = StopHandle::new();
        Ok(Self {
            poller: None,
            upkeep: None,
            front_ends,
            takeover,
            stop,
            events,
            deadline: None,
            _gpu_watch: gpus.watch(&options),
            policy,
            engine,
            backends,
            agents,
            budget_rule,
            _log_changes: log_changes,
            tls_reload,
            access_log: access_log::LastLines(access_log),
            _traces: traces::LastTraces(traces),
            options,
        })
    }

    /// Returns the engine, which answers requests of this process as well as those of the front ends.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Returns the front ends, which know their addresses once they are started.
    pub fn front_ends(&self) -> &FrontEnds {
        &self.front_ends
    }

    /// Returns the options, with everything that was found and opened for them.
    pub fn options(&self) -> &ServeOptions {
        &self.options
    }

    /// Returns a handle that asks this server to stop.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Returns a handle that makes this server read its files again.
    pub fn reload(&self) -> Reload {
        Reload {
            access_log: self.access_log.0.clone(),
            tls: self.tls_reload.as_ref().map(TlsReload::request),
            policy: self.policy.as_ref().map(PolicyWatch::reload),
        }
    }

    /// Loads the models of the start, and starts the front ends. Those that may listen during the load are started first.
    ///
    /// # Errors
    /// If a front end or a thread cannot be started, or a model cannot be loaded and that ends the server.
    pub fn serve(&mut self) -> Result<Start> {
        self.engine.availability().begin_start();
        // The clients of another server stay there until the models are loaded.
        if self.takeover.predecessor().is_none() {
            self.front_ends.start_early(&self.engine, &self.options)?;
        }
        let Some(loaded) = self.load_unless_stopped()? else { return Ok(Start::Interrupted) };
        let Self { engine, backends, agents, options, .. } = self;
        banner::log_tables(engine, backends, &agents.opened(), options, loaded.is_err());
        self.check_loaded(loaded)?;
        let memory = &self.options.engine.memory;
        let upkeep = Upkeep::start(&self.engine, memory, self.budget_rule);
        self.upkeep = Some(upkeep.context(NO_THREAD)?);
        let poller =
            self.options.poll_interval.map(|interval| Poller::start(&self.engine, interval));
        self.poller = poller.transpose().context(NO_THREAD)?;
        if let Some(text) = exposure::warning(&self.options) {
            log::warn!("{text}");
        }
        // Set before the lines that scripts wait for.
        self.engine.availability().finish_start();
        self.start_front_ends()?;
        Ok(Start::Complete)
    }

    /// Starts the front ends, on the sockets of another server if there is one.
    fn start_front_ends(&mut self) -> Result<()> {
        let mut passed = self.takeover.take()?;
        self.front_ends.adopt(&mut passed)?;
        self.front_ends.start(&self.engine, &self.options)?;
        let (sockets, taken) = (self.front_ends.offered()?, self.front_ends.adopted());
        let stop = self.stop.clone();
        if let Err(error) = self.takeover.offer(passed, taken.clone(), sockets, stop) {
            // The other server has the sockets too and serves on. Clients that are here already go there.
            self.front_ends.hand_over(&TakenSockets::Named(taken), CLIENTS_LEAVE_WITHIN);
            return Err(error);
        }
        self.front_ends.set_own(true);
        Ok(())
    }

    /// Waits until the server is asked to stop, and then for the drain delay. During it the server serves, but is not ready.
    /// Another request ends the delay. There is none after a new server has taken over.
    pub fn wait_until_stopped(&self) {
        if let Ok(Event::HandedOver) = self.events.recv() {
            return log::info!("A new server has taken over: this one ends");
        }
        let delay = self.options.drain_delay;
        if !delay.is_zero() {
            self.engine.availability().begin_leaving();
            self.stop.set_stopping(false);
            let seconds = delay.as_secs();
            log::info!("Serving {seconds} seconds more while not ready (--drain-delay-secs)");
            let _ = self.events.recv_timeout(delay);
            self.stop.set_stopping(true);
        }
    }

    /// Ends the server: front ends refuse requests, those in flight are answered, models are unloaded. Returns true if the exit
    /// timeout cut nothing off.
    pub fn shut_down(mut self) -> bool {
        self.options.runtimes.stop.request();
        if let Some(taken) = self.takeover.end() {
            let limit = CLIENTS_LEAVE_WITHIN.min(self.options.engine.exit_timeout);
            self.front_ends.hand_over(&taken, limit);
        }
        let is_complete = match self.deadline {
            Some(deadline) => self.engine.shutdown(deadline),
            None => {
                let deadline = Instant::now() + self.options.engine.exit_timeout;
                let (engine, front_ends) = (self.engine, self.front_ends);
                let drain = AssertUnwindSafe(|| drain(&engine, front_ends, deadline));
                catch_unwind(drain).unwrap_or(false)
            }
        };
        if let Some(cache) = &self.options.engine.response_cache {
            cache.close(Instant::now() + CACHE_CLOSES_WITHIN);
        }
        if !is_complete {
            log::error!("Exit timeout expired. Exiting immediately.");
        }
        is_complete
    }

    /// Loads the models. `None`: the server was asked to stop meanwhile.
    fn load_unless_stopped(&mut self) -> Result<Option<Result<(), StartupError>>> {
        let (engine, stop) = (self.engine.clone(), self.stop.clone());
        // On a thread of its own: models may take minutes to load.
        let load = move || {
            let loaded = catch_unwind(AssertUnwindSafe(|| engine.load_startup_models()));
            stop.send(Event::Loaded(loaded.unwrap_or_else(|_| Err(load_panicked()))));
        };
        thread::Builder::new().name("load".to_owned()).spawn(load)?;
        if let Ok(Event::Loaded(loaded)) = self.events.recv() {
            return Ok(Some(loaded));
        }
        log::info!(
            "Stopping before all models are loaded; a further signal ends the server at once"
        );
        let timeout = self.options.engine.exit_timeout;
        self.deadline = Some(Instant::now() + timeout);
        self.engine.begin_exit();
        self.options.runtimes.stop.request();
        let _ = self.events.recv_timeout(timeout);
        Ok(None)
    }

    /// Decides whether the server continues with the models that could be loaded.
    fn check_loaded(&self, loaded: Result<(), StartupError>) -> Result<()> {
        match loaded {
            // Another server that serves all models is better than this one.
            Err(error) if self.options.exits_on_error || self.takeover.predecessor().is_some() => {
                self.engine.shutdown(Instant::now() + self.options.engine.exit_timeout);
                let code = error.code().as_str();
                bail!("creating server: {code} - {error}{}", where_to_look(&self.options.log));
            }
            Err(error @ StartupError::Aborted(_)) => {
                log::error!(
                    "the server is not ready: creating server: {} - {error}",
                    error.code().as_str()
                );
            }
            Err(error) => log::warn!("serving what could be loaded: {error}"),
            Ok(()) => {}
        }
        Ok(())
    }
}

/// Longest time that the response cache may delay the exit.
const CACHE_CLOSES_WITHIN: Duration = Duration::from_secs(2);

/// Longest time in which connected clients may send a request after a new server has taken over. Clients with idle connections
/// send none.
const CLIENTS_LEAVE_WITHIN: Duration = Duration::from_secs(5);

const NO_THREAD: &str = "failed to start a thread";

/// Returns the options with the facts of this machine.
fn engine_options(
    options: &ServeOptions,
    repositories: Vec<Arc<dyn RepositoryRoot>>,
    gpus: &Gpus,
) -> EngineOptions {
    let backend_directory = Some(backends::backend_directory(&options.runtimes));
    let mut engine = EngineOptions { repositories, backend_directory, ..options.engine.clone() };
    gpus.add_to(&mut engine);
    engine
}

/// Adds the figures of the metrics page that are not about models.
fn add_figures(engine: &Engine, options: &ServeOptions) {
    engine.add_figures(connections::figures(options));
    engine.add_figures(Box::new(backends::environment_figures));
    engine.add_figures(Box::new(|figures| {
        figures.set_labelled(&families::LOG_LINES_LOST, "server", logger::lost());
    }));
    if let Some(cache) = options.engine.response_cache.clone() {
        engine.add_figures(Box::new(move |figures| cache.add_figures(figures)));
    }
}

fn load_panicked() -> StartupError {
    StartupError::Aborted(Error::internal("loading the models ended unexpectedly"))
}

/// Stops everything. Returns true if nothing was cut off.
fn drain(engine: &Engine, front_ends: FrontEnds, deadline: Instant) -> bool {
    front_ends.drain();
    engine.drain(deadline);
    front_ends.refuse_new_requests();
    let is_idle = engine.shutdown(deadline);
    let cut_off = front_ends.shut_down(deadline);
    is_idle && cut_off == 0
}

/// Returns the end of the last line of a failed start: the log has more than its first reason.
fn where_to_look(log: &LogSettings) -> String {
    match &log.file {
        _ if !log.has_error => "; start with --log-error=true for more".to_owned(),
        Some(file) => format!("; see the log in '{}'", file.display()),
        None => "; see the log above".to_owned(),
    }
}

fn log_notes(notes: &[Note]) {
    for note in notes {
        match note {
            Note::Warning(text) => log::warn!("{text}"),
            Note::Info(text) => log::info!("{text}"),
        }
    }
}
