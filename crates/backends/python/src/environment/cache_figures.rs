//! Metrics of the cache of environments. They are updated when a model is loaded, so that reading them waits for no disk.

use std::{fs, path::Path, sync::Mutex};

use galatea_types::LockExt as _;

/// A file in the folder of each complete environment. Its text is the size of the folder in bytes.
pub(super) const MARKER: &str = ".galatea-complete";

/// The cache, as of the last load of a model that uses it, and the environments made since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheFigures {
    /// Number of complete environments.
    pub environments: u64,
    /// Bytes of their known sizes on disk.
    pub bytes: u64,
    /// Number of environments built or unpacked by this process.
    pub made: u64,
    /// Number of this process's failed attempts.
    pub failed: u64,
}

static FIGURES: Mutex<Option<CacheFigures>> = Mutex::new(None);

/// Returns the figures, or `None` until a model asked for an environment of the cache.
pub fn cache_figures() -> Option<CacheFigures> {
    *FIGURES.lock_unpoisoned()
}

/// Counts an attempt to make an environment.
pub(super) fn note_creation(has_succeeded: bool) {
    let mut known = FIGURES.lock_unpoisoned();
    let figures = known.get_or_insert_default();
    *if has_succeeded { &mut figures.made } else { &mut figures.failed } += 1;
}

/// Updates the figures, because the cache may have changed.
pub(super) fn note_content(root: &Path) {
    let (environments, bytes) = content(root);
    let mut known = FIGURES.lock_unpoisoned();
    let figures = known.get_or_insert_default();
    (figures.environments, figures.bytes) = (environments, bytes);
}

/// Counts complete environments and adds the sizes in their markers. Markers of older versions have no size.
fn content(root: &Path) -> (u64, u64) {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let markers = entries.filter_map(|entry| fs::read_to_string(entry.path().join(MARKER)).ok());
    markers.fold((0, 0), |(count, bytes), marker| {
        (count + 1, bytes + marker.trim().parse::<u64>().unwrap_or(0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_environments_are_counted() {
        let root = tempfile::tempdir().expect("folder");
        for (key, marker) in [("a", Some("4096")), ("b", Some("")), ("c", None)] {
            fs::create_dir(root.path().join(key)).expect("created");
            if let Some(text) = marker {
                fs::write(root.path().join(key).join(MARKER), text).expect("written");
            }
        }
        fs::write(root.path().join("a.lock"), "").expect("written");
        assert_eq!(content(root.path()), (2, 4096));
        assert_eq!(content(&root.path().join("nowhere")), (0, 0));
    }
}
