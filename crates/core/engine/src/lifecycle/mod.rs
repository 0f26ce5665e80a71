//! The state of every model version: a small state machine with one record per version.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use galatea_telemetry::{families::MODEL_READY, metrics::Figures};
use galatea_types::{Clock, LockExt};

use crate::model_id::ModelId;

/// The state of a model version. The only transitions are: nothing → Loading → Ready or Unavailable; Ready → Unloading →
/// Unavailable; Unavailable → Loading. During a reload, a Ready version stays so until the new one is ready too; then
/// the record passes to the new one (see [`Generation`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VersionState {
    Loading,
    /// `reason` says why the last change of its instances failed; empty if none did.
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

/// The reason of a version that was unloaded on purpose, which does not make the server unready.
pub(crate) const UNLOADED: &str = "unloaded";

/// A number that differs for each load of this process. It distinguishes two loads of one version: an unload after a reload
/// must not change the record of the newer load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation(pub u64);

#[derive(Debug)]
struct Record {
    state: VersionState,
    owner: Generation,
    remembered: ForgottenVersion,
}

/// The information that is kept about a version after its unload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ForgottenVersion {
    /// Its state and reason, for all callers.
    Always,
    /// Only that it existed, so that callers read that it is not ready instead of unknown. Its model is in no
    /// repository, so the index does not list it, and the server is ready without it.
    AsRemoved,
    /// Nothing: no repository ever had the model, and it was never ready.
    Never,
}

/// The longest reason kept, in bytes: a failure may quote a client's input.
const MAX_REASON: usize = 8 << 10;

/// The largest number of unloaded versions of one model that are remembered. A client that sends its own files can load
/// version after version.
const MAX_PAST_VERSIONS: usize = 256;

/// The largest number of removed models that are remembered: names can come and go in a polled repository.
const MAX_REMOVED_MODELS: usize = 1024;

/// The reason why a model has no version: reading ("polling") it from the repository failed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PollFailure {
    reason: String,
    /// True if it was read but has no version to serve: the server is not ready. If its folder or configuration could not be
    /// read, the server is ready, as in Triton.
    was_read: bool,
}

#[derive(Debug, Default)]
struct Table {
    models: BTreeMap<ModelId, BTreeMap<i64, Record>>,
    /// Models without a version, and the reasons.
    poll_failures: BTreeMap<ModelId, PollFailure>,
    /// The line of the configuration that made a model fail, with the mistake.
    excerpts: BTreeMap<ModelId, String>,
    /// Loads whose record has passed to a later load and that still answer requests. The exit waits for them too.
    replaced: BTreeSet<Generation>,
    last_generation: u64,
}

/// The state of every model version the server has tried to load.
#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
    table: Mutex<Table>,
    changed: Condvar,
    revision: AtomicU64,
    /// The clock that decides when a wait is over.
    pub clock: Clock,
}

impl Lifecycle {
    /// Creates a table without versions. `clock` decides when a wait is over.
    pub fn by_clock(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }

    /// Begins a load of this version. A ready version stays READY meanwhile. `is_transient` is true if no repository has
    /// the model.
    pub fn begin_loading(&self, model: &ModelId, version: i64, is_transient: bool) -> Generation {
        let mut table = self.change();
        table.last_generation += 1;
        let generation = Generation(table.last_generation);
        table.poll_failures.remove(model);
        table.excerpts.remove(model);
        let versions = table.models.entry(model.clone()).or_default();
        if !versions.get(&version).is_some_and(|record| record.state.is_ready()) {
            let remembered =
                if is_transient { ForgottenVersion::Never } else { ForgottenVersion::Always };
            let record = Record { state: VersionState::Loading, owner: generation, remembered };
            let before = versions.insert(version, record);
            table.keep_replaced(before);
        }
        generation
    }

    pub fn loaded(&self, model: &ModelId, version: i64, generation: Generation) {
        let mut table = self.change();
        let versions = table.models.entry(model.clone()).or_default();
        let known = versions.get(&version);
        let remembered = known.map_or(ForgottenVersion::Always, |record| record.remembered);
        let remembered = remembered.min(ForgottenVersion::AsRemoved);
        let state = VersionState::Ready { reason: String::new() };
        let before = versions.insert(version, Record { state, owner: generation, remembered });
        table.keep_replaced(before.filter(|record| record.owner != generation));
        self.changed.notify_all();
    }

