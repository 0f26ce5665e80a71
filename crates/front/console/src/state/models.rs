//! All versions of all models, from one sample to the next.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use galatea_engine::{Engine, IndexEntry, ServedModel};
use galatea_frontend::without_middle;

use super::model::{FollowedVersion, ModelRow};
use crate::{history::VersionCounts, words::key};

/// The most versions that are shown.
const MOST: usize = 5000;
/// The number of samples after which repositories are searched for added models, because that reads folders.
const LISTED_EVERY: u32 = 5;
/// The most bytes of a reason, and of a reason after many other long ones.
const LONG_REASON: usize = 4 << 10;
const SHORT_REASON: usize = 256;
const MOST_LONG_REASONS: usize = 200;

/// All versions of all models. Dropping it stops the recording of durations.
#[derive(Debug, Default)]
pub(crate) struct Models {
    followed: BTreeMap<String, FollowedVersion>,
    removed: Vec<String>,
    left_out: usize,
    revision: Option<u64>,
    since_listed: u32,
}

impl Models {
    /// Reads all counters, `elapsed` after the last sample. It lists the models again if they may have changed.
    pub fn sample(&mut self, engine: &Engine, elapsed: Duration) {
        self.removed.clear();
        self.followed.values_mut().for_each(FollowedVersion::clear_changes);
        // Read before the list: the next sample finds a change that happens meanwhile.
        let revision = engine.revision();
        self.since_listed += 1;
        if self.revision != Some(revision) || self.since_listed >= LISTED_EVERY {
            (self.revision, self.since_listed) = (Some(revision), 0);
            self.list(engine);
        }
        self.followed.values_mut().for_each(|model| model.sample(elapsed));
    }

    fn list(&mut self, engine: &Engine) {
        // An error means that the start has failed and there are no models.
        let entries = engine.repository_index(false).unwrap_or_default();
        self.left_out = entries.len().saturating_sub(MOST);
        let served = served_by_key(engine);
        let mut before = std::mem::take(&mut self.followed);
        let mut long_reasons = 0;
        for mut entry in entries.into_iter().take(MOST) {
            shorten(&mut entry, &mut long_reasons);
            let key = key(&entry.namespace, &entry.name, entry.version);
            let served = served.get(&key);
            let followed = match before.remove(&key) {
                Some(mut known) => {
                    known.update(entry, served);
                    known
                }
                None => FollowedVersion::new(key.clone(), entry, served),
            };
            self.followed.insert(key, followed);
        }
        before.values().for_each(FollowedVersion::leave);
        self.removed.extend(before.into_keys());
    }

    /// Returns the counts of ready versions at the last sample.
    pub fn counted(&self) -> impl Iterator<Item = (&str, VersionCounts)> {
        self.followed.values().filter_map(FollowedVersion::counted)
    }

    pub fn rows(&self) -> Vec<ModelRow<'_>> {
        self.followed.values().map(FollowedVersion::row).collect()
    }

    /// Returns the versions that the last sample found changed.
    pub fn changed_rows(&self) -> Vec<ModelRow<'_>> {
        self.followed.values().filter_map(FollowedVersion::changed_row).collect()
    }

    /// Returns the keys of versions that the last sample no longer found.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// Returns the number of versions beyond the limit.
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

impl Drop for Models {
    fn drop(&mut self) {
        self.followed.values().for_each(FollowedVersion::leave);
    }
}

fn served_by_key(engine: &Engine) -> BTreeMap<String, Arc<ServedModel>> {
    let named = |model: Arc<ServedModel>| {
        let key = key(model.namespace(), model.config().name(), Some(model.version()));
        (key, model)
    };
    engine.ready_models().into_iter().map(named).collect()
}

fn shorten(entry: &mut IndexEntry, long_reasons: &mut usize) {
    let IndexEntry { reason, excerpt, .. } = entry;
    let reason = if excerpt.is_empty() { reason } else { excerpt };
    let most = if *long_reasons < MOST_LONG_REASONS { LONG_REASON } else { SHORT_REASON };
    if reason.len() > SHORT_REASON {
        *long_reasons += 1;
    }
    if reason.len() > most {
        *reason = without_middle(reason, most).into_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_long_reasons_are_cut_shorter() {
        let mut long_reasons = 0;
        let mut length = |bytes: usize| {
            let mut entry = IndexEntry {
                name: String::new(),
                namespace: String::new(),
                version: None,
                state: None,
                reason: "é".repeat(bytes / 2),
                excerpt: String::new(),
            };
            shorten(&mut entry, &mut long_reasons);
            entry.reason.len()
        };
        assert_eq!((length(100), length(4000), length(1 << 20)), (100, 4000, LONG_REASON - 1));
        (2..MOST_LONG_REASONS).for_each(|_| assert_eq!(length(1000), 1000));
        assert_eq!((length(100), length(4000)), (100, SHORT_REASON - 1));
    }
}
