//! The log as Triton writes it, behind the `log` facade.
//!
//! A line is `I1121 11:45:34.163989 9939 engine.rs:174] "text"`: severity, month and day, UTC time with microseconds, process,
//! file and line. The text is quoted and escaped as a JSON string, so that a line break in a value cannot forge a line. A message
//! with the target [`TABLE`] is not escaped. A terminal shows a message of several lines whole.
//!
//! `log::debug!` is verbose level 1, `log::trace!` level 2, and level 3 with the target [`VERBOSE_3`]; all appear with
//! severity `I`.
//!
//! Key-values of a record (`log::error!(model = name, version = 1, request_id = id; "...")`) are members of the object that
//! [`LogFormat::Json`] makes of a line. Other formats leave them out, so the text must be complete without them.
//!
//! Logging never waits for the reader of the log: see [`crate::lines`].

mod console;
mod json;
pub(crate) mod line;
mod observers;
pub(crate) mod quoting;
mod settings;
mod sink;
pub(crate) mod time;

use std::{
    cell::Cell,
    fmt::Write as _,
    io,
    sync::{OnceLock, RwLock},
};

use galatea_types::RwLockExt;
use log::{Level, Log, Metadata, Record, kv};

pub use self::console::{stderr, stdout};
pub use self::observers::{LogObserver, observe};
pub use self::settings::{LogChange, LogFormat, LogSettings, VERBOSE_3};
use self::{
    line::{Line, Reader},
    sink::{Sink, console},
};

/// The key of the text that a terminal shows in place of the message: several lines, possibly with colours.
pub const SHOWN: &str = "shown";

/// Target of messages that are tables: they are not escaped. The code that makes a table must make its content safe to show.
pub const TABLE: &str = "galatea::table";

/// Puts these settings in force, at start or while the server runs.
///
/// Fails when the log file cannot be opened; the earlier settings then stay in force.
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

/// Changes the settings in force, except the file. It first logs the change at the old level, so that a reader of the log sees
/// why the log becomes silent.
pub fn change(change: &LogChange) {
    let current = settings();
    let new = change.applied_to(&current);
    if new == current {
        return;
    }
    log::info!("log settings are changed by a client: {}", new.differences(&current));
    let logger = LOGGER.get_or_init(Logger::default);
    let mut state = logger.state.write_unpoisoned();
    // When two clients change settings at once, each changes only what it named.
    state.settings = change.applied_to(&state.settings);
    log::set_max_level(state.settings.filter());
    drop(state);
    observers::tell();
}

/// Opens the log's file again after it was moved away. If that fails, the open file stays in use.
pub fn reopen() -> io::Result<()> {
    LOGGER.get_or_init(Logger::default).state().sink.reopen()
}

/// Returns the number of lines lost since the start because writing failed or was too slow. Lines of a log file count from the
/// time it was set.
pub fn lost() -> u64 {
    let in_file = LOGGER.get_or_init(Logger::default).state().sink.lost_in_file();
    in_file + stdout().lost() + stderr().lost()
}

/// Returns the format in force.
pub fn format() -> LogFormat {
    LOGGER.get_or_init(Logger::default).state().settings.format
}

/// Prints a line that does not depend on the log level: people or scripts wait for this text. In a JSON log it is a JSON line.
pub fn print(level: Level, text: &str) {
    match format() {
        LogFormat::Json => print_json(level, text, &None::<(&str, &str)>),
        _ => console(level).write(format!("{text}\n").as_bytes()),
    }
}

/// Prints output of a model unchanged, or, in a JSON log, as a JSON line that names the model and its version.
pub fn print_of_model(level: Level, model: &str, version: i64, printed: ModelOutput<'_>) {
    match (format(), printed) {
        (LogFormat::Json, ModelOutput::Line(text)) => {
            let fields = [("model", kv::Value::from(model)), ("version", version.into())];
            print_json(level, text, &&fields[..]);
        }
        (LogFormat::Default | LogFormat::Iso8601, ModelOutput::Bytes(bytes)) => {
            console(level).write(bytes);
        }
        _ => {}
    }
}

/// Output of a model. It comes in both forms, and each log format uses one of them.
#[derive(Clone, Copy, Debug)]
pub enum ModelOutput<'a> {
    /// The bytes as they came.
    Bytes(&'a [u8]),
    /// A line of them, without its line break.
    Line(&'a str),
}

fn print_json(level: Level, text: &str, fields: &dyn log::kv::Source) {
    let mut out = String::new();
    json::write(&mut out, &Line::now(level, text), fields);
    console(level).write(out.as_bytes());
}

/// Writes a line in the format that is set. JSON uses `fields`; the other formats use `reader`.
fn write_line(
    out: &mut String,
    line: &Line<'_>,
    settings: &LogSettings,
    reader: Reader,
    fields: &dyn log::kv::Source,
) {
    match settings.format {
        LogFormat::Json => json::write(out, line, fields),
        _ => line.write(out, settings, reader),
    }
}

/// Returns the line that replaces lost lines.
fn lost_lines(count: u64) -> String {
    let text = format!(
        "{count} lines are missing here: they found no room, or whoever reads this log was too slow"
    );
    let (line, settings) = (Line::now(Level::Warn, &text), settings());
    let mut out = String::new();
    write_line(&mut out, &line, &settings, Reader::Program, &None::<(&str, &str)>);
    out
}

/// Returns the settings in force.
pub fn settings() -> LogSettings {
    LOGGER.get_or_init(Logger::default).state().settings.clone()
}

/// Memory that a thread keeps for the texts of its lines, in bytes.
const KEPT: usize = 16 << 10;

thread_local! {
    /// Empty strings for the message of a line and for the line.
    static MEMORY: Cell<(String, String)> = const { Cell::new((String::new(), String::new())) };
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
        is_of_interest(metadata) && self.state().settings.shows(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if !is_of_interest(record.metadata()) {
            return;
        }
        let state = self.state();
        let settings = &state.settings;
        if !settings.shows(record.metadata()) {
            return;
        }
        let writer = state.sink.writer(record.level());
        let reader = if writer.is_terminal() { Reader::Person } else { Reader::Program };
        // Formatting a value may log itself: then there is no memory to reuse.
        let (mut message, mut out) = MEMORY.try_with(Cell::take).unwrap_or_default();
        // Writing to a String cannot fail; a value that fails to format is left out.
        let _ = message.write_fmt(*record.args());
        let line = Line::of(record, &message);
        write_line(&mut out, &line, settings, reader, record.key_values());
        writer.write(out.as_bytes());
        if message.capacity() + out.capacity() <= KEPT {
            message.clear();
            out.clear();
            let _ = MEMORY.try_with(|memory| memory.set((message, out)));
        }
    }

    fn flush(&self) {
        self.state().sink.flush();
    }
}

/// Returns whether the record is logged. Libraries log warnings and errors only.
fn is_of_interest(metadata: &Metadata<'_>) -> bool {
    metadata.level() <= Level::Warn || metadata.target().starts_with("galatea")
}

#[cfg(test)]
mod tests;
