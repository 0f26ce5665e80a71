//! `galatea serve`: from checked options to a running server, and to its end.

mod access_log;
pub mod authentication;
mod backends;
mod banner;
mod cloud;
mod connections;
mod debug_events;
mod early;
mod encryption;
mod exposure;
pub mod gpus;
pub mod guide;
mod invitation;
pub mod model_path;
pub mod model_worker;
mod native;
mod poller;
pub mod port_holder;
pub mod remote;
mod repositories;
mod response_cache;
mod services;
mod shutdown;
mod socket;
mod upkeep;

use std::{process::ExitCode, sync::Arc, time::Instant};

use anyhow::{Context, Result, bail};
use galatea_engine::{Engine, EngineOptions, RepositoryRoot, StartupError};
use galatea_telemetry::{
    logger::{self, LogSettings},
    metrics::families,
};

pub use self::backends::DEFAULT_BACKEND_DIRECTORY;
use self::{
    authentication::PolicyWatch, backends::Backends, early::EarlyBackend, gpus::Gpus,
    poller::Poller, services::Services, shutdown::Ending, socket::Sockets, upkeep::Upkeep,
};
use crate::{
    memory::BudgetRule,
    options::{Note, ServeOptions},
    panic_hook,
};

/// Serves until a signal asks it to stop.
pub fn run(options: ServeOptions) -> ExitCode {
    let served = start_log(&options.log).and_then(|()| {
        panic_hook::install();
        early::beside(options, serve).context("failed to start a thread")?
    });
    let code = served.unwrap_or_else(|error| {
        // Also when the log is off or goes to a file: the person who started the server has to see it.
        logger::print(log::Level::Error, &format!("error: {error:#}"));
        ExitCode::FAILURE
    });
    log::logger().flush();
    code
}

fn serve(mut options: ServeOptions, early: EarlyBackend) -> Result<ExitCode> {
    log_notes(&options.notes);
    let budget_rule = BudgetRule::new(options.memory_budget);
    options.share_memory(budget_rule.budget());
    connections::share(&mut options);
    let access_log = access_log::open(&mut options)?;
    let _last_lines = access_log::LastLines(access_log.clone());
    // Whoever asked for encryption gets no server without.
    let _tls_reload = encryption::open(&mut options)?;
    let policy = authentication::open(&mut options)?;
    response_cache::open(&mut options)?;
    let _log_changes = debug_events::open(&mut options)?;
    let repositories = repositories::open(&options)?;
    // Before the models are loaded, which may take minutes: a port in use should be known at once.
    let sockets = Sockets::bind(&options)?;
    let backends = Backends::new(&options, early);
    let exit_timeout = options.engine.exit_timeout;
    let gpus = Gpus::find();
    let engine = Engine::new(engine_options(&options, repositories, &gpus), backends.registry());
    add_figures(&engine, &options);
    if let Some(access_log) = access_log.clone() {
        engine.add_figures(access_log::figures(access_log));
    }
    if let Some(policy) = &policy {
        engine.add_figures(authentication::figures(policy));
    }
    let _policy = policy.map(PolicyWatch::start).transpose().context("failed to start a thread")?;
    let _watch = gpus.watch(&options);
    let guide = options.guide.as_deref();
    let mut signals =
        shutdown::Signals::new(access_log, options.log.file.is_some(), guide.is_none())
            .context("failed to register signal handlers")?;
    let mut services = Services::new(sockets);
    engine.begin_start();
    services.start_early(&engine, &options)?;
    let Some(loaded) = signals.load_unless_stopped(&engine, exit_timeout)? else {
        let code = shutdown::after_interrupted_start(&engine, exit_timeout);
        invitation::take_leave(false, guide);
        return Ok(code);
    };
    banner::log_tables(&engine, &backends, &options, loaded.is_err());
    check_loaded(loaded, &engine, &options)?;
    let _upkeep = Upkeep::start(&engine, &options.engine.memory, budget_rule)
        .context("failed to start a thread")?;
    let _poller = options
        .poll_interval
        .map(|interval| Poller::start(&engine, interval))
        .transpose()
        .context("failed to start a thread")?;
    exposure::warn(&options);
    // Before the lines that scripts wait for.
    engine.finish_start();
    services.start(&engine, &options)?;
    invitation::show(&engine, &services, &options.http_options, guide);
    let ending = Ending { drain_delay: options.drain_delay, exit_timeout };
    let code = signals.serve_until_stopped(&engine, services, ending);
    invitation::take_leave(code == ExitCode::SUCCESS, guide);
    Ok(code)
}

/// The options with what was found of this machine.
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

/// What the metrics page shows beside the models.
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

/// Whether the server goes on with what could be loaded.
fn check_loaded(
    loaded: Result<(), StartupError>,
    engine: &Engine,
    options: &ServeOptions,
) -> Result<()> {
    match loaded {
        Err(error) if options.exits_on_error => {
            engine.shutdown(Instant::now() + options.engine.exit_timeout);
            let code = error.code().as_str();
            bail!("creating server: {code} - {error}{}", where_to_look(&options.log));
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

fn start_log(settings: &LogSettings) -> Result<()> {
    logger::configure(settings.clone()).with_context(|| {
        let file = settings.file.as_deref().unwrap_or(std::path::Path::new(""));
        format!("failed to open log file '{}'", file.display())
    })
}

/// What ends the program's last line: the log says more than its first reason.
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
