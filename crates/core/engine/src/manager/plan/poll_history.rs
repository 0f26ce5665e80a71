//! Finds new and changed models in the repositories between two looks.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use super::{
    dependencies::Dependencies,
    reload_jitter::{ReloadJitter, ReloadWait},
};
use crate::{model_id::ModelId, repository::FolderSnapshot};

/// The results of earlier looks.
///
/// A folder that is being copied changes from one look to the next. So a model is loaded when two looks in a row found the
/// same.
#[derive(Debug, Default)]
pub(crate) struct PollHistory {
    /// The folders, at the last look, of models that are not loaded in that form.
    changed: BTreeMap<ModelId, FolderSnapshot>,
    /// Folders of models whose load failed.
    failed: BTreeMap<ModelId, FolderSnapshot>,
    jitter: ReloadJitter,
    wait: ReloadWait,
}

/// The result of a look: if another one should follow soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollOutcome {
    /// All models were loaded, or failed to load.
    Settled,
    /// A model is new or has changed, and may still be changing.
    Changing,
    /// Models are loaded after that time: [`ReloadJitter`].
    Waiting(Duration),
}

/// The folders of all models, and if every repository could be read.
#[derive(Debug, Default)]
pub(crate) struct PolledFolders {
    pub models: BTreeSet<ModelId>,
    /// Those that could be read.
    pub folders: BTreeMap<ModelId, FolderSnapshot>,
    pub is_complete: bool,
}

impl PolledFolders {
    /// Returns loaded models that were removed. A repository that cannot be read now still has its models.
    pub fn gone(&self, loaded: &Dependencies) -> BTreeSet<ModelId> {
        let gone = loaded.models().into_iter().filter(|id| !self.models.contains(id));
        if self.is_complete { gone.collect() } else { BTreeSet::new() }
    }

    /// Returns the models that are not loaded in their present form.
    pub fn not_loaded(mut self, loaded: &Dependencies) -> BTreeMap<ModelId, FolderSnapshot> {
        self.folders.retain(|id, now| loaded.snapshot(id) != Some(now));
        self.folders
    }
}

impl PollHistory {
    /// Returns the history before the first look.
    pub fn new(jitter: ReloadJitter) -> Self {
        Self { jitter, ..Self::default() }
    }

    /// Returns those of the models not loaded in their present form that must be loaded at the time `at`. With `retries`,
    /// includes those that failed in this form.
    pub fn settled(
        &mut self,
        now: BTreeMap<ModelId, FolderSnapshot>,
        retries: bool,
        at: Instant,
    ) -> BTreeMap<ModelId, FolderSnapshot> {
        self.failed.retain(|name, seen| now.get(name) == Some(seen));
        let has_failed = |id: &ModelId| self.failed.contains_key(id);
        let is_unchanged = |(id, seen): &(&ModelId, &FolderSnapshot)| {
            !has_failed(id) && self.changed.get(*id) == Some(*seen)
        };
        let first = now.iter().find(is_unchanged);
        let is_due = self.wait.is_over(&self.jitter, first.as_ref(), at);
        let is_settled = |row: &(&ModelId, &FolderSnapshot)| match has_failed(row.0) {
            true => retries,
            false => is_due && is_unchanged(row),
        };
        let settled: BTreeMap<_, _> =
            now.iter().filter(is_settled).map(|(n, s)| (n.clone(), s.clone())).collect();
        self.changed = now;
        self.changed
            .retain(|name, _| !settled.contains_key(name) && !self.failed.contains_key(name));
        settled
    }

    /// Records those of the settled models that could not be loaded.
    pub fn loaded(
        &mut self,
        settled: BTreeMap<ModelId, FolderSnapshot>,
        has_failed: impl Fn(&ModelId) -> bool,
    ) {
        self.failed.extend(settled.into_iter().filter(|(id, _)| has_failed(id)));
    }

    pub fn outcome(&self, at: Instant) -> PollOutcome {
        match (self.wait.left(at), self.changed.is_empty()) {
            (Some(left), _) => PollOutcome::Waiting(left),
            (None, true) => PollOutcome::Settled,
            (None, false) => PollOutcome::Changing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(files: &[&str]) -> FolderSnapshot {
        FolderSnapshot::of_listing(files.iter().map(|&file| (file, 0)))
    }

    fn names(settled: &BTreeMap<ModelId, FolderSnapshot>) -> Vec<&str> {
        settled.keys().map(|id| &*id.name).collect()
    }

    #[test]
    fn a_model_is_settled_after_two_equal_polls() {
        let (mut looks, at) = (PollHistory::default(), Instant::now());
        let now = |files: &[&str]| BTreeMap::from([(ModelId::from("m"), snapshot(files))]);
        assert_eq!(names(&looks.settled(now(&["1"]), true, at)), [""; 0]);
        assert_eq!(looks.outcome(at), PollOutcome::Changing);
        assert_eq!(names(&looks.settled(now(&["1", "2"]), true, at)), [""; 0]);
        let settled = looks.settled(now(&["1", "2"]), false, at);
        assert_eq!(names(&settled), ["m"]);
        assert_eq!(looks.outcome(at), PollOutcome::Settled);
        looks.loaded(settled, |_| true);
        assert_eq!(names(&looks.settled(now(&["1", "2"]), false, at)), [""; 0]);
        assert_eq!(looks.outcome(at), PollOutcome::Settled, "it failed as it is");
        assert_eq!(names(&looks.settled(now(&["1", "2"]), true, at)), ["m"], "and is tried again");
        assert_eq!(names(&looks.settled(now(&["1", "3"]), true, at)), [""; 0]);
        assert_eq!(names(&looks.settled(now(&["1", "3"]), false, at)), ["m"], "it changed");
    }
    #[test]
    fn with_jitter_settled_models_wait_together_and_are_compared_until_the_load() {
        let jitter = ReloadJitter { longest: Duration::from_secs(60), seed: 3 };
        let (mut looks, at) = (PollHistory::new(jitter), Instant::now());
        let now = |m: &str| {
            BTreeMap::from([
                (ModelId::from("m"), snapshot(&[m])),
                (ModelId::from("n"), snapshot(&["1"])),
            ])
        };
        let delay = jitter.delay(&(&ModelId::from("m"), &snapshot(&["1"])));
        let none = [""; 0];
        assert_eq!(names(&looks.settled(now("1"), true, at)), none);
        assert_eq!(looks.outcome(at), PollOutcome::Changing);
        assert_eq!(names(&looks.settled(now("1"), true, at)), none);
        assert_eq!(looks.outcome(at), PollOutcome::Waiting(delay));
        assert_eq!(names(&looks.settled(now("2"), true, at + delay)), ["n"], "m has changed");
        assert_eq!(looks.outcome(at + delay), PollOutcome::Changing);
        let (at, second) = (at + delay, jitter.delay(&(&ModelId::from("m"), &snapshot(&["2"]))));
        let mut left = now("2");
        left.remove(&ModelId::from("n"));
        assert_eq!(names(&looks.settled(left.clone(), true, at)), none);
        assert_eq!(looks.outcome(at), PollOutcome::Waiting(second));
        let settled = looks.settled(left.clone(), true, at + second);
        assert_eq!(names(&settled), ["m"]);
        looks.loaded(settled, |_| true);
        assert_eq!(names(&looks.settled(left, true, at + second)), ["m"], "a retry does not wait");
    }
}
