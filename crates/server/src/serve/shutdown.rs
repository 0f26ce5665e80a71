//! Waiting for SIGINT or SIGTERM, and shutting down in order.

use std::{
    io,
    process::ExitCode,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use galatea_engine::{Engine, StartupError};
use galatea_telemetry::{access_log::AccessLog, logger};
use galatea_types::Error;
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

use super::services::Services;

/// SIGINT and SIGTERM, caught from the moment this exists.
pub struct Signals {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
    /// Whether a line tells of each: scripts match it.
    are_told: bool,
}

/// How a server ends that was asked to.
pub struct Ending {
    /// How long it serves on, no longer ready.
    pub drain_delay: Duration,
    /// How long it then waits for requests in flight.
    pub exit_timeout: Duration,
}

impl Signals {
    /// SIGHUP opens the files of the log and of the access log again, where there is one; else it ends the process, as it
    /// does by default. `are_told`: whether a line tells of SIGINT and SIGTERM.
    pub fn new(
        access_log: Option<Arc<AccessLog>>,
        has_log_file: bool,
        are_told: bool,
    ) -> io::Result<Self> {
        // The front ends have threads of their own: this runtime only waits.
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let guard = runtime.enter();
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        if has_log_file || access_log.is_some() {
            let mut hangup = signal(SignalKind::hangup())?;
            runtime.spawn(async move {
                while hangup.recv().await.is_some() {
                    reopen(access_log.as_deref());
                }
            });
        }
        drop(guard);
        Ok(Self { runtime, interrupt, terminate, are_told })
    }

    /// Loads the models that are loaded at start. `None`: a signal came meanwhile, and loading has stopped,
    /// unless a load took longer than `timeout` to notice.
    #[expect(clippy::disallowed_methods, reason = "the operator asked for that much time")]
    pub fn load_unless_stopped(
        &mut self,
        engine: &Arc<Engine>,
        timeout: Duration,
    ) -> io::Result<Option<Result<(), StartupError>>> {
        let mut loaded = load(engine.clone())?;
        let Self { runtime, interrupt, terminate, are_told } = self;
        let report = |number| report(number, *are_told);
        Ok(runtime.block_on(async {
            tokio::select! {
                loaded = &mut loaded => Some(loaded.unwrap_or_else(|_| Err(load_panicked()))),
                number = next(interrupt, terminate) => {
                    report(number);
                    log::info!("Stopping before all models are loaded");
                    engine.begin_exit();
                    tokio::select! {
                        _ = &mut loaded => {}
                        () = tokio::time::sleep(timeout) => {}
                        number = next(interrupt, terminate) => report(number),
                    }
                    None
                }
            }
        }))
    }

    /// Waits for a signal, then stops the services, after the delay if there is one: a further signal ends that. 0 when all requests in flight were answered, else 1.
    #[expect(clippy::disallowed_methods, reason = "the operator asked for that much time")]
    pub fn serve_until_stopped(
        mut self,
        engine: &Arc<Engine>,
        services: Services,
        Ending { drain_delay, exit_timeout }: Ending,
    ) -> ExitCode {
        let Self { runtime, interrupt, terminate, are_told } = &mut self;
        let report = |number| report(number, *are_told);
        let is_clean = runtime.block_on(async {
            report(next(interrupt, terminate).await);
            if !drain_delay.is_zero() {
                engine.begin_leaving();
                let seconds = drain_delay.as_secs();
                log::info!(
                    "Serving {seconds} seconds more without being ready (--drain-delay-secs)"
                );
                tokio::select! {
                    () = tokio::time::sleep(drain_delay) => {}
                    number = next(interrupt, terminate) => report(number),
                }
            }
            let deadline = Instant::now() + exit_timeout;
            let mut end = drain(engine.clone(), services, deadline);
            loop {
                tokio::select! {
                    is_clean = &mut end => return is_clean.unwrap_or(false),
                    number = next(interrupt, terminate) => {
                        report(number);
                        let left = deadline.saturating_duration_since(Instant::now()).as_secs();
                        log::info!("Server is stopping already, at most {left} seconds more");
                    }
                }
            }
        });
        if is_clean {
            return ExitCode::SUCCESS;
        }
        log::error!("Exit timeout expired. Exiting immediately.");
        ExitCode::FAILURE
    }
}

/// Whoever rotates the logs has moved their files.
fn reopen(access_log: Option<&AccessLog>) {
    if let Err(error) = logger::reopen() {
        log::error!("failed to open the log file again: {error}");
    }
    if let Some(Err(error)) = access_log.map(AccessLog::reopen) {
        log::error!("failed to open the access log again: {error}");
    }
}

/// Unloads what was loaded until the signal came.
pub fn after_interrupted_start(engine: &Engine, timeout: Duration) -> ExitCode {
    match engine.shutdown(Instant::now() + timeout) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// On a thread of its own: models may take minutes to load, and signals are handled meanwhile.
fn load(engine: Arc<Engine>) -> io::Result<oneshot::Receiver<Result<(), StartupError>>> {
    let (done, loaded) = oneshot::channel();
    let work = move || {
        // After an interrupted start nothing receives the result.
        let _ = done.send(engine.load_startup_models());
    };
    thread::Builder::new().name("load".to_owned()).spawn(work)?;
    Ok(loaded)
}

fn load_panicked() -> StartupError {
    StartupError::Aborted(Error::internal("loading the models ended unexpectedly"))
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) -> i32 {
    tokio::select! {
        _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
        _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
    }
}

/// Without the form of a log line: scripts match this text.
fn report(number: i32, is_told: bool) {
    if is_told {
        logger::print(log::Level::Info, &format!("Signal ({number}) received."));
    }
}

/// Stops everything on a thread of its own, so that further signals are handled. True when nothing was cut off.
fn drain(engine: Arc<Engine>, services: Services, deadline: Instant) -> oneshot::Receiver<bool> {
    let (done, end) = oneshot::channel();
    let work = move || {
        services.drain();
        engine.drain(deadline);
        services.refuse_new_requests();
        let is_idle = engine.shutdown(deadline);
        let cut_off = services.shut_down(deadline);
        let _ = done.send(is_idle && cut_off == 0);
    };
    // Without a thread there is no way to wait: the sender is dropped, and the exit status is that of a forced end.
    let _ = thread::Builder::new().name("shutdown".to_owned()).spawn(work);
    end
}
