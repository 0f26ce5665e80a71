//! The settings of `--backend-config=python,KEY=VALUE` that limit the time and disk space of environments.

use std::{collections::BTreeMap, str::FromStr, time::Duration};

use galatea_types::{Error, Result};

use super::prune::CacheBounds;

pub(super) const BUILD_TIMEOUT: &str = "environment-build-timeout-seconds";
pub(super) const MAX_BYTES: &str = "environment-max-byte-size";
pub(super) const MAX_FILES: &str = "environment-max-files";
pub(super) const CACHE_BYTES: &str = "environment-cache-max-byte-size";
pub(super) const CACHE_DAYS: &str = "environment-cache-max-age-days";
/// Setting: `true` if an interpreter without numpy gets an environment with it, `false` if not.
pub const ADD_NUMPY: &str = "environment-add-numpy";

const GIB: u64 = 1 << 30;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// Time limit of one build.
    pub build_timeout: Duration,
    /// Limits of one unpacked archive.
    pub archive: galatea_tar_archive::Bounds,
    /// Limits of the cache, besides environments in use.
    pub cache: CacheBounds,
    /// True if an interpreter without numpy gets an environment with it.
    pub adds_numpy: bool,
}

impl Options {
    /// Reads the settings. Errors name the setting.
    pub fn read(config: &BTreeMap<String, String>) -> Result<Self> {
        let build_timeout = positive::<u32>(config, BUILD_TIMEOUT)?.unwrap_or(600);
        Ok(Self {
            build_timeout: Duration::from_secs(build_timeout.into()),
            archive: galatea_tar_archive::Bounds {
                bytes: positive(config, MAX_BYTES)?.unwrap_or(16 * GIB),
                files: positive(config, MAX_FILES)?.unwrap_or(1_000_000),
            },
            cache: CacheBounds {
                bytes: unless_zero(number(config, CACHE_BYTES)?.unwrap_or(64 * GIB)),
                age: unless_zero(number(config, CACHE_DAYS)?.unwrap_or(90)).map(|days| DAY * days),
            },
            adds_numpy: config.get(ADD_NUMPY).is_none_or(|text| text.trim() != "false"),
        })
    }
}

fn unless_zero<N: Default + PartialEq>(number: N) -> Option<N> {
    (number != N::default()).then_some(number)
}

fn positive<N: FromStr + Default + PartialEq>(
    config: &BTreeMap<String, String>,
    key: &str,
) -> Result<Option<N>> {
    match number(config, key)? {
        Some(zero) if zero == N::default() => Err(not_a_number(config, key)),
        number => Ok(number),
    }
}

fn number<N: FromStr>(config: &BTreeMap<String, String>, key: &str) -> Result<Option<N>> {
    let text = config.get(key).map(|text| text.trim()).filter(|text| !text.is_empty());
    text.map(|text| text.parse().map_err(|_| not_a_number(config, key))).transpose()
}

/// Returns the error of a setting with an invalid value.
fn not_a_number(config: &BTreeMap<String, String>, key: &str) -> Error {
    let what = match key {
        BUILD_TIMEOUT => " of seconds",
        MAX_BYTES => " of bytes",
        CACHE_BYTES => " of bytes, nor 0 for no limit",
        CACHE_DAYS => " of days, nor 0 for no limit",
        _ => "",
    };
    let text = config.get(key).map_or("", String::as_str);
    Error::invalid_arg(format!("--backend-config=python,{key}={text}: not a positive number{what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, value: &str) -> Result<Options> {
        Options::read(&BTreeMap::from([(key.to_owned(), value.to_owned())]))
    }

    #[test]
    fn options_have_defaults_and_accept_values() {
        let defaults = Options::read(&BTreeMap::new()).expect("defaults");
        assert_eq!(defaults.build_timeout, Duration::from_secs(600));
        assert_eq!(
            defaults.archive,
            galatea_tar_archive::Bounds { bytes: 16 * GIB, files: 1_000_000 }
        );
        assert_eq!(defaults.cache, CacheBounds { bytes: Some(64 * GIB), age: Some(90 * DAY) });
        assert_eq!(read(BUILD_TIMEOUT, "30").expect("read").build_timeout.as_secs(), 30);
        assert_eq!(read(MAX_FILES, "7").expect("read").archive.files, 7);
        assert_eq!(read(CACHE_BYTES, "0").expect("read").cache.bytes, None);
        assert_eq!(read(CACHE_DAYS, "2").expect("read").cache.age, Some(2 * DAY));
        assert_eq!(read(CACHE_DAYS, "0").expect("read").cache.age, None);
    }

    #[test]
    fn wrong_values_are_refused_with_their_key() {
        for key in [BUILD_TIMEOUT, MAX_BYTES, MAX_FILES, CACHE_BYTES, CACHE_DAYS] {
            for value in ["-1", "soon", "99999999999999999999999"] {
                let error = read(key, value).expect_err(key).to_string();
                assert!(error.contains(key) && error.contains(value), "{error}");
            }
        }
        for key in [BUILD_TIMEOUT, MAX_BYTES, MAX_FILES] {
            read(key, "0").expect_err(key);
        }
        assert!(read(ADD_NUMPY, "true").expect("read").adds_numpy);
        assert!(!read(ADD_NUMPY, "false").expect("read").adds_numpy);
    }
}
