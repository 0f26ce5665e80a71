//! The settings of the Python backend: `--backend-config=python,KEY=VALUE`.

use std::{collections::BTreeMap, str::FromStr, time::Duration};

use galatea_types::{Error, Result};
use galatea_worker::{ArenaLimits, TimeLimit};

use crate::environment;

const DEFAULT_SIZE: &str = "shm-default-byte-size";
const GROWTH: &str = "shm-growth-byte-size";
const MAX_SIZE: &str = "shm-max-byte-size";
const REGION_PREFIX: &str = "shm-region-prefix-name";
pub(crate) const TIMEOUT: &str = "stub-timeout-seconds";
const INITIALIZATION: &str = "initialization-timeout-secs";
const EXECUTION: &str = "execution-timeout-secs";
const UNLOAD: &str = "unload-timeout-secs";
/// Parameter of a model, which overrides the setting of the backend.
const EXECUTION_PARAMETER: &str = "EXECUTION_TIMEOUT_SECS";
const THREAD_POOL: &str = "thread-pool-size";
const QUEUE_SIZE: &str = "shm_message_queue_size";

/// Settings that this module reads.
const READ_HERE: [&str; 8] =
    [DEFAULT_SIZE, GROWTH, MAX_SIZE, REGION_PREFIX, TIMEOUT, INITIALIZATION, EXECUTION, UNLOAD];
/// Settings of Triton's users without an effect on this backend, or that are read elsewhere: they cause no warning.
const READ_ELSEWHERE: [&str; 12] = [
    "auto-complete-config",
    "backend-directory",
    "default-max-batch-size",
    "isolation",
    "isolation_execution_timeout_seconds",
    "isolation_load_timeout_seconds",
    "isolation_memory_limit",
    "isolation_timeout_seconds",
    "isolation_unload_timeout_seconds",
    "min-compute-capability",
    QUEUE_SIZE,
    THREAD_POOL,
];

const MIB: usize = 1 << 20;

/// Settings from `--backend-config=python,KEY=VALUE`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub arenas: ArenaLimits,
    /// Longest time for an interpreter to start, and for a model to finalize.
    pub timeout: Duration,
    /// Time limit for initializing a model.
    pub initialization: TimeLimit,
    /// Time limit of a worker that has requests and responds to none.
    pub execution: TimeLimit,
    /// The same limit while its model is unloaded and nobody waits for the requests.
    pub abandoned: TimeLimit,
}

/// Default limit of a load. Some models take many minutes.
const INITIALIZATION_SECS: u64 = 3600;
const EXECUTION_SECS: u64 = 600;
/// Default limit of an unload, well within the time that a server has to end.
const UNLOAD_SECS: u64 = 10;

impl Settings {
    /// Reads the settings. Errors name the setting and its limits; most texts are Triton's. Unknown settings are ignored.
    pub fn read(config: &BTreeMap<String, String>) -> Result<Self> {
        let initial = number(config, DEFAULT_SIZE)?.unwrap_or(MIB);
        if initial < MIB {
            let text = format!("{DEFAULT_SIZE} can't be smaller than 1 MiB");
            return Err(Error::invalid_arg(text));
        }
        let growth = positive(config, GROWTH)?.unwrap_or(MIB);
        let max = positive(config, MAX_SIZE)?;
        if max.is_some_and(|max| max < initial) {
            let text = format!("{MAX_SIZE} can't be smaller than {DEFAULT_SIZE}");
            return Err(Error::invalid_arg(text));
        }
        let seconds = positive::<u64>(config, TIMEOUT)?.unwrap_or(30);
        if number::<u64>(config, THREAD_POOL)?.is_some_and(|n| n < 1) {
            return Err(Error::invalid_arg(format!("{THREAD_POOL} can't be less than 1.")));
        }
        number::<u64>(config, QUEUE_SIZE)?;
        if config.get(REGION_PREFIX).is_some_and(String::is_empty) {
            let text = format!("{REGION_PREFIX} must at least contain one character.");
            return Err(Error::invalid_arg(text));
        }
        Ok(Self {
            arenas: ArenaLimits { initial, growth, max },
            timeout: Duration::from_secs(seconds),
            initialization: time_limit(config, INITIALIZATION, INITIALIZATION_SECS)?,
            execution: time_limit(config, EXECUTION, EXECUTION_SECS)?,
            abandoned: time_limit(config, UNLOAD, UNLOAD_SECS)?,
        })
    }

    /// Returns the settings with those of a model's own `parameters`.
    ///
    /// # Errors
    /// When such a parameter has an invalid value; the error names it.
    pub fn of_model(self, parameters: &BTreeMap<String, String>) -> Result<Self> {
        let Some(text) = parameters.get(EXECUTION_PARAMETER) else { return Ok(self) };
        let seconds = text.trim().parse().map_err(|_| no_number(EXECUTION_PARAMETER, text))?;
        Ok(Self { execution: limit_of(seconds, EXECUTION_PARAMETER), ..self })
    }

