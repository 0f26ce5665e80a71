//! Keeps the cache within its limits: environments unused for longest are removed first, and none that is in use.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use galatea_runtimes::disk_usage;

use super::{
    lease::{Access, FolderLock},
    space,
};

/// Limits of the cache. `None`: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheBounds {
    /// Most bytes on disk, all folders together.
    pub bytes: Option<u64>,
    /// Longest time since the last use of a folder.
    pub age: Option<Duration>,
}

/// An environment of the cache that [`clean`] has checked.
#[derive(Debug)]
pub struct CleanedEnvironment {
    /// Its folder.
    pub folder: PathBuf,
    /// Bytes that it takes on disk, or took.
    pub bytes: u64,
    /// True if it was removed. False: it is in use, or being built.
    pub is_removed: io::Result<bool>,
}

/// Removes every environment that is not in use, in the order of their folders' names.
///
/// # Errors
/// When the cache exists and cannot be read.
pub fn clean(root: &Path) -> io::Result<Vec<CleanedEnvironment>> {
    let mut candidates = match candidates(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        candidates => candidates?,
    };
    candidates.sort_by(|one, other| one.key.cmp(&other.key));
    let cleaned = candidates.into_iter().map(|candidate| {
        let is_removed = candidate.remove();
        CleanedEnvironment { folder: candidate.folder, bytes: candidate.bytes, is_removed }
    });
    Ok(cleaned.collect())
}

struct Candidate<'a> {
    root: &'a Path,
    key: String,
    folder: PathBuf,
    last_use: SystemTime,
    bytes: u64,
}

/// Removes folders that are too old, then the ones unused for longest until the size fits. Folders in use always stay. Never
/// fails: a folder that cannot be removed is logged.
pub(super) fn prune(root: &Path, bounds: CacheBounds) {
    let mut candidates = match candidates(root) {
        Ok(candidates) => candidates,
        Err(error) => return log::warn!("cannot read '{}': {error}", root.display()),
    };
    candidates.sort_by_key(|candidate| candidate.last_use);
    let now = SystemTime::now();
    let mut total: u64 = candidates.iter().map(|candidate| candidate.bytes).sum();
    for candidate in &candidates {
        let unused = now.duration_since(candidate.last_use).unwrap_or_default();
        let is_old = bounds.age.is_some_and(|age| unused > age);
        let is_too_much = bounds.bytes.is_some_and(|bytes| total > bytes);
        if !is_old && !is_too_much {
            continue;
        }
        match candidate.remove() {
            Ok(true) => {
                total = total.saturating_sub(candidate.bytes);
                log::info!(
                    "removed the Python environment '{}' ({:.1} MB), not used for {} h",
                    candidate.folder.display(),
                    candidate.bytes as f64 / 1e6,
                    unused.as_secs() / 3600
                );
            }
            Ok(false) => {}
            Err(error) => log::warn!("cannot remove '{}': {error}", candidate.folder.display()),
        }
    }
}

fn candidates(root: &Path) -> io::Result<Vec<Candidate<'_>>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root)? {
        let lock = entry?.path();
        let Some(key) = FolderLock::key_of(&lock).map(str::to_owned) else { continue };
        let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
        // Older versions of the server kept no record of uses.
        let last_use = modified(&Access::Use.file(root, &key)).or_else(|_| modified(&lock));
        // Another process removed it meanwhile.
        let Ok(last_use) = last_use else { continue };
        let folder = root.join(&key);
        let bytes = disk_usage(&folder);
        found.push(Candidate { root, key, folder, last_use, bytes });
    }
    Ok(found)
}

impl Candidate<'_> {
    /// Removes the folder. Returns false if it is in use, or about to be.
    fn remove(&self) -> io::Result<bool> {
        let lock = |access| FolderLock::try_acquire(self.root, &self.key, access);
        let Some(content) = lock(Access::Content)? else { return Ok(false) };
        let Some(no_use) = lock(Access::NoUse)? else { return Ok(false) };
        space::remove(&self.folder)?;
        no_use.remove()?;
        content.remove().map(|()| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// A cache with a folder of some 64 KB for each key, last used so many hours ago.
    fn cache(folders: &[(&str, u32)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("folder");
        for &(key, hours) in folders {
            fs::create_dir(root.path().join(key)).expect("created");
            fs::write(root.path().join(key).join("file"), [1; 64 << 10]).expect("written");
            for access in [Access::Content, Access::Use] {
                let lock = fs::File::create(access.file(root.path(), key)).expect("created");
                lock.set_modified(SystemTime::now() - HOUR * hours).expect("set");
            }
        }
        root
    }

    fn left(root: &Path) -> Vec<String> {
        let entries = fs::read_dir(root).expect("read").flatten();
        let names = entries.map(|entry| entry.file_name().into_string().expect("text"));
        let mut names: Vec<_> = names.filter(|name| !name.contains('.')).collect();
        names.sort();
        names
    }

    #[test]
    fn the_least_recently_used_environment_is_removed_first() {
        let cache = cache(&[("a", 3), ("b", 5), ("c", 1)]);
        let bytes = Some(2 * disk_usage(&cache.path().join("a")) - 1);
        prune(cache.path(), CacheBounds { bytes, age: None });
        assert_eq!(left(cache.path()), ["c"]);
        assert_eq!(fs::read_dir(cache.path()).expect("read").count(), 3, "one with two locks");
    }

    #[test]
    fn environments_past_the_maximum_age_are_removed() {
        let cache = cache(&[("a", 3), ("b", 5)]);
        prune(cache.path(), CacheBounds { bytes: None, age: Some(4 * HOUR) });
        assert_eq!(left(cache.path()), ["a"]);
        prune(cache.path(), CacheBounds { bytes: None, age: None });
        assert_eq!(left(cache.path()), ["a"]);
    }

    #[test]
    fn environments_in_use_or_being_built_are_kept() {
        let cache = cache(&[("a", 3), ("b", 5), ("c", 4)]);
        let nothing = CacheBounds { bytes: Some(0), age: Some(HOUR) };
        let lock = |key, access| {
            let lock = FolderLock::try_acquire(cache.path(), key, access).expect("opened");
            lock.expect("nobody holds it")
        };
        let locks = [lock("b", Access::Use), lock("b", Access::Use), lock("c", Access::Content)];
        prune(cache.path(), nothing);
        assert_eq!(left(cache.path()), ["b", "c"]);
        drop(locks);
        prune(cache.path(), nothing);
        assert!(left(cache.path()).is_empty());
    }
    #[test]
    fn cleaning_keeps_environments_in_use() {
        let cache = cache(&[("a", 0), ("b", 5), ("c", 4)]);
        let lock = FolderLock::try_acquire(cache.path(), "b", Access::Use).expect("opened");
        let cleaned = clean(cache.path()).expect("read");
        let gone: Vec<_> = cleaned.iter().map(|one| one.is_removed.as_ref().ok()).collect();
        assert_eq!(gone, [Some(&true), Some(&false), Some(&true)]);
        assert!(cleaned[0].bytes >= 64 << 10, "{cleaned:?}");
        assert_eq!(left(cache.path()), ["b"]);
        drop(lock);
        assert_eq!(clean(cache.path()).expect("read").len(), 1);
        assert!(clean(cache.path()).expect("read").is_empty() && left(cache.path()).is_empty());
        assert!(clean(&cache.path().join("nowhere")).expect("nothing").is_empty());
    }
}
