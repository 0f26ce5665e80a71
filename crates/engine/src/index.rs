use crate::{Engine, engine::is_ready, lifecycle::VersionState};

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
        if let Some(reason) = self.lifecycle.broken(&name)
            && !versions.iter().any(|(_, state)| is_ready(state))
        {
            return vec![IndexEntry { name, version: None, state: Some("UNAVAILABLE"), reason }];
        }
        if versions.is_empty() {
            return vec![IndexEntry { name, version: None, state: None, reason: String::new() }];
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
