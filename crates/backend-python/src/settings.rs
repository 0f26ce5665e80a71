use std::{collections::BTreeMap, str::FromStr, time::Duration};

use galatea_telemetry::logger;
use galatea_types::{Error, Result};
use serde_json::{Value, json};

use crate::memory::ArenaLimits;

const DEFAULT_SIZE: &str = "shm-default-byte-size";
const GROWTH: &str = "shm-growth-byte-size";
const MAX_SIZE: &str = "shm-max-byte-size";
const REGION_PREFIX: &str = "shm-region-prefix-name";
const TIMEOUT: &str = "stub-timeout-seconds";
const THREAD_POOL: &str = "thread-pool-size";
const QUEUE_SIZE: &str = "shm_message_queue_size";

/// Of no effect here, or read elsewhere: nothing to warn about.
const OTHERS: [&str; 6] = [
    "auto-complete-config",
    "backend-directory",
    "default-max-batch-size",
    "min-compute-capability",
    QUEUE_SIZE,
    THREAD_POOL,
];
/// Read by the environments.
const ENVIRONMENT_PREFIXES: [&str; 2] = ["python-", "environment-"];

const MIB: usize = 1 << 20;

/// `--backend-config=python,KEY=VALUE`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub arenas: ArenaLimits,
    /// How long an interpreter may take to start, and a model to finish.
    pub patience: Duration,
}

impl Settings {
    /// Errors name the setting and what it may be. Unknown ones are passed over with a warning.
    pub fn read(config: &BTreeMap<String, String>) -> Result<Self> {
        let initial = number(config, DEFAULT_SIZE)?.unwrap_or(MIB);
        if initial < MIB {
            return Err(invalid(format!("{DEFAULT_SIZE} can't be smaller than 1 MiB")));
        }
        let growth = positive(config, GROWTH)?.unwrap_or(MIB);
        let max = positive(config, MAX_SIZE)?;
        if max.is_some_and(|max| max < initial) {
            return Err(invalid(format!("{MAX_SIZE} can't be smaller than {DEFAULT_SIZE}")));
        }
        let seconds = positive::<u64>(config, TIMEOUT)?.unwrap_or(30);
        if number::<u64>(config, THREAD_POOL)?.is_some_and(|n| n < 1) {
            return Err(invalid(format!("{THREAD_POOL} can't be less than 1.")));
        }
        number::<u64>(config, QUEUE_SIZE)?;
        if config.get(REGION_PREFIX).is_some_and(String::is_empty) {
            return Err(invalid(format!("{REGION_PREFIX} must at least contain one character.")));
        }
        Ok(Self {
            arenas: ArenaLimits { initial, growth, max },
            patience: Duration::from_secs(seconds),
        })
    }

    /// Says which settings nobody knows.
    pub fn warn_of_unknown(config: &BTreeMap<String, String>) {
        let read = [DEFAULT_SIZE, GROWTH, MAX_SIZE, REGION_PREFIX, TIMEOUT];
        for key in config.keys() {
            let is_known = read.contains(&key.as_str())
                || OTHERS.contains(&key.as_str())
                || ENVIRONMENT_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
            if !is_known {
                log::warn!("backend 'python': setting '{key}' is unknown and has no effect");
            }
        }
    }
}

fn positive<N: FromStr + Default + PartialOrd>(
    config: &BTreeMap<String, String>,
    key: &str,
) -> Result<Option<N>> {
    match number::<N>(config, key)? {
        Some(number) if number <= N::default() => {
            Err(invalid(format!("{key} can't be smaller than or equal to zero.")))
        }
        number => Ok(number),
    }
}

fn number<N: FromStr>(config: &BTreeMap<String, String>, key: &str) -> Result<Option<N>> {
    let parse = |text: &String| {
        text.trim().parse().map_err(|_| invalid(format!("{key} is not a number: '{text}'")))
    };
    config.get(key).map(parse).transpose()
}

fn invalid(text: String) -> Error {
    Error::invalid_arg(text)
}

/// What the server logs, for a worker that asks itself what is worth sending.
pub(crate) fn log_level() -> Value {
    let settings = logger::settings();
    json!({
        "info": settings.has_info,
        "warning": settings.has_warning,
        "error": settings.has_error,
        "verbose": settings.verbose_level,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)]) -> Result<Settings> {
        let own = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Settings::read(&own.collect())
    }

    #[test]
    fn defaults_and_values() {
        let settings = read(&[]).expect("defaults");
        assert_eq!((settings.arenas.initial, settings.arenas.max), (MIB, None));
        assert_eq!(settings.patience, Duration::from_secs(30));
        let settings = read(&[(TIMEOUT, "3"), (MAX_SIZE, "4194304"), ("other", "x")]);
        let settings = settings.expect("read");
        assert_eq!((settings.patience.as_secs(), settings.arenas.max), (3, Some(4 * MIB)));
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let wrong = [
            (DEFAULT_SIZE, "1000"),
            (GROWTH, "0"),
            (MAX_SIZE, "1000"),
            (TIMEOUT, "soon"),
            (THREAD_POOL, "0"),
            (REGION_PREFIX, ""),
        ];
        for (key, value) in wrong {
            let error = read(&[(key, value)]).expect_err(key);
            assert!(error.message().contains(key), "{error}");
        }
    }
}
