//! The log levels that a worker sends: those that the server shows.

use galatea_telemetry::logger;
use log::LevelFilter;
use serde::{Deserialize, Serialize};

/// A worker's copy of the levels that the server logs. The server filters each line again by its current levels.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct LogLevels {
    info: bool,
    warning: bool,
    error: bool,
    verbose: u32,
}

impl LogLevels {
    /// Returns the levels in force in this process.
    pub fn now() -> Self {
        let settings = logger::settings();
        Self {
            info: settings.has_info,
            warning: settings.has_warning,
            error: settings.has_error,
            verbose: settings.verbose_level,
        }
    }

    /// Returns the most verbose level that is shown.
    pub fn filter(self) -> LevelFilter {
        match self {
            Self { verbose: 2.., .. } => LevelFilter::Trace,
            Self { verbose: 1, .. } => LevelFilter::Debug,
            Self { info: true, .. } => LevelFilter::Info,
            Self { warning: true, .. } => LevelFilter::Warn,
            Self { error: true, .. } => LevelFilter::Error,
            _ => LevelFilter::Off,
        }
    }

    /// Formats the levels for a message.
    pub(crate) fn text(self) -> String {
        serde_json::to_string(&self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_verbose_enabled_level_applies() {
        let none = LogLevels { info: false, warning: false, error: false, verbose: 0 };
        for (levels, filter) in [
            (none, LevelFilter::Off),
            (LogLevels { error: true, ..none }, LevelFilter::Error),
            (LogLevels { warning: true, ..none }, LevelFilter::Warn),
            (LogLevels { info: true, error: true, ..none }, LevelFilter::Info),
            (LogLevels { verbose: 1, ..none }, LevelFilter::Debug),
            (LogLevels { verbose: 2, ..none }, LevelFilter::Trace),
            (LogLevels { verbose: u32::MAX, ..none }, LevelFilter::Trace),
        ] {
            assert_eq!(levels.filter(), filter, "{levels:?}");
            assert_eq!(serde_json::from_str::<LogLevels>(&levels.text()).ok(), Some(levels));
        }
    }
}