    /// Records that its instances were changed while it was ready, or the reason why they could not be.
    pub fn changed(
        &self,
        model: &ModelId,
        version: i64,
        generation: Generation,
        outcome: Option<&str>,
    ) {
        let reason = shortened(outcome.unwrap_or_default().to_owned());
        let mut table = self.change();
        let record = table.record(model, version, generation);
        if let Some(record) = record.filter(|record| record.state.is_ready()) {
            record.state = VersionState::Ready { reason };
        }
    }

    /// Records that the load failed. A version that was ready before keeps its record.
    pub fn failed(&self, model: &ModelId, version: i64, generation: Generation, reason: String) {
        let reason = shortened(reason);
        self.change_own(model, version, generation, VersionState::Unavailable { reason });
    }

    /// Records that no request finds the version any more.
    pub fn unloading(&self, model: &ModelId, version: i64, generation: Generation) {
        self.change_own(model, version, generation, VersionState::Unloading);
    }

    pub fn unloaded(&self, model: &ModelId, version: i64, generation: Generation) {
        let reason = UNLOADED.to_owned();
        self.change_own(model, version, generation, VersionState::Unavailable { reason });
    }

    /// Records that the model has no version. `was_read` is true if it was read but has none to serve.
    pub fn set_poll_failure(&self, model: &ModelId, was_read: bool, reason: &str) {
        let reason = shortened(reason.to_owned());
        let failure = PollFailure { reason, was_read };
        self.change().poll_failures.insert(model.clone(), failure);
        self.changed.notify_all();
    }

    /// Records that no repository has the model any more.
    pub fn removed(&self, model: &ModelId) {
        let mut table = self.change();
        table.poll_failures.remove(model);
        table.excerpts.remove(model);
        for record in table.models.get_mut(model).into_iter().flat_map(BTreeMap::values_mut) {
            record.remembered = record.remembered.max(ForgottenVersion::AsRemoved);
        }
        table.forget_past(model);
        table.forget_removed();
    }

    pub fn versions(&self, model: &ModelId) -> Vec<(i64, VersionState)> {
        let table = self.lock();
        let versions = table.models.get(model).into_iter().flatten();
        versions.map(|(&version, record)| (version, record.state.clone())).collect()
    }

    /// Records the line of the configuration, with a caret, that made a model fail. Ignores unknown models.
    pub fn set_excerpt(&self, model: &ModelId, excerpt: String) {
        let mut table = self.change();
        if table.models.contains_key(model) || table.poll_failures.contains_key(model) {
            table.excerpts.insert(model.clone(), shortened(excerpt));
        }
    }

    /// Returns the line of its configuration that made a model fail, with a caret; empty if there is none.
    pub fn excerpt(&self, model: &ModelId) -> String {
        self.lock().excerpts.get(model).cloned().unwrap_or_default()
    }

    pub fn poll_failure(&self, model: &ModelId) -> Option<String> {
        self.lock().poll_failures.get(model).map(|failure| failure.reason.clone())
    }

    /// Returns true if the model could be read but has no version to serve.
    pub fn has_no_version(&self, model: &ModelId) -> bool {
        self.lock().poll_failures.get(model).is_some_and(|failure| failure.was_read)
    }

    /// Returns all models with a state, except removed ones.
    pub fn models(&self) -> Vec<ModelId> {
        let table = self.lock();
        let is_there =
            |versions: &BTreeMap<i64, Record>| !versions.values().all(Record::is_removed);
        let models = table.models.iter().filter(|(_, versions)| is_there(versions));
        models.map(|(name, _)| name).chain(table.poll_failures.keys()).cloned().collect()
    }

    /// Adds the readiness of each version, except those that were unloaded on purpose or removed.
    pub fn add_figures(&self, figures: &mut Figures) {
        let table = self.lock();
        let is_shown = |r: &Record| r.state.reason() != UNLOADED && !r.is_removed();
        for (id, versions) in &table.models {
            for (&version, record) in versions.iter().filter(|(_, record)| is_shown(record)) {
                let is_ready = u64::from(record.state.is_ready());
                figures.set_of_model(&MODEL_READY, &id.labels(Some(version)), is_ready);
            }
        }
        for id in table.poll_failures.keys() {
            figures.set_of_model(&MODEL_READY, &id.labels(None), 0);
        }
    }

