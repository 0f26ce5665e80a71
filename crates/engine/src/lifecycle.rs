//! The state of every model version: a small state machine with one record per version.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Condvar, Mutex, MutexGuard},
    time::Instant,
};

use galatea_types::{CondvarExt, LockExt};

use crate::model_id::ModelId;

/// Where a model version stands. The only moves are: nothing → Loading → Ready or Unavailable;
/// Ready → Unloading → Unavailable; Unavailable → Loading. A reload moves a Ready version nowhere until the
/// new one is ready beside it: then the record passes to the new one (see [`Generation`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VersionState {
    Loading,
    /// `reason`: why its instances could not be changed as they were to be last; empty if nothing was wrong.
    Ready {
        reason: String,
    },
    Unloading,
    Unavailable {
        reason: String,
    },
}

impl VersionState {
    pub fn name(&self) -> &'static str {
        match self {
            VersionState::Loading => "LOADING",
            VersionState::Ready { .. } => READY,
            VersionState::Unloading => "UNLOADING",
            VersionState::Unavailable { .. } => "UNAVAILABLE",
        }
    }

    fn is_ready(&self) -> bool {
        matches!(self, VersionState::Ready { .. })
    }

    pub fn reason(&self) -> &str {
        match self {
            VersionState::Ready { reason } | VersionState::Unavailable { reason } => reason,
            _ => "",
        }
    }
}

/// The name of the state of a version that answers requests.
pub(crate) const READY: &str = "READY";

/// The reason of a version that was unloaded on purpose: such a version does not make the server unready.
pub(crate) const UNLOADED: &str = "unloaded";

/// Distinguishes two loads of one version: what is unloaded after a reload must not touch its successor's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation(u64);

#[derive(Debug)]
struct Record {
    state: VersionState,
    owner: Generation,
    remembered: Remembered,
}

/// What stays of a version when it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Remembered {
    /// Its state and reason, for everybody.
    Always,
    /// That it was there: who asks for it reads that it is not ready, not that nobody ever heard of it. Its model is in
    /// no repository, so the index does not list it and the server is ready without it.
    AsRemoved,
    /// Nothing: no repository ever held the model, and it was never ready.
    Never,
}

/// Longest reason that is kept, in bytes: that of a failure may quote what a client sent.
const MAX_REASON: usize = 8 << 10;

/// Versions of one model that are not there any more and are remembered all the same. A client that brings its own
/// files can load version after version.
const MAX_PAST_VERSIONS: usize = 256;

/// Models that were in a repository and are remembered: names can come and go in one that is polled.
const MAX_REMOVED_MODELS: usize = 1024;

/// Why a model has no version at all: reading ("polling") it from the repository failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PollFailure {
    /// Its folder or configuration could not be read. As in Triton, the server is ready all the same.
    Unreadable(String),
    /// It could be read, but no version is to be served: the server is not ready.
    NoVersion(String),
}

impl PollFailure {
    pub fn into_reason(self) -> String {
        match self {
            PollFailure::Unreadable(reason) | PollFailure::NoVersion(reason) => reason,
        }
    }
}

#[derive(Debug, Default)]
struct Table {
    models: BTreeMap<ModelId, BTreeMap<i64, Record>>,
    /// Models that have no version, and why.
    poll_failures: BTreeMap<ModelId, PollFailure>,
    /// Those whose record has passed to a later load and that are still answering requests: the exit waits for them
    /// too.
    replaced: BTreeSet<Generation>,
    last_generation: u64,
}

/// The state of every model version the server has tried to load.
#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
    table: Mutex<Table>,
    changed: Condvar,
}

impl Lifecycle {
    /// A load of this version begins. A version that is ready stays READY meanwhile. `is_transient`: no repository
    /// holds the model.
    pub fn begin_loading(&self, model: &ModelId, version: i64, is_transient: bool) -> Generation {
        let mut table = self.lock();
        table.last_generation += 1;
        let generation = Generation(table.last_generation);
        table.poll_failures.remove(model);
        let versions = table.models.entry(model.clone()).or_default();
        match versions.get(&version) {
            Some(Record { state: VersionState::Ready { .. }, .. }) => {}
            _ => {
                let state = VersionState::Loading;
                let remembered = match is_transient {
                    true => Remembered::Never,
                    false => Remembered::Always,
                };
                let record = Record { state, owner: generation, remembered };
                let before = versions.insert(version, record);
                table.keep_replaced(before);
            }
        }
        generation
    }

