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

/// A number that is different for each load of this process. It distinguishes two loads of one version: what is unloaded
/// after a reload must not touch its successor's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation(pub u64);

#[derive(Debug)]
struct Record {
    state: VersionState,
    owner: Generation,
    remembered: ForgottenVersion,
}

/// What stays of a version when it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ForgottenVersion {
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
struct PollFailure {
    reason: String,
    /// It could be read, but no version is to be served: the server is not ready. Where its folder or configuration could
    /// not be read, the server is ready all the same, as in Triton.
    was_read: bool,
}

#[derive(Debug, Default)]
struct Table {
    models: BTreeMap<ModelId, BTreeMap<i64, Record>>,
    /// Models that have no version, and why.
    poll_failures: BTreeMap<ModelId, PollFailure>,
    /// Of models that failed for a line of their configuration, and are known here: that line, with what is wrong there.
    excerpts: BTreeMap<ModelId, String>,
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
    revision: AtomicU64,
    /// Tells when a wait is over.
    pub clock: Clock,
}

impl Lifecycle {
    /// Without any version. `clock` tells when a wait is over.
    pub fn by_clock(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }

    /// A load of this version begins. A version that is ready stays READY meanwhile. `is_transient`: no repository
    /// holds the model.
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

    /// Its instances were changed while it was ready, or could not be, for a reason.
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

    /// The load failed. What was ready before still is, so its record stays.
    pub fn failed(&self, model: &ModelId, version: i64, generation: Generation, reason: String) {
        let reason = shortened(reason);
        self.change_own(model, version, generation, VersionState::Unavailable { reason });
    }

    /// No request finds the version any more.
    pub fn unloading(&self, model: &ModelId, version: i64, generation: Generation) {
        self.change_own(model, version, generation, VersionState::Unloading);
    }

    pub fn unloaded(&self, model: &ModelId, version: i64, generation: Generation) {
        let reason = UNLOADED.to_owned();
        self.change_own(model, version, generation, VersionState::Unavailable { reason });
    }

    /// The model has no version. `was_read`: because none is to be served.
    pub fn set_poll_failure(&self, model: &ModelId, was_read: bool, reason: &str) {
        let reason = shortened(reason.to_owned());
        let failure = PollFailure { reason, was_read };
        self.change().poll_failures.insert(model.clone(), failure);
        self.changed.notify_all();
    }

    /// No repository holds the model any more.
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

    /// Why a model that has just failed did: the line of its configuration, with a caret. Not for one that is not known.
    pub fn set_excerpt(&self, model: &ModelId, excerpt: String) {
        let mut table = self.change();
        if table.models.contains_key(model) || table.poll_failures.contains_key(model) {
            table.excerpts.insert(model.clone(), shortened(excerpt));
        }
    }

    /// The line of its configuration that a model failed for, with a caret; empty where there is none.
    pub fn excerpt(&self, model: &ModelId) -> String {
        self.lock().excerpts.get(model).cloned().unwrap_or_default()
    }

    pub fn poll_failure(&self, model: &ModelId) -> Option<String> {
        self.lock().poll_failures.get(model).map(|failure| failure.reason.clone())
    }

    /// Whether the model could be read, and no version of it is to be served.
    pub fn has_no_version(&self, model: &ModelId) -> bool {
        self.lock().poll_failures.get(model).is_some_and(|failure| failure.was_read)
    }

    /// All models that have a state of some kind, but for those that were removed.
    pub fn models(&self) -> Vec<ModelId> {
        let table = self.lock();
        let is_there =
            |versions: &BTreeMap<i64, Record>| !versions.values().all(Record::is_removed);
        let models = table.models.iter().filter(|(_, versions)| is_there(versions));
        models.map(|(name, _)| name).chain(table.poll_failures.keys()).cloned().collect()
    }

    /// Whether each version answers requests. Those that were unloaded on purpose or removed are left out.
    pub fn add_figures(&self, figures: &mut Figures) {
        let table = self.lock();
        let is_shown = |r: &Record| r.state.reason() != UNLOADED && !r.is_removed();
        for (id, versions) in &table.models {
            for (&version, record) in versions.iter().filter(|(_, record)| is_shown(record)) {
                let name = (&*id.namespace, &*id.name);
                let is_ready = u64::from(record.state.is_ready());
                figures.set_of_model(&MODEL_READY, name, Some(version), is_ready);
            }
        }
        for id in table.poll_failures.keys() {
            figures.set_of_model(&MODEL_READY, (&id.namespace, &id.name), None, 0);
        }
    }

    /// Strict readiness: every version ever tried is ready or was unloaded on purpose, and no model is
    /// without a version.
    pub fn is_all_ready(&self) -> bool {
        let table = self.lock();
        let is_fine =
            |r: &Record| r.state.is_ready() || r.state.reason() == UNLOADED || r.is_removed();
        !table.poll_failures.values().any(|failure| failure.was_read)
            && table.models.values().flat_map(BTreeMap::values).all(is_fine)
    }

    /// Waits until no version is loading, ready or unloading, those included that others have replaced. False when `deadline` passes first.
    pub fn wait_until_idle(&self, deadline: Instant) -> bool {
        let is_live = |table: &mut Table| count_live(table) > 0;
        !self.clock.wait_while_until(&self.changed, self.lock(), deadline, is_live).1
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

    /// Another number after every change: two that are the same have nothing between them.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// What is served has changed, and was told here before.
    pub fn touch(&self) {
        self.revision.fetch_add(1, Ordering::Release);
    }

    /// For a change: who sees the new revision finds the table as it is then, or waits for it.
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
    /// The record of a version, if it is that of this load.
    fn record(&mut self, model: &ModelId, version: i64, owner: Generation) -> Option<&mut Record> {
        self.models.get_mut(model)?.get_mut(&version).filter(|record| record.owner == owner)
    }

    /// Remembers who a record belonged to until that is unloaded, where it was in use.
    fn keep_replaced(&mut self, before: Option<Record>) {
        let is_used = |r: &Record| r.state.is_ready() || r.state == VersionState::Unloading;
        self.replaced.extend(before.filter(is_used).map(|r| r.owner));
    }

    /// Forgets versions of a model that are gone and that nobody has to know about.
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
            self.excerpts.remove(&name);
        }
    }
}

impl Record {
    fn is_past(&self) -> bool {
        matches!(self.state, VersionState::Unavailable { .. })
    }

    /// Whether the version is gone, and its model with it.
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
