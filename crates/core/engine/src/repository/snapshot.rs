//! Snapshots of a model's folder, to find out if anything in it changed.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, DirEntry, Metadata},
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::config_name::is_configuration;

/// The largest number of files and folders of one model that are checked: an endless tree must not delay others.
pub(super) const MAX_ENTRIES: usize = 100_000;

/// The same for each entry of a model's folder, so that no entry uses up the others' share.
const MAX_BELOW: usize = 20_000;

/// The largest depth of folders below a model's folder that are checked.
pub(super) const MAX_DEPTH: usize = 16;

/// The folder that Python writes beside imported modules: loading a model must not count as a change of it.
pub(super) const BYTECODE: &str = "__pycache__";

/// A snapshot of a model's folder. Two are equal unless a file or folder in it was added, removed, renamed or
/// written. A change is detected by name, size, time of change and, for a link, target; contents are not read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FolderSnapshot {
    /// Each entry of the folder, with a hash of everything below it.
    entries: BTreeMap<OsString, u64>,
    /// Entries with so many files below them that not all were checked.
    partly_seen: Vec<OsString>,
}

impl FolderSnapshot {
    /// Takes a snapshot of a folder on this machine.
    ///
    /// # Errors
    /// When the folder itself cannot be listed. Unreadable entries in it count as unchanged.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let mut left = MAX_ENTRIES;
        let mut snapshot = Self::default();
        for entry in fs::read_dir(folder)?.flatten().filter(is_counted) {
            let mut walk = Walk { hasher: DefaultHasher::new(), left: left.min(MAX_BELOW) };
            let before = walk.left;
            // A version that is a link to the place of its files is followed.
            walk.entry(&entry, 1, None);
            left -= before - walk.left;
            if walk.left == 0 {
                snapshot.partly_seen.push(entry.file_name());
            }
            snapshot.entries.insert(entry.file_name(), walk.hasher.finish());
        }
        snapshot.partly_seen.sort_unstable();
        Ok(snapshot)
    }

    /// Returns the names of entries whose changes may be missed, because too many files are below them. An example is a
    /// version that is a link to a whole disk.
    pub fn partly_seen(&self) -> &[OsString] {
        &self.partly_seen
    }

    /// Makes a snapshot of files that are not on this machine: the path of each in the model's folder, with `/`
    /// between its parts, and a value that changes with its content. The order counts.
    pub fn of_listing<'a>(files: impl IntoIterator<Item = (&'a str, impl Hash)>) -> Self {
        let mut hashers: BTreeMap<OsString, DefaultHasher> = BTreeMap::new();
        for (path, version) in files {
            let (entry, below) = path.split_once('/').unwrap_or((path, ""));
            if below.split('/').any(|part| part == BYTECODE) || entry == BYTECODE {
                continue;
            }
            (below, version).hash(hashers.entry(entry.into()).or_default());
        }
        let entries = hashers.into_iter().map(|(entry, hasher)| (entry, hasher.finish()));
        Self { entries: entries.collect(), partly_seen: Vec::new() }
    }

    /// Takes a snapshot of single files, each under the name of its entry. Missing files do not count.
    ///
    /// # Errors
    /// When none exists.
    pub(crate) fn of_files<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a PathBuf)>,
    ) -> io::Result<Self> {
        let mut entries = BTreeMap::new();
        for (name, path) in files {
            let Ok(metadata) = path.metadata() else { continue };
            let mut hasher = DefaultHasher::new();
            (metadata.size(), metadata.mtime(), metadata.mtime_nsec()).hash(&mut hasher);
            entries.insert(OsString::from(name), hasher.finish());
        }
        match entries.is_empty() {
            true => Err(io::ErrorKind::NotFound.into()),
            false => Ok(Self { entries, partly_seen: Vec::new() }),
        }
    }

    /// Returns true if a version has the same files in both, including those that all versions share. The configuration does
    /// not count: it is compared after its check.
    pub(crate) fn has_same_version(&self, other: &Self, version: i64) -> bool {
        let version = OsString::from(version.to_string());
        let of_version = |snapshot: &Self| snapshot.entries.get(&version).copied();
        let is_shared = |entry: &(&OsString, &u64)| {
            let is_number = entry.0.as_encoded_bytes().iter().all(u8::is_ascii_digit);
            !is_number && !is_configuration(entry.0)
        };
        of_version(self).is_some()
            && of_version(self) == of_version(other)
            && self.entries.iter().filter(is_shared).eq(other.entries.iter().filter(is_shared))
    }
}

fn is_counted(entry: &DirEntry) -> bool {
    entry.file_name() != BYTECODE
}

/// Walks the tree below one entry of a model's folder.
struct Walk {
    hasher: DefaultHasher,
    /// The number of entries that may still be checked.
    left: usize,
}

