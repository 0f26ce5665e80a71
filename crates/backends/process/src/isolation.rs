//! The settings for models in their own processes, with their limits.

use std::{collections::BTreeMap, time::Duration};

use galatea_backend::Settings;
use galatea_types::{Error, Result};
use galatea_worker::TimeLimit;

const ISOLATION: &str = "isolation";
const MEMORY_LIMIT: &str = "isolation_memory_limit";
pub(crate) const START_TIMEOUT: &str = "isolation_timeout_seconds";
const LOAD_TIMEOUT: &str = "isolation_load_timeout_seconds";
const EXECUTION_TIMEOUT: &str = "isolation_execution_timeout_seconds";
const UNLOAD_TIMEOUT: &str = "isolation_unload_timeout_seconds";

/// Least memory in bytes that a process needs before any model. A smaller value is a mistake in the unit.
const LEAST_MEMORY: u64 = 64 << 20;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_LOAD_SECONDS: u64 = 3600;
const DEFAULT_EXECUTION_SECONDS: u64 = 600;
const DEFAULT_UNLOAD_SECONDS: u64 = 10;

/// The isolation settings from a model's parameters, or else from its backend's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// `isolation`: `process`, or `none`, the default.
    pub is_wanted: bool,
    /// `isolation_memory_limit`: most bytes of data for each process.
    pub memory_limit: Option<u64>,
    /// `isolation_timeout_seconds`: longest time for a process to start, and to end.
    pub timeout: Duration,
    /// `isolation_load_timeout_seconds`: longest time to read the model; 0 in the setting means no limit.
    pub load: TimeLimit,
    /// `isolation_execution_timeout_seconds`: longest time of requests without an answer; 0 in the setting means no limit.
    pub execution: TimeLimit,
    /// `isolation_unload_timeout_seconds`: the same limit while the model is unloaded and nobody waits for the requests.
    pub abandoned: TimeLimit,
}

impl Isolation {
    /// Reads the settings. The model's parameters override the backend's settings.
    ///
    /// # Errors
    /// When a value is invalid; the error names it.
    pub fn read(
        parameters: &BTreeMap<String, String>,
        settings: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let source = Settings::of_model(parameters).or(settings);
        let is_wanted = match source.get(ISOLATION) {
            None | Some("none") => false,
            Some("process") => true,
            Some(other) => {
                let text = format!("{ISOLATION} must be 'process' or 'none', but is '{other}'");
                return Err(Error::invalid_arg(text));
            }
        };
        let memory_limit = source.number(MEMORY_LIMIT)?;
        if memory_limit.is_some_and(|limit| limit < LEAST_MEMORY) {
            let text = format!("{MEMORY_LIMIT} must be at least {LEAST_MEMORY} bytes");
            return Err(Error::invalid_arg(text));
        }
        let timeout = match source.number(START_TIMEOUT)? {
            Some(0) => {
                return Err(Error::invalid_arg(format!("{START_TIMEOUT} must be at least 1")));
            }
            Some(seconds) => Duration::from_secs(seconds),
            None => DEFAULT_TIMEOUT,
        };
        let load = time_limit(source, LOAD_TIMEOUT, DEFAULT_LOAD_SECONDS)?;
        let execution = time_limit(source, EXECUTION_TIMEOUT, DEFAULT_EXECUTION_SECONDS)?;
        let abandoned = time_limit(source, UNLOAD_TIMEOUT, DEFAULT_UNLOAD_SECONDS)?;
        Ok(Self { is_wanted, memory_limit, timeout, load, execution, abandoned })
    }
}

fn time_limit(source: Settings<'_>, setting: &'static str, default: u64) -> Result<TimeLimit> {
    let seconds = source.number(setting)?.unwrap_or(default);
    let limit = (seconds > 0).then(|| Duration::from_secs(seconds));
    Ok(TimeLimit { limit, setting })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn read(model: &[(&str, &str)], backend: &[(&str, &str)]) -> Result<Isolation> {
        Isolation::read(&map(model), &map(backend))
    }

    #[test]
    fn the_models_isolation_overrides_its_backends() {
        let is_wanted = |model, backend| read(model, backend).expect("read").is_wanted;
        assert!(!is_wanted(&[], &[]));
        assert!(is_wanted(&[("isolation", "process")], &[]));
        assert!(is_wanted(&[], &[("isolation", "process")]));
        assert!(!is_wanted(&[("isolation", "none")], &[("isolation", "process")]));
        let limited = read(&[("isolation_memory_limit", "1073741824")], &[]).expect("read");
        assert_eq!((limited.memory_limit, limited.timeout), (Some(1 << 30), DEFAULT_TIMEOUT));
        assert_eq!(limited.load.limit, Some(Duration::from_secs(3600)));
        let seconds = |model| read(model, &[]).expect("read").execution.limit;
        assert_eq!(seconds(&[]), Some(Duration::from_secs(600)));
        assert_eq!(seconds(&[("isolation_execution_timeout_seconds", "0")]), None);
        let unload = |pairs: &[_]| read(pairs, &[]).expect("read").abandoned.limit;
        assert_eq!(unload(&[]), Some(Duration::from_secs(10)));
        assert_eq!(unload(&[("isolation_unload_timeout_seconds", "0")]), None);
    }

    #[test]
    fn unknown_isolation_values_are_refused_by_name() {
        let wrong = [
            ("isolation", "thread"),
            ("isolation", ""),
            ("isolation_memory_limit", "4"),
            ("isolation_memory_limit", "much"),
            ("isolation_timeout_seconds", "0"),
            ("isolation_timeout_seconds", "-1"),
            ("isolation_load_timeout_seconds", "1.5"),
            ("isolation_execution_timeout_seconds", "soon"),
        ];
        for (key, value) in wrong {
            let error = read(&[(key, value)], &[]).expect_err(key);
            assert!(error.message().contains(key), "{error}");
        }
    }
}
