//! The keys that sign tokens: from a file that may change, or from an address that is read at intervals.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use galatea_access::{KeySet, KeySource, MAX_KEY_SET, Policy};
use galatea_types::Environment;

use super::{fetch, read_text, watched_file::WatchedFile};

/// Shortest time between two fetches. A token with an unknown key makes the server fetch early, but not more often than this.
const MIN_INTERVAL: Duration = Duration::from_secs(5);
/// First pause after a fetch that failed.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The source of the keys.
pub(super) enum KeyOrigin {
    /// Tokens are not accepted.
    None,
    File(WatchedFile),
    Url(FetchedKeys),
}

impl KeyOrigin {
    /// Returns the source in the policy. `policy_path`: the policy's file, to whose folder its paths are relative.
    pub fn of(policy: &Policy, policy_path: &Path) -> Self {
        match policy.jwt().map(|rules| &rules.keys) {
            None => Self::None,
            Some(KeySource::File(file)) => {
                let folder = policy_path.parent().map_or_else(PathBuf::new, Path::to_owned);
                Self::File(WatchedFile::applied(&folder.join(file)))
            }
            Some(KeySource::Url { url, refresh_secs }) => {
                Self::Url(FetchedKeys::new(url.clone(), Duration::from_secs(*refresh_secs)))
            }
        }
    }

    /// Returns true if both have the same file or address, so that the keys need not be read again.
    pub fn is_same_source(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::File(a), Self::File(b)) => a.path() == b.path(),
            (Self::Url(a), Self::Url(b)) => (&a.url, a.refresh) == (&b.url, b.refresh),
            _ => false,
        }
    }

    /// Returns the first keys. Those of an address come later: the start does not wait for another server.
    pub fn first(&self) -> Result<KeySet> {
        match self {
            Self::None | Self::Url(_) => Ok(KeySet::default()),
            Self::File(file) => read(file.path()),
        }
    }

    /// Makes the next look read the keys again.
    pub fn expire(&mut self) {
        match self {
            Self::None => {}
            Self::File(file) => file.forget(),
            Self::Url(fetched) => fetched.due = None,
        }
    }

    /// Returns new keys, if there are any. `unknown`: number of tokens so far whose key was unknown.
    pub fn look(
        &mut self,
        now: Instant,
        unknown: u64,
        environment: &Environment,
    ) -> Option<KeySet> {
        match self {
            Self::None => None,
            Self::File(file) => {
                if !file.has_changed() {
                    return None;
                }
                let keys = read(file.path());
                keys.inspect_err(|error| {
                    log::error!("authentication: the new keys cannot be used, so the previous ones stay: {error:#}");
                })
                .ok()
            }
            Self::Url(fetched) => fetched.look(now, unknown, |url| fetch::fetch(url, environment)),
        }
    }
}

fn read(path: &Path) -> Result<KeySet> {
    let text = read_text(path, MAX_KEY_SET)?;
    KeySet::parse(text.as_bytes())
        .with_context(|| format!("'{}' has no keys for tokens", path.display()))
}

/// Keys from an address.
pub(super) struct FetchedKeys {
    url: String,
    refresh: Duration,
    /// Time of the next fetch; `None`: at once.
    due: Option<Instant>,
    asked: Option<Instant>,
    /// Time until the next attempt, if the last one failed.
    pause: Option<Duration>,
    /// The text of the present keys.
    text: Vec<u8>,
    /// Number of tokens with unknown keys at the last fetch.
    unknown: u64,
}

impl FetchedKeys {
    fn new(url: String, refresh: Duration) -> Self {
        let (due, asked, pause) = (None, None, None);
        Self { url, refresh, due, asked, pause, text: Vec::new(), unknown: 0 }
    }

