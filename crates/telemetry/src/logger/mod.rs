//! The log as Triton writes it, behind the `log` facade.
//!
//! A line is `I1121 11:45:34.163989 9939 engine.rs:174] "text"`: severity, month and day, UTC time with
//! microseconds, process, file and line. The text is quoted and escaped as a JSON string, so that a value
//! with a line break in it cannot forge a line of its own. A message that begins with a line break is a
//! table and stays as it is. On a terminal a message of several lines is shown whole, below its first line.
//!
//! `log::debug!` is verbose level 1, `log::trace!` level 2; both appear with severity `I`.

mod line;
mod sink;

use std::{
    io,
    path::PathBuf,
    sync::{OnceLock, RwLock},
};

use galatea_types::RwLockExt;
use log::{Level, LevelFilter, Log, Metadata, Record};

use self::{line::Line, sink::Sink};

/// How a line begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// `LMMDD hh:mm:ss.ffffff`
    #[default]
    Default,
    /// `YYYY-MM-DDThh:mm:ssZ L`
    Iso8601,
}

/// What is logged, how, and where to. One field per `--log-*` flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// `--log-info`: severity `I`.
    pub has_info: bool,
    /// `--log-warning`: severity `W`.
    pub has_warning: bool,
    /// `--log-error`: severity `E`.
    pub has_error: bool,
    /// 0 is quiet, 1 shows debug messages, 2 and more trace messages too.
    pub verbose_level: u32,
    /// `--log-format`.
    pub format: LogFormat,
    /// Appended to; without one, info goes to stdout, warnings and errors to stderr.
    pub file: Option<PathBuf>,
    /// Quote the text as a JSON string.
    pub has_escaping: bool,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            has_info: true,
            has_warning: true,
            has_error: true,
            verbose_level: 0,
            format: LogFormat::Default,
            file: None,
            has_escaping: true,
        }
    }
}

impl LogSettings {
    fn shows(&self, level: Level) -> bool {
        match level {
            Level::Error => self.has_error,
            Level::Warn => self.has_warning,
            Level::Info => self.has_info,
            Level::Debug => self.verbose_level >= 1,
            Level::Trace => self.verbose_level >= 2,
        }
    }

    /// The most verbose level shown, so that the facade drops the rest without a call.
    fn filter(&self) -> LevelFilter {
        [Level::Trace, Level::Debug, Level::Info, Level::Warn, Level::Error]
            .into_iter()
            .find(|&level| self.shows(level))
            .map_or(LevelFilter::Off, |level| level.to_level_filter())
    }
}

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
