//! The settings of tracing, as they count and as clients see them.

use std::path::PathBuf;

use crate::{
    change::{InvalidSettings, SettingsChange},
    level::Levels,
};

/// The form of the traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceMode {
    /// Files of JSON.
    #[default]
    Triton,
    /// Spans for a collector of OpenTelemetry.
    OpenTelemetry,
}

galatea_types::names! {
    /// The name in `--trace-config mode=` and in the settings.
    pub TraceMode::name {
        Triton = "triton", OpenTelemetry = "opentelemetry",
    }
}

/// The settings by which requests are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The entries of a trace; none: no request is traced.
    pub levels: Levels,
    /// Every how manyth request is traced.
    pub rate: u32,
    /// The number of requests that are still traced; negative: all.
    pub count: i32,
    /// Traces in a file; 0: all go to one file.
    pub log_frequency: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { levels: Levels::OFF, rate: 1000, count: -1, log_frequency: 0 }
    }
}

impl Settings {
    /// Returns whether a request may be traced. As in Triton, none is by a count below -1.
    pub(crate) fn can_trace(&self, has_destination: bool) -> bool {
        self.levels.is_on()
            && self.rate != 0
            && self.count >= -1
            && self.count != 0
            && has_destination
    }

    /// Checks the settings that `change` would make. Triton refuses every change once a count is used up; here only a change that
    /// would then trace nothing is.
    pub(crate) fn check(
        &self,
        change: &SettingsChange,
        has_destination: bool,
    ) -> Result<(), InvalidSettings> {
        match self {
            _ if !self.levels.is_on() => Ok(()),
            Self { rate: 0, .. } => Err(InvalidSettings::NoRate),
            _ if !has_destination => Err(InvalidSettings::NoFile),
            Self { count: 0, .. } if change.count.is_some() => Err(InvalidSettings::NoCount),
            Self { count: 0, .. } if change.levels.is_some() => Err(InvalidSettings::CountUsedUp),
            _ => Ok(()),
        }
    }
}

/// The options of tracing at start.
#[derive(Clone, Debug, Default)]
pub struct TraceOptions {
    /// The form of the traces.
    pub mode: TraceMode,
    /// The settings of the server until they are changed.
    pub settings: Settings,
    /// The file of mode `triton`; empty: none.
    pub file: PathBuf,
    /// Further options of the mode, which the settings show.
    pub others: Vec<(String, String)>,
    /// Trace the calls of a model to others even where the model does not pass its trace on.
    pub traces_all_calls: bool,
    /// Keep the last traces of each model in memory, for people who look.
    pub keeps_recent: bool,
}

/// A setting as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingValue {
    /// The only value.
    One(String),
    /// A list.
    List(Vec<&'static str>),
}

impl TraceOptions {
    /// Returns the names and values of the settings in Triton's order.
    pub(crate) fn rows(&self, settings: &Settings) -> Vec<(String, SettingValue)> {
        let one = |text: String| SettingValue::One(text);
        let mut rows = vec![
            ("trace_level", SettingValue::List(settings.levels.names())),
            ("trace_rate", one(settings.rate.to_string())),
            ("trace_count", one(settings.count.to_string())),
            ("log_frequency", one(settings.log_frequency.to_string())),
            ("trace_file", one(self.file.to_string_lossy().into_owned())),
            ("trace_mode", one(self.mode.name().to_owned())),
        ];
        if self.mode == TraceMode::OpenTelemetry {
            rows.retain(|(name, _)| !matches!(*name, "log_frequency" | "trace_file"));
        }
        let others = self.others.iter().map(|(name, value)| (name.clone(), one(value.clone())));
        rows.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(others).collect()
    }

    /// Returns whether traces have somewhere to go.
    pub(crate) fn has_destination(&self) -> bool {
        self.mode == TraceMode::OpenTelemetry || !self.file.as_os_str().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_opentelemetry_are_shown_in_the_place_of_files() {
        let given = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let others = [("resource", "a=1"), ("bsp_schedule_delay", "7"), ("resource", "b=2")];
        let options = TraceOptions {
            mode: TraceMode::OpenTelemetry,
            others: others.map(|(name, value)| given(name, value)).to_vec(),
            ..TraceOptions::default()
        };
        let rows = options.rows(&Settings::default());
        let shown: Vec<_> = rows.iter().map(|(name, _)| &**name).collect();
        let first = ["trace_level", "trace_rate", "trace_count", "trace_mode"];
        assert_eq!(shown[..4], first);
        assert_eq!(shown[4..], others.map(|(name, _)| name));
    }

    #[test]
    fn the_settings_are_shown_in_tritons_order() {
        let options = TraceOptions {
            file: "/tmp/t.json".into(),
            others: vec![("level".into(), "X".into())],
            ..TraceOptions::default()
        };
        let rows = options.rows(&Settings::default());
        let one = |text: &str| SettingValue::One(text.to_owned());
        let expected = [
            ("trace_level", SettingValue::List(vec!["OFF"])),
            ("trace_rate", one("1000")),
            ("trace_count", one("-1")),
            ("log_frequency", one("0")),
            ("trace_file", one("/tmp/t.json")),
            ("trace_mode", one("triton")),
            ("level", one("X")),
        ];
        assert_eq!(rows, expected.map(|(name, value)| (name.to_owned(), value)));
    }
}