    /// Fetches if it is due. The old keys stay if that fails or if they are the same.
    fn look(
        &mut self,
        now: Instant,
        unknown: u64,
        fetch: impl FnOnce(&str) -> Result<Vec<u8>>,
    ) -> Option<KeySet> {
        let is_due = self.due.is_none_or(|due| now >= due);
        let is_asked_for = unknown > self.unknown
            && self.asked.is_none_or(|at| now.duration_since(at) >= MIN_INTERVAL);
        if !is_due && !is_asked_for {
            return None;
        }
        (self.unknown, self.asked) = (unknown, Some(now));
        let fetched = fetch(&self.url).and_then(|text| Ok((KeySet::parse(&text)?, text)));
        match fetched {
            Ok((keys, text)) => {
                self.due = now.checked_add(self.refresh);
                if self.pause.take().is_some() {
                    log::info!("authentication: '{}' answers again", self.url);
                }
                let is_new = text != self.text;
                self.text = text;
                is_new.then_some(keys)
            }
            Err(error) => {
                self.failed(now, &error);
                None
            }
        }
    }

    /// Logs a failure once, until a fetch succeeds again.
    fn failed(&mut self, now: Instant, error: &anyhow::Error) {
        let pause = match self.pause {
            None => {
                log::error!(
                    "authentication: the keys of '{}' could not be fetched, so the previous ones stay: {error:#}",
                    self.url
                );
                FIRST_PAUSE
            }
            Some(pause) => pause.saturating_mul(2),
        };
        let pause = pause.min(self.refresh.max(FIRST_PAUSE));
        self.pause = Some(pause);
        self.due = now.checked_add(pause);
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const KEYS: &str = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "KID", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

    fn keys(kid: &str) -> Vec<u8> {
        KEYS.replace("KID", kid).into_bytes()
    }

    fn fetched() -> FetchedKeys {
        FetchedKeys::new("https://issuer/keys".to_owned(), 60 * SECOND)
    }

    #[test]
    fn keys_are_fetched_at_once_and_then_at_intervals() {
        let (mut source, start) = (fetched(), Instant::now());
        let never = |_: &str| -> Result<Vec<u8>> { panic!("it is not time") };
        assert!(source.look(start, 0, |_| Ok(keys("a"))).is_some());
        assert!(source.look(start + 59 * SECOND, 0, never).is_none());
        assert!(source.look(start + 60 * SECOND, 0, |_| Ok(keys("a"))).is_none(), "the same");
        assert!(source.look(start + 120 * SECOND, 0, |_| Ok(keys("b"))).is_some());
    }

    #[test]
    fn an_unknown_key_triggers_an_early_fetch_at_a_limited_rate() {
        let (mut source, start) = (fetched(), Instant::now());
        let never = |_: &str| -> Result<Vec<u8>> { panic!("too often") };
        assert!(source.look(start, 0, |_| Ok(keys("a"))).is_some());
        assert!(source.look(start + 4 * SECOND, 1, never).is_none());
        assert!(source.look(start + 5 * SECOND, 1, |_| Ok(keys("b"))).is_some());
        assert!(source.look(start + 30 * SECOND, 1, never).is_none(), "that one was asked for");
        assert!(source.look(start + 31 * SECOND, 2, |_| Ok(keys("c"))).is_some());
    }

    #[test]
    fn a_failed_fetch_keeps_the_keys_and_is_retried_with_growing_pauses() {
        let (mut source, start) = (fetched(), Instant::now());
        assert!(source.look(start, 0, |_| Ok(keys("a"))).is_some());
        let mut at = start + 60 * SECOND;
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert!(source.look(at, 0, |_| bail!("down")).is_none());
            let never = |_: &str| -> Result<Vec<u8>> { panic!("too early") };
            let before = at + Duration::from_millis(pause * 1000 - 1);
            assert!(source.look(before, 0, never).is_none());
            at += Duration::from_secs(pause);
        }
        assert!(source.look(at, 0, |_| Ok(b"{}".to_vec())).is_none(), "no keys is a failure too");
        assert!(source.look(at + 60 * SECOND, 0, |_| Ok(keys("b"))).is_some());
    }
}
