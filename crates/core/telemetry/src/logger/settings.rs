//! The settings of the log.

use std::{borrow::Cow, ffi::OsStr, path::PathBuf};

use log::{Level, LevelFilter, Metadata};

/// Target of trace messages that verbose level 3 shows and level 2 does not: the `log` facade has no level for them.
///
/// `log::trace!(target: VERBOSE_3, ...)`
pub const VERBOSE_3: &str = "galatea::verbose_3";

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Begins with `LMMDD hh:mm:ss.ffffff`.
    #[default]
    Default,
    /// Begins with `YYYY-MM-DDThh:mm:ssZ L`.
    Iso8601,
    /// A JSON object per line, which Triton does not have.
    Json,
}

galatea_types::names! {
    /// As command lines and clients write it.
    pub LogFormat::name {
        Default = "default", Iso8601 = "ISO8601", Json = "json",
    }
}

impl LogFormat {
    /// Returns the format of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// The settings of the log. One field per `--log-*` flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// `--log-info`: severity `I`.
    pub has_info: bool,
    /// `--log-warning`: severity `W`.
    pub has_warning: bool,
    /// `--log-error`: severity `E`.
    pub has_error: bool,
    /// 0 is quiet, 1 shows debug messages, 2 trace messages too, 3 and more those of [`VERBOSE_3`] as well.
    pub verbose_level: u32,
    /// `--log-format`.
    pub format: LogFormat,
    /// The file to append to; without one, info goes to stdout, warnings and errors to stderr.
    pub file: Option<PathBuf>,
    /// Quote the text as a JSON string.
    pub has_escaping: bool,
    /// Show severities in colours on a terminal.
    pub has_colours: bool,
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
            has_colours: true,
        }
    }
}

impl LogSettings {
    pub(super) fn shows(&self, metadata: &Metadata<'_>) -> bool {
        match metadata.level() {
            Level::Trace if metadata.target() == VERBOSE_3 => self.verbose_level >= 3,
            level => self.shows_level(level),
        }
    }

    fn shows_level(&self, level: Level) -> bool {
        match level {
            Level::Error => self.has_error,
            Level::Warn => self.has_warning,
            Level::Info => self.has_info,
            Level::Debug => self.verbose_level >= 1,
            Level::Trace => self.verbose_level >= 2,
        }
    }

    /// Returns the most verbose level shown, so that the facade drops the rest without a call.
    pub(super) fn filter(&self) -> LevelFilter {
        [Level::Trace, Level::Debug, Level::Info, Level::Warn, Level::Error]
            .into_iter()
            .find(|&level| self.shows_level(level))
            .map_or(LevelFilter::Off, |level| level.to_level_filter())
    }

    /// Returns the file as clients see it: the path as the operator wrote it. Of an absolute path it is only the name, because
    /// clients need not know the folders of this machine. Empty when there is no file.
    pub fn file_name(&self) -> Cow<'_, str> {
        let Some(path) = self.file.as_deref() else { return Cow::Borrowed("") };
        let shown = if path.is_relative() { Some(path.as_os_str()) } else { path.file_name() };
        shown.map(OsStr::to_string_lossy).unwrap_or_default()
    }

    /// Lists the settings that a client can change and that differ from `before`, by the names that clients use.
    pub(super) fn differences(&self, before: &Self) -> String {
        let named = |settings: &Self| {
            [
                format!("log_info={}", settings.has_info),
                format!("log_warning={}", settings.has_warning),
                format!("log_error={}", settings.has_error),
                format!("log_verbose_level={}", settings.verbose_level),
                format!("log_format={}", settings.format.name()),
            ]
        };
        let pairs = named(self).into_iter().zip(named(before));
        let changed: Vec<String> = pairs.filter(|(new, old)| new != old).map(|p| p.0).collect();
        changed.join(" ")
    }
}

/// A change of the settings by a client at run time. `None` leaves a setting unchanged; the file cannot be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogChange {
    /// Show severity `I`.
    pub has_info: Option<bool>,
    /// Show severity `W`.
    pub has_warning: Option<bool>,
    /// Show severity `E`.
    pub has_error: Option<bool>,
    /// See [`LogSettings::verbose_level`].
    pub verbose_level: Option<u32>,
    /// The form of lines.
    pub format: Option<LogFormat>,
}

impl LogChange {
    pub(super) fn applied_to(&self, settings: &LogSettings) -> LogSettings {
        LogSettings {
            has_info: self.has_info.unwrap_or(settings.has_info),
            has_warning: self.has_warning.unwrap_or(settings.has_warning),
            has_error: self.has_error.unwrap_or(settings.has_error),
            verbose_level: self.verbose_level.unwrap_or(settings.verbose_level),
            format: self.format.unwrap_or(settings.format),
            ..settings.clone()
        }
    }
}
