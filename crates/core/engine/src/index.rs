//! The repository index: the models, and the states of their versions.

use crate::{
    lifecycle::{Lifecycle, READY, VersionState},
    model_id::ModelId,
    repository::Repository,
};

/// One row of the repository index. A model that was never loaded has only a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The model's name.
    pub name: String,
    /// The model's repository, if several may have models of one name; else empty.
    pub namespace: String,
    /// The version; `None` for a model without versions, or one that was never loaded.
    pub version: Option<i64>,
    /// READY, UNAVAILABLE, LOADING, UNLOADING or UNKNOWN.
    pub state: Option<&'static str>,
    /// The reason why it is unavailable, or was not given its new instances; empty without one. May have several lines.
    pub reason: String,
    /// The line of the configuration that made the model fail, with a caret and the mistake, in several lines; else empty.
    pub excerpt: String,
}

pub(crate) fn list(
    repository: &Repository,
    lifecycle: &Lifecycle,
    ready_only: bool,
) -> Vec<IndexEntry> {
    let _look = repository.begin_look();
    let mut models = repository.models();
    models.extend(lifecycle.models());
    let is_wanted = |row: &IndexEntry| !ready_only || row.state == Some(READY);
    let rows = models.iter().flat_map(|id| match repository.is_ambiguous(id) {
        // As in Triton, for every query.
        true => vec![ambiguous(id)],
        false => rows_of(id, lifecycle).into_iter().filter(is_wanted).collect(),
    });
    rows.collect()
}

fn ambiguous(id: &ModelId) -> IndexEntry {
    let reason = "model appears in two or more repositories".to_owned();
    row(id, None, Some(VersionState::Unavailable { reason }))
}

fn rows_of(id: &ModelId, lifecycle: &Lifecycle) -> Vec<IndexEntry> {
    let (versions, excerpt) = (lifecycle.versions(id), lifecycle.excerpt(id));
    if versions.is_empty() {
        let reason = lifecycle.poll_failure(id);
        let failed = row(id, None, reason.map(|reason| VersionState::Unavailable { reason }));
        return vec![IndexEntry { excerpt, ..failed }];
    }
    let row = |(version, state)| match state {
        VersionState::Unavailable { .. } => {
            IndexEntry { excerpt: excerpt.clone(), ..row(id, Some(version), Some(state)) }
        }
        _ => row(id, Some(version), Some(state)),
    };
    versions.into_iter().map(row).collect()
}

fn row(id: &ModelId, version: Option<i64>, state: Option<VersionState>) -> IndexEntry {
    IndexEntry {
        name: id.name.to_string(),
        namespace: id.namespace.to_string(),
        version,
        state: state.as_ref().map(VersionState::name),
        reason: state.map(|state| state.reason().to_owned()).unwrap_or_default(),
        excerpt: String::new(),
    }
}
