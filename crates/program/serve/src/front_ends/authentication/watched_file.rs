//! Detects that a file has changed and is completely written.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The facts that change with a file. Links are followed, because mounted configurations are links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

/// A file that is checked at intervals.
#[derive(Debug)]
pub(super) struct WatchedFile {
    path: PathBuf,
    /// Stamp of the file when it was read; `None`: it did not exist.
    applied: Option<Stamp>,
    /// Stamp at the last look.
    seen: Option<Stamp>,
}

impl WatchedFile {
    /// Returns the state of a file that was read just now.
    pub fn applied(path: &Path) -> Self {
        let stamp = stamp(path);
        Self { path: path.to_owned(), applied: stamp, seen: stamp }
    }

    /// Returns true if the file differs from the one that was read, and was the same at two looks: a file is not read while it is
    /// being written. A missing file has not changed.
    pub fn has_changed(&mut self) -> bool {
        let now = stamp(&self.path);
        let is_settled = now == self.seen;
        self.seen = now;
        if now.is_none() || now == self.applied || !is_settled {
            return false;
        }
        self.applied = now;
        true
    }

    /// Makes the file count as changed.
    pub fn forget(&mut self) {
        self.applied = None;
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    let modified = (found.mtime(), found.mtime_nsec());
    Some(Stamp { inode: found.ino(), length: found.len(), modified })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_once_and_only_after_it_has_settled() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("policy.toml");
        fs::write(&path, "a").expect("written");
        let mut file = WatchedFile::applied(&path);
        assert!(!file.has_changed());
        fs::write(&path, "ab").expect("written");
        assert!(!file.has_changed(), "it may still be being written");
        fs::write(&path, "abc").expect("written");
        assert!(!file.has_changed(), "it was");
        assert!(file.has_changed());
        assert!(!file.has_changed());
        fs::remove_file(&path).expect("removed");
        assert!(!file.has_changed() && !file.has_changed());
        let other = folder.path().join("other");
        fs::write(&other, "abcd").expect("written");
        fs::rename(&other, &path).expect("renamed");
        assert!(!file.has_changed());
        assert!(file.has_changed());
    }
}