impl Walk {
    /// Adds an entry. `device` is that of its folder, below the model's own. Other file systems and links to
    /// folders are skipped there: they lead through the whole machine, or in circles.
    fn entry(&mut self, entry: &DirEntry, depth: usize, device: Option<u64>) {
        self.left = self.left.saturating_sub(1);
        let (path, hasher) = (entry.path(), &mut self.hasher);
        entry.file_name().hash(hasher);
        let link = fs::read_link(&path).ok();
        link.hash(hasher);
        let Ok(metadata) = path.metadata() else { return };
        if !metadata.is_dir() {
            return (metadata.size(), metadata.mtime(), metadata.mtime_nsec()).hash(hasher);
        }
        let is_elsewhere = device.is_some_and(|device| link.is_some() || device != metadata.dev());
        if depth < MAX_DEPTH && !is_elsewhere {
            self.folder(&path, depth, &metadata);
        }
    }

    /// Adds a folder without its own time, which changes with entries that do not count.
    fn folder(&mut self, folder: &Path, depth: usize, metadata: &Metadata) {
        let Ok(listed) = fs::read_dir(folder) else { return };
        let listed = listed.flatten().filter(is_counted);
        let mut entries: Vec<DirEntry> = listed.take(self.left).collect();
        entries.sort_by_key(DirEntry::file_name);
        entries.len().hash(&mut self.hasher);
        for entry in &entries {
            if self.left == 0 {
                return;
            }
            self.entry(entry, depth + 1, Some(metadata.dev()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::symlink,
        time::{Duration, SystemTime},
    };

    use super::*;

    fn of(folder: &Path) -> FolderSnapshot {
        FolderSnapshot::of(folder).expect("readable")
    }

    #[test]
    fn remote_files_are_compared_by_path_and_version() {
        let of = |files: &[(&str, u8)]| FolderSnapshot::of_listing(files.iter().copied());
        let base = of(&[("1/model", 1), ("2/a/b", 1), ("config.pbtxt", 1)]);
        let cached = [("1/__pycache__/x", 9), ("1/model", 1), ("2/a/b", 1), ("config.pbtxt", 1)];
        assert_eq!(of(&cached), base);
        let changed = of(&[("1/model", 2), ("2/a/b", 1), ("config.pbtxt", 2)]);
        assert_ne!(changed, base);
        assert!(changed.has_same_version(&base, 2) && !changed.has_same_version(&base, 1));
        let moved = of(&[("1/model", 1), ("2/a/c", 1), ("config.pbtxt", 1)]);
        assert!(!moved.has_same_version(&base, 2));
    }

    #[test]
    fn every_file_change_counts_except_bytecode() {
        let root = tempfile::tempdir().expect("folder");
        let path = |name: &str| root.path().join(name);
        fs::create_dir_all(path("1/a/b")).expect("folder");
        fs::write(path("config.pbtxt"), "x").expect("file");
        fs::write(path("1/a/b/model"), "x").expect("file");
        let mut last = of(root.path());
        assert_eq!(of(root.path()), last, "nothing changed");
        fs::create_dir(path("1/__pycache__")).expect("folder");
        fs::write(path("1/__pycache__/model.pyc"), "x").expect("file");
        assert_eq!(of(root.path()), last, "bytecode does not count");
        let mut changed = |what: &str| {
            let now = of(root.path());
            assert_ne!(now, last, "{what}");
            last = now;
        };
        fs::write(path("1/a/b/model"), "xy").expect("file");
        changed("another size");
        let file = fs::File::options().write(true).open(path("1/a/b/model")).expect("file");
        file.set_modified(SystemTime::now() - Duration::from_secs(99)).expect("older");
        changed("another time, though an older one");
        fs::rename(path("1/a/b/model"), path("1/a/b/model2")).expect("renamed");
        changed("another name");
        fs::create_dir(path("2")).expect("folder");
        changed("an empty folder more");
        fs::remove_dir(path("2")).expect("removed");
        changed("a folder less");
        fs::write(path("labels.txt"), "").expect("file");
        changed("an empty file more");
        fs::create_dir(path("other")).expect("folder");
        symlink("1", path("link")).expect("link");
        changed("a link more");
        fs::remove_file(path("link")).expect("removed");
        symlink("other", path("link")).expect("link");
        changed("another target");
    }

    #[test]
    fn endless_link_trees_are_bounded() {
        let root = tempfile::tempdir().expect("folder");
        fs::create_dir_all(root.path().join("1/deep")).expect("folder");
        // Links to above make a tree of 2^depth folders, and one to the machine's root a tree of everything.
        for name in ["1/up", "1/deep/up", "1/deep/again"] {
            symlink(root.path(), root.path().join(name)).expect("link");
        }
        symlink("/", root.path().join("1/machine")).expect("link");
        symlink("/proc", root.path().join("outside")).expect("link");
        let mut folder = root.path().join("2");
        for _ in 0..100 {
            folder.push("x");
        }
        fs::create_dir_all(folder).expect("folder");
        // It comes to an end: the runner of the tests ends one that does not.
        let first = of(root.path());
        // Processes come and go.
        let same = |name: &str| first.entries.get(&OsString::from(name)).copied();
        let second = of(root.path());
        for name in ["1", "2"] {
            assert_eq!(same(name), second.entries.get(&OsString::from(name)).copied(), "{name}");
        }
        let missing = FolderSnapshot::of(&root.path().join("3")).expect_err("none");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
