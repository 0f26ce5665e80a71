//! The repository index: what is there, and what became of it.

use crate::{
    lifecycle::{Lifecycle, PollFailure, VersionState},
    repository::Repository,
};

/// One row of the repository index. A model that was never loaded has only a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The model's name.
    pub name: String,
    /// `None` for a model without versions, or one that was never loaded.
    pub version: Option<i64>,
    /// READY, UNAVAILABLE, LOADING, UNLOADING or UNKNOWN.
    pub state: Option<&'static str>,
    /// Why it is unavailable; empty when there is no reason. May have several lines.
    pub reason: String,
}

/// What is in the repositories and what was ever loaded, sorted by name, then version.
pub(crate) fn list(
    repository: &Repository,
    lifecycle: &Lifecycle,
    ready_only: bool,
) -> Vec<IndexEntry> {
    let mut names = repository.model_names();
    names.extend(lifecycle.model_names());
    names.sort();
    names.dedup();
    let is_wanted = |row: &IndexEntry| !ready_only || row.state == Some(VersionState::Ready.name());
    let rows = names.into_iter().flat_map(|name| match repository.is_ambiguous(&name) {
        // As in Triton, whatever was asked for.
        true => vec![ambiguous(name)],
        false => rows_of(name, lifecycle).into_iter().filter(is_wanted).collect(),
    });
    rows.collect()
}

fn ambiguous(name: String) -> IndexEntry {
    let reason = "model appears in two or more repositories".to_owned();
    let state = VersionState::Unavailable { reason };
    let reason = state.reason().to_owned();
    IndexEntry { name, version: None, state: Some(state.name()), reason }
}

fn rows_of(name: String, lifecycle: &Lifecycle) -> Vec<IndexEntry> {
    let versions = lifecycle.versions(&name);
    if versions.is_empty() {
        let failure = lifecycle.poll_failure(&name);
        let state = failure.is_some().then_some("UNAVAILABLE");
        let reason = failure.map(PollFailure::into_reason).unwrap_or_default();
        return vec![IndexEntry { name, version: None, state, reason }];
    }
    let row = |(version, state): (i64, VersionState)| IndexEntry {
        name: name.clone(),
        version: Some(version),
        state: Some(state.name()),
        reason: state.reason().to_owned(),
    };
    versions.into_iter().map(row).collect()
}