    /// Warns of settings that neither this backend nor its environments read.
    pub fn warn_of_unknown(config: &BTreeMap<String, String>) {
        for key in unknown(config) {
            log::warn!("backend 'python': setting '{key}' is unknown and has no effect");
        }
    }
}

/// Reads seconds as a time limit; 0: no limit.
fn time_limit(
    config: &BTreeMap<String, String>,
    setting: &'static str,
    default: u64,
) -> Result<TimeLimit> {
    number(config, setting).map(|seconds| limit_of(seconds.unwrap_or(default), setting))
}

fn limit_of(seconds: u64, setting: &'static str) -> TimeLimit {
    TimeLimit { limit: (seconds > 0).then(|| Duration::from_secs(seconds)), setting }
}

fn unknown(config: &BTreeMap<String, String>) -> Vec<&str> {
    let known = [&READ_HERE[..], &READ_ELSEWHERE, &environment::SETTINGS].concat();
    config.keys().map(String::as_str).filter(|key| !known.contains(key)).collect()
}

fn positive<N: FromStr + Default + PartialOrd>(
    config: &BTreeMap<String, String>,
    key: &'static str,
) -> Result<Option<N>> {
    match number::<N>(config, key)? {
        Some(number) if number <= N::default() => {
            Err(Error::invalid_arg(format!("{key} can't be smaller than or equal to zero.")))
        }
        number => Ok(number),
    }
}

fn number<N: FromStr>(config: &BTreeMap<String, String>, key: &str) -> Result<Option<N>> {
    let parse = |text: &String| text.trim().parse().map_err(|_| no_number(key, text));
    config.get(key).map(parse).transpose()
}

fn no_number(key: &str, text: &str) -> Error {
    Error::invalid_arg(format!("{key} is not a number: '{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)]) -> Result<Settings> {
        let own = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Settings::read(&own.collect())
    }

    #[test]
    fn settings_have_defaults_and_accept_values() {
        let settings = read(&[]).expect("defaults");
        assert_eq!((settings.arenas.initial, settings.arenas.max), (MIB, None));
        assert_eq!(settings.timeout, Duration::from_secs(30));
        let settings = read(&[(TIMEOUT, "3"), (MAX_SIZE, "4194304"), ("other", "x")]);
        let settings = settings.expect("read");
        assert_eq!((settings.timeout.as_secs(), settings.arenas.max), (3, Some(4 * MIB)));
    }

    #[test]
    fn a_model_may_override_a_limit() {
        let seconds = |limit: TimeLimit| limit.limit.map(|limit| limit.as_secs());
        let settings = read(&[]).expect("defaults");
        assert_eq!(seconds(settings.execution), Some(600));
        assert_eq!(seconds(settings.initialization), Some(3600));
        let settings = read(&[(EXECUTION, "7"), (INITIALIZATION, "0")]).expect("read");
        assert_eq!((seconds(settings.execution), settings.execution.setting), (Some(7), EXECUTION));
        assert_eq!(seconds(settings.initialization), None);
        let with = |text: &str| {
            settings.of_model(&[(EXECUTION_PARAMETER.to_owned(), text.to_owned())].into())
        };
        assert_eq!(seconds(with("9").expect("read").execution), Some(9));
        assert_eq!(seconds(with("0").expect("read").execution), None);
        let error = with("soon").expect_err("no number");
        assert!(error.message().contains(EXECUTION_PARAMETER), "{error}");
        assert_eq!(
            settings.of_model(&BTreeMap::new()).expect("none").execution,
            settings.execution
        );
    }

    #[test]
    fn wrong_values_are_refused_with_their_key() {
        let wrong = [
            (DEFAULT_SIZE, "1000"),
            (GROWTH, "0"),
            (MAX_SIZE, "1000"),
            (TIMEOUT, "soon"),
            (EXECUTION, "-1"),
            (INITIALIZATION, "soon"),
            (THREAD_POOL, "0"),
            (REGION_PREFIX, ""),
        ];
        for (key, value) in wrong {
            let error = read(&[(key, value)]).expect_err(key);
            assert!(error.message().contains(key), "{error}");
        }
    }

    #[test]
    fn environment_settings_are_accepted() {
        let config = |keys: &[&str]| -> BTreeMap<String, String> {
            keys.iter().map(|key| ((*key).to_owned(), String::new())).collect()
        };
        let known = config(&[
            "default-environment",
            "python-interpreter",
            "environment-build-timeout-seconds",
            TIMEOUT,
            THREAD_POOL,
        ]);
        assert!(unknown(&known).is_empty(), "{:?}", unknown(&known));
        assert_eq!(
            unknown(&config(&["default-enviroment", "python-x"])),
            ["default-enviroment", "python-x"]
        );
    }
}
