//! The locks of a folder in the cache, carried by two files beside it, so that servers exclude each other too.
//!
//! One is held while the folder is created, looked at, or removed. The other is shared by all that use the folder, and
//! the time of its last change is when that was.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use galatea_system::LockKind;

use super::command::Limits;

/// How often a lock that another holds is tried again: what it is held for takes seconds to minutes.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A lock of one folder, while it is held.
#[derive(Debug)]
pub(super) struct FolderLock {
    path: PathBuf,
    file: File,
}

/// Which of the two locks of a folder, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Nobody else creates, looks at, or removes the folder.
    Content,
    /// The folder is in use: nobody removes it.
    Use,
    /// Nobody uses the folder.
    NoUse,
}

impl Access {
    /// The file that carries the lock for the folder `key`.
    pub fn file(self, root: &Path, key: &str) -> PathBuf {
        let suffix = match self {
            Self::Content => SUFFIX,
            Self::Use | Self::NoUse => ".use",
        };
        root.join(format!("{key}{suffix}"))
    }
}

impl FolderLock {
    /// The folder that a file in the cache carries the lock of; every folder has one.
    pub fn key_of(path: &Path) -> Option<&str> {
        path.file_name()?.to_str()?.strip_suffix(SUFFIX)
    }

    /// Waits within the limits, and calls `on_wait` once before it does. `None`: another holds it.
    pub fn acquire(
        root: &Path,
        key: &str,
        access: Access,
        limits: Limits<'_>,
        on_wait: &mut dyn FnMut(),
    ) -> io::Result<Option<Self>> {
        let deadline = Instant::now() + limits.time;
        let mut has_waited = false;
        loop {
            if let Some(lock) = Self::try_acquire(root, key, access)? {
                return Ok(Some(lock));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            if !std::mem::replace(&mut has_waited, true) {
                on_wait();
            }
            if limits.stop.wait(RETRY_INTERVAL) {
                return Ok(None);
            }
        }
    }

    /// `None`: another holds it.
    pub fn try_acquire(root: &Path, key: &str, access: Access) -> io::Result<Option<Self>> {
        let path = access.file(root, key);
        let kind = match access {
            Access::Use => LockKind::Shared,
            Access::Content | Access::NoUse => LockKind::Alone,
        };
        Ok(galatea_system::try_lock(&path, kind)?.map(|file| Self { path, file }))
    }

    /// Removes the file, once the folder is gone.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    fn touch(&self) {
        // Fails on a file system that is read-only now: then nothing is removed from it either.
        let _ = self.file.set_modified(SystemTime::now());
    }
}

const SUFFIX: &str = ".lock";

/// Keeps a folder in the cache: nobody removes it while a clone of this is there. Empty for an environment that is not
/// in the cache.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentLease {
    _in_use: Option<Arc<LeaseCount>>,
}

impl EnvironmentLease {
    /// `lock`: [`Access::Use`] of a complete folder.
    pub(super) fn new(lock: FolderLock) -> Self {
        lock.touch();
        Self { _in_use: Some(Arc::new(LeaseCount(lock))) }
    }
}

/// It does not matter which of several leases keeps a folder.
impl PartialEq for EnvironmentLease {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for EnvironmentLease {}

#[derive(Debug)]
struct LeaseCount(FolderLock);

impl Drop for LeaseCount {
    fn drop(&mut self) {
        self.0.touch();
    }
}