    /// The version is ready.
    pub fn loaded(&self, model: &ModelId, version: i64, generation: Generation) {
        let mut table = self.lock();
        let versions = table.models.entry(model.clone()).or_default();
        let known = versions.get(&version);
        let remembered = known.map_or(Remembered::Always, |record| record.remembered);
        let remembered = remembered.min(Remembered::AsRemoved);
        let state = VersionState::Ready { reason: String::new() };
        let before = versions.insert(version, Record { state, owner: generation, remembered });
        table.keep_replaced(before.filter(|record| record.owner != generation));
        self.changed.notify_all();
    }

    /// Its instances were changed while it was ready, or could not be, for a reason.
    pub fn changed(
        &self,
        model: &ModelId,
        version: i64,
        generation: Generation,
        outcome: Option<&str>,
    ) {
        let reason = shortened(outcome.unwrap_or_default().to_owned());
        let mut table = self.lock();
        let record = table.models.get_mut(model).and_then(|versions| versions.get_mut(&version));
        let is_ready = |r: &&mut Record| r.owner == generation && r.state.is_ready();
        if let Some(record) = record.filter(is_ready) {
            record.state = VersionState::Ready { reason };
        }
    }

    /// The load failed. What was ready before still is, so its record stays.
    pub fn failed(&self, model: &ModelId, version: i64, generation: Generation, reason: String) {
        let reason = shortened(reason);
        self.change_own(model, version, generation, VersionState::Unavailable { reason });
    }

    /// No request finds the version any more.
    pub fn unloading(&self, model: &ModelId, version: i64, generation: Generation) {
        self.change_own(model, version, generation, VersionState::Unloading);
    }

    /// The version is gone.
    pub fn unloaded(&self, model: &ModelId, version: i64, generation: Generation) {
        let reason = UNLOADED.to_owned();
        self.change_own(model, version, generation, VersionState::Unavailable { reason });
    }

    pub fn set_poll_failure(&self, model: &ModelId, why: PollFailure) {
        let why = match why {
            PollFailure::Unreadable(reason) => PollFailure::Unreadable(shortened(reason)),
            PollFailure::NoVersion(reason) => PollFailure::NoVersion(shortened(reason)),
        };
        self.lock().poll_failures.insert(model.clone(), why);
        self.changed.notify_all();
    }

    /// No repository holds the model any more.
    pub fn removed(&self, model: &ModelId) {
        let mut table = self.lock();
        table.poll_failures.remove(model);
        for record in table.models.get_mut(model).into_iter().flat_map(BTreeMap::values_mut) {
            record.remembered = record.remembered.max(Remembered::AsRemoved);
        }
        table.forget_past(model);
        table.forget_removed();
    }

    pub fn versions(&self, model: &ModelId) -> Vec<(i64, VersionState)> {
        self.lock()
            .models
            .get(model)
            .into_iter()
            .flatten()
            .map(|(&v, r)| (v, r.state.clone()))
            .collect()
    }

    pub fn poll_failure(&self, model: &ModelId) -> Option<PollFailure> {
        self.lock().poll_failures.get(model).cloned()
    }

    /// Whether the model could be read, and no version of it is to be served.
    pub fn has_no_version(&self, model: &ModelId) -> bool {
        matches!(self.lock().poll_failures.get(model), Some(PollFailure::NoVersion(_)))
    }

    /// All models that have a state of some kind, but for those that were removed.
    pub fn models(&self) -> Vec<ModelId> {
        let table = self.lock();
        let is_there =
            |versions: &BTreeMap<i64, Record>| !versions.values().all(Record::is_removed);
        let models = table.models.iter().filter(|(_, versions)| is_there(versions));
        models.map(|(name, _)| name).chain(table.poll_failures.keys()).cloned().collect()
    }

    /// Strict readiness: every version ever tried is ready or was unloaded on purpose, and no model is
    /// without a version.
    pub fn is_all_ready(&self) -> bool {
        let table = self.lock();
        let is_fine =
            |r: &Record| r.state.is_ready() || r.state.reason() == UNLOADED || r.is_removed();
        let is_unreadable = |f: &PollFailure| matches!(f, PollFailure::Unreadable(_));
        table.poll_failures.values().all(is_unreadable)
            && table.models.values().flat_map(BTreeMap::values).all(is_fine)
    }

