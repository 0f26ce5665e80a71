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

/// Installs the logger that sends lines to the server. Until the server sets the [levels](show), only important lines go.
pub(super) fn install(channels: Weak<Channels>) {
    // Fails if there is a logger already, which is then used.
    if log::set_boxed_logger(Box::new(LogEvents(channels))).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
}

/// Sets the levels of lines to send. The server then filters them by its settings.
pub(super) fn show(levels: LogLevels) {
    log::set_max_level(levels.filter());
}

impl Log for LogEvents {
    /// Libraries log only warnings and errors.
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
