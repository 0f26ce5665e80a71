use crate::{
    Engine,
    lifecycle::{Broken, VersionState},
};

/// One row of the repository index. A model that was never loaded has only a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    pub name: String,
    pub version: Option<i64>,
    /// READY, UNAVAILABLE, LOADING, UNLOADING or UNKNOWN.
    pub state: Option<&'static str>,
    /// Empty when there is none.
    pub reason: String,
}

impl Engine {
    /// What is in the repositories and what was ever loaded, sorted by name, then version.
    pub fn repository_index(&self, ready_only: bool) -> Vec<IndexEntry> {
        let mut names = self.repository.model_names();
        names.extend(self.lifecycle.model_names());
        names.sort();
        names.dedup();
        let rows = names.into_iter().flat_map(|name| self.rows_of(name));
        rows.filter(|row| !ready_only || row.state == Some(VersionState::Ready.name())).collect()
    }

    fn rows_of(&self, name: String) -> Vec<IndexEntry> {
        let versions = self.lifecycle.versions(&name);
        if versions.is_empty() {
            let broken = self.lifecycle.broken(&name);
            let state = broken.is_some().then_some("UNAVAILABLE");
            let reason = broken.map(Broken::into_reason).unwrap_or_default();
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
}
