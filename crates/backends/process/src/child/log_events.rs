//! The log of a child: each line is an event, which the server writes into its own log.

use std::sync::Weak;

use galatea_worker::{
    Channels, LogLevels,
    wire::{OutgoingMessage, kind},
};
use log::{Level, LevelFilter, Log, Metadata, Record};
use serde_json::json;

/// Sends lines to the server, as long as it is there.
struct LogEvents(Weak<Channels>);

/// From now on lines go to the server: the more important ones until it has said which it [shows](show).
pub(super) fn install(channels: Weak<Channels>) {
    // Fails where there is a logger already, which then serves.
    if log::set_boxed_logger(Box::new(LogEvents(channels))).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
}

/// From now on only lines of these levels are made. The server leaves out what its settings do not show.
pub(super) fn show(levels: LogLevels) {
    log::set_max_level(levels.filter());
}

impl Log for LogEvents {
    /// Of libraries only what is a warning at least.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn || metadata.target().starts_with("galatea")
    }

    fn log(&self, record: &Record<'_>) {
        let channels = self.0.upgrade().filter(|_| self.enabled(record.metadata()));
        let Some(channels) = channels else { return };
        let level = match record.level() {
            Level::Info => 0,
            Level::Warn => 1,
            Level::Error => 2,
            Level::Debug => 3,
            Level::Trace => 4,
        };
        let line = json!({
            "file": record.file(),
            "line": record.line(),
            "message": record.args().to_string(),
        });
        let mut event = OutgoingMessage::new(kind::LOG, level);
        event.meta = line.to_string().into_bytes();
        // A line that finds no room is lost.
        let _ = channels.send_event(&event);
    }

    fn flush(&self) {}
}
