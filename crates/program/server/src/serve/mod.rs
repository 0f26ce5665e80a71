//! `galatea serve`: runs a server with checked options, and returns its exit code.

mod guide;
mod signals;
mod terminal_lines;

use std::process::ExitCode;

use anyhow::{Context, Result};
use galatea_serve::{ServeOptions, Server, Start};
use galatea_telemetry::logger::{self, LogSettings};

pub use self::guide::{StartTexts, StartedServer};

/// Serves until a signal asks it to stop. A `guide` has texts for people that replace those of the log.
pub fn run(options: ServeOptions, guide: Option<Box<dyn StartTexts>>) -> ExitCode {
    let served = start_log(&options.log).and_then(|()| {
        galatea_serve::install_panic_hook();
        galatea_serve::beside(options, |options| serve(options, guide))
            .context("failed to start a thread")?
    });
    let code = served.unwrap_or_else(|error| {
        // Printed even if the log is off or goes to a file: the person who started the server must see it.
        logger::print(log::Level::Error, &format!("error: {error:#}"));
        ExitCode::FAILURE
    });
    log::logger().flush();
    code
}

fn serve(options: ServeOptions, guide: Option<Box<dyn StartTexts>>) -> Result<ExitCode> {
    let guide = guide.as_deref();
    let mut server = Server::build(options)?;
    signals::watch(&server, guide.is_none()).context("failed to register signal handlers")?;
    let start = server.serve()?;
    if start == Start::Complete {
        terminal_lines::show(&server, guide);
        server.wait_until_stopped();
    }
    let is_complete = server.shut_down();
    terminal_lines::take_leave(is_complete && start == Start::Complete, guide);
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn start_log(settings: &LogSettings) -> Result<()> {
    logger::configure(settings.clone()).with_context(|| {
        let file = settings.file.as_deref().unwrap_or(std::path::Path::new(""));
        format!("failed to open log file '{}'", file.display())
    })
}
