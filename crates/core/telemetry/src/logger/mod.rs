//! The log as Triton writes it, behind the `log` facade.
//!
//! A line is `I1121 11:45:34.163989 9939 engine.rs:174] "text"`: severity, month and day, UTC time with
//! microseconds, process, file and line. The text is quoted and escaped as a JSON string, so that a value
//! with a line break in it cannot forge a line of its own. A message with the target [`TABLE`] stays as it is. On a terminal a message of several lines is shown whole, below its first line.
//!
//! `log::debug!` is verbose level 1, `log::trace!` level 2, and level 3 with the target [`VERBOSE_3`]; all appear with
//! severity `I`.
//!
//! Key-values of a record (`log::error!(model = name, version = 1, request_id = id; "...")`) are members of the object
//! that [`LogFormat::Json`] makes of a line. The other formats do not show them: the text says it all by itself.
//!
//! Whoever logs never waits for the reader of the log: see [`crate::lines`].

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

/// The key of what a terminal shows in place of the message: several lines, which may have colours in them.
pub const SHOWN: &str = "shown";

/// Target of messages that are tables: they stay as they are. Whoever makes one makes what is in it safe to show.
pub const TABLE: &str = "galatea::table";

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
    drop(state);
    observers::tell();
}

/// Opens the log's file again, which may have been moved away. What cannot be opened stays what it was.
pub fn reopen() -> io::Result<()> {
    LOGGER.get_or_init(Logger::default).state().sink.reopen()
}

/// Lines that were lost since the start because they could not be written, or not fast enough; those of a log file since it
/// was named.
pub fn lost() -> u64 {
    let in_file = LOGGER.get_or_init(Logger::default).state().sink.lost_in_file();
    in_file + stdout().lost() + stderr().lost()
}

/// The format in force.
pub fn format() -> LogFormat {
    LOGGER.get_or_init(Logger::default).state().settings.format
}

/// Prints a line of its own, whatever is logged: one that people or scripts wait for in this form. Where the log is JSON
/// this is a line of it.
pub fn print(level: Level, text: &str) {
    match format() {
        LogFormat::Json => print_json(level, text, &None::<(&str, &str)>),
        _ => console(level).write(format!("{text}\n").as_bytes()),
    }
}

/// Prints what a model has printed: byte for byte, or, where the log is JSON, as one line of it that names the model and
/// its version.
pub fn print_of_model(level: Level, (model, version): (&str, i64), printed: ModelOutput<'_>) {
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

/// What came out of a model: everything comes in both forms, and each format takes its own.
#[derive(Clone, Copy, Debug)]
pub enum ModelOutput<'a> {
    /// As they came.
    Bytes(&'a [u8]),
    /// One line of them, without its line break.
    Line(&'a str),
}

fn print_json(level: Level, text: &str, fields: &dyn log::kv::Source) {
    let mut out = String::new();
    json::write(&mut out, &Line::now(level, text), fields);
    console(level).write(out.as_bytes());
}

/// In the form that is set; the fields are of interest where that is JSON, and who reads where it is not.
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

/// What stands in the log in place of lines that were lost.
fn lost_lines(count: u64) -> String {
    let text = format!(
        "{count} lines are missing here: they found no room, or whoever reads this log was too slow"
    );
    let (line, settings) = (Line::now(Level::Warn, &text), settings());
    let mut out = String::new();
    write_line(&mut out, &line, &settings, Reader::Program, &None::<(&str, &str)>);
    out
}

/// The settings in force.
pub fn settings() -> LogSettings {
    LOGGER.get_or_init(Logger::default).state().settings.clone()
}

/// Memory that a thread keeps for the texts of its lines.
const KEPT: usize = 16 << 10;

thread_local! {
    /// Empty, for the message of a line and the line.
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
        // What is shown may be logged itself while its text is made: then there is no memory to use again.
        let (mut message, mut out) = MEMORY.try_with(Cell::take).unwrap_or_default();
        // Writing to a String cannot fail; what cannot be shown stays out.
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

/// Of libraries only warnings and errors are logged.
fn is_of_interest(metadata: &Metadata<'_>) -> bool {
    metadata.level() <= Level::Warn || metadata.target().starts_with("galatea")
}

#[cfg(test)]
mod tests;