    /// Waits until no version is loading, ready or unloading, those included that others have replaced. False when `deadline` passes first.
    pub fn wait_until_idle(&self, deadline: Instant) -> bool {
        let mut table = self.lock();
        loop {
            if count_live(&table) == 0 {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            table = self.changed.wait_timeout_unpoisoned(table, left).0;
        }
    }

    /// Versions that are loading, ready or unloading.
    pub fn live_count(&self) -> usize {
        count_live(&self.lock())
    }

    fn change_own(
        &self,
        model: &ModelId,
        version: i64,
        generation: Generation,
        state: VersionState,
    ) {
        let mut table = self.lock();
        let is_over = matches!(state, VersionState::Unavailable { .. });
        if is_over && table.replaced.remove(&generation) {
            self.changed.notify_all();
        }
        let record = table.models.get_mut(model).and_then(|versions| versions.get_mut(&version));
        if let Some(record) = record.filter(|r| r.owner == generation) {
            record.state = state;
            table.forget_past(model);
            table.forget_removed();
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock_unpoisoned()
    }
}

impl Table {
    /// Remembers who a record belonged to until that is unloaded, where it was in use.
    fn keep_replaced(&mut self, before: Option<Record>) {
        let is_used = |r: &Record| r.state.is_ready() || r.state == VersionState::Unloading;
        self.replaced.extend(before.filter(is_used).map(|r| r.owner));
    }

    /// Forgets versions of a model that are gone and that nobody has to know about.
    fn forget_past(&mut self, model: &ModelId) {
        let Some(versions) = self.models.get_mut(model) else { return };
        versions.retain(|_, record| !(record.remembered == Remembered::Never && record.is_past()));
        let past = versions.iter().filter(|(_, record)| record.is_past());
        let oldest = past.map(|(&version, record)| (record.owner, version)).min();
        let excess = versions.values().filter(|r| r.is_past()).count() > MAX_PAST_VERSIONS;
        if let Some((_, version)) = oldest.filter(|_| excess) {
            versions.remove(&version);
        }
        if versions.is_empty() {
            self.models.remove(model);
        }
    }

    /// Forgets the model that was removed first, where too many are remembered.
    fn forget_removed(&mut self) {
        let removed = || self.models.iter().filter(|(_, v)| v.values().all(Record::is_removed));
        if removed().count() <= MAX_REMOVED_MODELS {
            return;
        }
        let last_owner = |v: &BTreeMap<i64, Record>| v.values().map(|record| record.owner).max();
        let oldest = removed().min_by_key(|(_, versions)| last_owner(versions));
        if let Some(name) = oldest.map(|(name, _)| name.clone()) {
            self.models.remove(&name);
        }
    }
}

impl Record {
    fn is_past(&self) -> bool {
        matches!(self.state, VersionState::Unavailable { .. })
    }

    /// Whether the version is gone, and its model with it.
    fn is_removed(&self) -> bool {
        self.remembered == Remembered::AsRemoved && self.is_past()
    }
}

fn shortened(mut reason: String) -> String {
    if reason.len() > MAX_REASON {
        let dropped = reason.len() - MAX_REASON;
        reason.truncate(reason.floor_char_boundary(MAX_REASON));
        reason.push_str(&format!("... ({dropped} bytes more)"));
        reason.shrink_to_fit();
    }
    reason
}

fn count_live(table: &Table) -> usize {
    let is_live = |r: &&Record| !matches!(r.state, VersionState::Unavailable { .. });
    table.models.values().flat_map(BTreeMap::values).filter(is_live).count() + table.replaced.len()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn state(lifecycle: &Lifecycle, version: i64) -> String {
        let versions = lifecycle.versions(&"m".into());
        let (_, state) = versions.iter().find(|(v, _)| *v == version).expect("known version");
        format!("{} {}", state.name(), state.reason())
    }

    #[test]
    fn the_life_of_a_version() {
        let lifecycle = Lifecycle::default();
        let first = lifecycle.begin_loading(&"m".into(), 1, false);
        assert_eq!(state(&lifecycle, 1), "LOADING ");
        assert!(!lifecycle.is_all_ready());
        lifecycle.loaded(&"m".into(), 1, first);
        assert_eq!(state(&lifecycle, 1), "READY ");
        lifecycle.unloading(&"m".into(), 1, first);
        assert!(!lifecycle.wait_until_idle(Instant::now()));
        lifecycle.unloaded(&"m".into(), 1, first);
        assert_eq!(state(&lifecycle, 1), "UNAVAILABLE unloaded");
        assert!(lifecycle.is_all_ready());
        assert!(lifecycle.wait_until_idle(Instant::now() + Duration::from_secs(1)));
    }

    #[test]
    fn an_unload_after_a_reload_leaves_the_new_record_alone() {
        let lifecycle = Lifecycle::default();
        let old = lifecycle.begin_loading(&"m".into(), 1, false);
        lifecycle.loaded(&"m".into(), 1, old);
        let new = lifecycle.begin_loading(&"m".into(), 1, false);
        assert_eq!(state(&lifecycle, 1), "READY ");
        lifecycle.loaded(&"m".into(), 1, new);
        lifecycle.unloading(&"m".into(), 1, old);
        lifecycle.unloaded(&"m".into(), 1, old);
        assert_eq!(state(&lifecycle, 1), "READY ");
    }

    #[test]
    fn a_failed_reload_keeps_the_old_one_ready() {
        let lifecycle = Lifecycle::default();
        let old = lifecycle.begin_loading(&"m".into(), 1, false);
        lifecycle.loaded(&"m".into(), 1, old);
        let new = lifecycle.begin_loading(&"m".into(), 1, false);
        lifecycle.failed(&"m".into(), 1, new, "no such file".to_owned());
        assert_eq!(state(&lifecycle, 1), "READY ");
        lifecycle.failed(&"m".into(), 1, old, "gone".to_owned());
        assert_eq!(state(&lifecycle, 1), "UNAVAILABLE gone");
    }

    #[test]
    fn a_model_that_no_repository_holds_is_known_only_if_it_was_ready() {
        let lifecycle = Lifecycle::default();
        let failing = lifecycle.begin_loading(&"m".into(), 1, true);
        lifecycle.failed(&"m".into(), 1, failing, "no such file".to_owned());
        let other = lifecycle.begin_loading(&"m".into(), 2, true);
        lifecycle.loaded(&"m".into(), 2, other);
        assert_eq!(state(&lifecycle, 2), "READY ");
        lifecycle.unloading(&"m".into(), 2, other);
        lifecycle.unloaded(&"m".into(), 2, other);
        let known: Vec<_> = lifecycle.versions(&"m".into()).iter().map(|(v, _)| *v).collect();
        assert_eq!(known, [2]);
        assert_eq!(lifecycle.models(), []);
        assert!(lifecycle.is_all_ready());
    }

    #[test]
    fn a_model_that_was_removed_is_known_and_not_listed() {
        let lifecycle = Lifecycle::default();
        let first = lifecycle.begin_loading(&"m".into(), 1, false);
        lifecycle.loaded(&"m".into(), 1, first);
        let failing = lifecycle.begin_loading(&"m".into(), 2, false);
        lifecycle.failed(&"m".into(), 2, failing, "no such file".to_owned());
        lifecycle.removed(&"m".into());
        assert_eq!(lifecycle.models(), ["m".into()]);
        lifecycle.unloading(&"m".into(), 1, first);
        lifecycle.unloaded(&"m".into(), 1, first);
        assert_eq!(lifecycle.models(), []);
        assert_eq!(lifecycle.versions(&"m".into()).len(), 2);
        assert!(lifecycle.is_all_ready());
        let again = lifecycle.begin_loading(&"m".into(), 1, false);
        lifecycle.loaded(&"m".into(), 1, again);
        assert_eq!(lifecycle.models(), ["m".into()]);
    }

    #[test]
    fn removed_models_are_bounded() {
        let lifecycle = Lifecycle::default();
        for number in 0..=MAX_REMOVED_MODELS {
            let name = format!("m{number}");
            let generation = lifecycle.begin_loading(&name.as_str().into(), 1, false);
            lifecycle.failed(&name.as_str().into(), 1, generation, "no such file".to_owned());
            lifecycle.removed(&name.as_str().into());
        }
        assert_eq!(lifecycle.versions(&"m0".into()), []);
        assert_eq!(lifecycle.versions(&"m1".into()).len(), 1);
    }

    #[test]
    fn past_versions_and_reasons_are_bounded() {
        let lifecycle = Lifecycle::default();
        for version in 1..=1000 {
            let generation = lifecycle.begin_loading(&"m".into(), version, false);
            lifecycle.failed(&"m".into(), version, generation, "ö".repeat(1 << 20));
        }
        let versions = lifecycle.versions(&"m".into());
        assert_eq!((versions.len(), versions[0].0), (MAX_PAST_VERSIONS, 745));
        let reason = versions[0].1.reason();
        assert!(reason.len() < MAX_REASON + 50 && reason.ends_with("(2088960 bytes more)"));
    }
}
