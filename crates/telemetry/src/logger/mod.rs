//! The log as Triton writes it, behind the `log` facade.
//!
//! A line is `I1121 11:45:34.163989 9939 engine.rs:174] "text"`: severity, month and day, UTC time with
//! microseconds, process, file and line. The text is quoted and escaped as a JSON string, so that a value
//! with a line break in it cannot forge a line of its own. A message that begins with a line break is a
//! table and stays as it is. On a terminal a message of several lines is shown whole, below its first line.
//!
//! `log::debug!` is verbose level 1, `log::trace!` level 2; both appear with severity `I`.

mod line;
mod settings;
mod sink;

use std::{
    io,
    sync::{OnceLock, RwLock},
};

use galatea_types::RwLockExt;
use log::{Level, Log, Metadata, Record};

pub use self::settings::{LogChange, LogFormat, LogSettings};
use self::{line::Line, sink::Sink};

/// Makes these settings the ones in force, at start or while running.
///
/// Fails when the log file cannot be opened; what was in force before stays then.
pub fn configure(settings: LogSettings) -> io::Result<()> {
    let sink = Sink::open(settings.file.as_deref())?;
    let filter = settings.filter();
    let logger = LOGGER.get_or_init(Logger::default);
    *logger.state.write_unpoisoned() = State { settings, sink };
    // Fails when the logger is set already, which is so from the second call on.
    let _ = log::set_logger(logger);
    log::set_max_level(filter);
    Ok(())
}

/// Changes the settings in force, of which the file stays what it is. A change is told in the log first, at the level that
/// was shown until then: whoever reads the log sees why it goes silent.
pub fn change(change: &LogChange) {
    let current = settings();
    let new = change.applied_to(&current);
    if new == current {
        return;
    }
    log::info!("log settings are changed by a client: {}", new.differences(&current));
    let logger = LOGGER.get_or_init(Logger::default);
    let mut state = logger.state.write_unpoisoned();
    // Of two clients at once each changes what it named.
    state.settings = change.applied_to(&state.settings);
    log::set_max_level(state.settings.filter());
}

/// The settings in force.
pub fn settings() -> LogSettings {
    LOGGER.get_or_init(Logger::default).state().settings.clone()
}

static LOGGER: OnceLock<Logger> = OnceLock::new();

#[derive(Default)]
struct Logger {
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    settings: LogSettings,
    sink: Sink,
}

impl Logger {
    fn state(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.state.read_unpoisoned()
    }
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_of_interest(metadata) && self.state().settings.shows(metadata.level())
    }

    fn log(&self, record: &Record<'_>) {
        if !is_of_interest(record.metadata()) {
            return;
        }
        let state = self.state();
        if state.settings.shows(record.level()) {
            let line = Line::of(record, &state.settings);
            let text = line.text(state.sink.is_terminal(record.level()));
            state.sink.write(record.level(), text.as_bytes());
        }
    }

    fn flush(&self) {
        self.state().sink.flush();
    }
}

/// Of libraries only warnings and errors are logged.
fn is_of_interest(metadata: &Metadata<'_>) -> bool {
    metadata.level() <= Level::Warn || metadata.target().starts_with("galatea")
}

#[cfg(test)]
mod tests;