    /// Returns true under strict readiness: every version ever tried is ready or was unloaded on purpose, and every model
    /// has a version.
    pub fn is_all_ready(&self) -> bool {
        let table = self.lock();
        let is_fine =
            |r: &Record| r.state.is_ready() || r.state.reason() == UNLOADED || r.is_removed();
        !table.poll_failures.values().any(|failure| failure.was_read)
            && table.models.values().flat_map(BTreeMap::values).all(is_fine)
    }

    /// Waits until no version is loading, ready or unloading, also of replaced loads. Returns false if `deadline` passes first.
    pub fn wait_until_idle(&self, deadline: Instant) -> bool {
        let is_live = |table: &mut Table| count_live(table) > 0;
        !self.clock.wait_while_until(&self.changed, self.lock(), deadline, is_live).1
    }

    /// Returns the number of versions that are loading, ready or unloading.
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
        let mut table = self.change();
        let is_over = matches!(state, VersionState::Unavailable { .. });
        if is_over && table.replaced.remove(&generation) {
            self.changed.notify_all();
        }
        if let Some(record) = table.record(model, version, generation) {
            record.state = state;
            table.forget_past(model);
            table.forget_removed();
            self.changed.notify_all();
        }
    }

    /// Returns a number that differs after every change: two equal numbers mean that nothing changed between them.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Records a change of the ready models whose state was recorded before.
    pub fn touch(&self) {
        self.revision.fetch_add(1, Ordering::Release);
    }

    /// Locks the table for a change. A caller that sees the new revision finds the changed table, or waits for it.
    fn change(&self) -> MutexGuard<'_, Table> {
        let table = self.lock();
        self.touch();
        table
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock_unpoisoned()
    }
}

impl Table {
    /// Returns the record of a version, if it belongs to this load.
    fn record(&mut self, model: &ModelId, version: i64, owner: Generation) -> Option<&mut Record> {
        self.models.get_mut(model)?.get_mut(&version).filter(|record| record.owner == owner)
    }

    /// Keeps the load that a record belonged to until its unload, if it was in use.
    fn keep_replaced(&mut self, before: Option<Record>) {
        let is_used = |r: &Record| r.state.is_ready() || r.state == VersionState::Unloading;
        self.replaced.extend(before.filter(is_used).map(|r| r.owner));
    }

    /// Forgets unloaded versions of a model that need not be remembered.
    fn forget_past(&mut self, model: &ModelId) {
        let Some(versions) = self.models.get_mut(model) else { return };
        versions.retain(|_, record| {
            !(record.remembered == ForgottenVersion::Never && record.is_past())
        });
        let past = versions.iter().filter(|(_, record)| record.is_past());
        let oldest = past.map(|(&version, record)| (record.owner, version)).min();
        let excess = versions.values().filter(|r| r.is_past()).count() > MAX_PAST_VERSIONS;
        if let Some((_, version)) = oldest.filter(|_| excess) {
            versions.remove(&version);
        }
        if versions.is_empty() {
            self.models.remove(model);
            self.excerpts.remove(model);
        }
    }

    /// Forgets the model that was removed first, if too many are remembered.
    fn forget_removed(&mut self) {
        let removed = || self.models.iter().filter(|(_, v)| v.values().all(Record::is_removed));
        if removed().count() <= MAX_REMOVED_MODELS {
            return;
        }
        let last_owner = |v: &BTreeMap<i64, Record>| v.values().map(|record| record.owner).max();
        let oldest = removed().min_by_key(|(_, versions)| last_owner(versions));
        if let Some(name) = oldest.map(|(name, _)| name.clone()) {
            self.models.remove(&name);
            self.excerpts.remove(&name);
        }
    }
}

impl Record {
    fn is_past(&self) -> bool {
        matches!(self.state, VersionState::Unavailable { .. })
    }

    /// Returns true if the version is unloaded and its model removed.
    fn is_removed(&self) -> bool {
        self.remembered == ForgottenVersion::AsRemoved && self.is_past()
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
mod tests;
