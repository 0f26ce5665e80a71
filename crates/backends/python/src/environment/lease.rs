//! The locks of a folder in the cache, held on two files beside it, so that servers exclude each other too.
//!
//! The content lock is held while the folder is created, checked, or removed. All users share the other lock. The time of
//! its file's last change is the time of the last use.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use galatea_system::LockKind;

use super::command::Limits;

/// Interval between attempts to take a lock. Others hold it for seconds to minutes.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A lock of one folder, while it is held.
#[derive(Debug)]
pub(super) struct FolderLock {
    path: PathBuf,
    file: File,
}

/// A choice of one of the two locks of a folder, and how to take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The holder creates, checks, or removes the folder, and nobody else does.
    Content,
    /// The folder is in use, so nobody removes it.
    Use,
    /// The holder knows that nobody uses the folder.
    NoUse,
}

impl Access {
    /// Returns the lock file for the folder `key`.
    pub fn file(self, root: &Path, key: &str) -> PathBuf {
        let suffix = match self {
            Self::Content => SUFFIX,
            Self::Use | Self::NoUse => ".use",
        };
        root.join(format!("{key}{suffix}"))
    }
}

impl FolderLock {
    /// Returns the folder that a lock file in the cache belongs to. Every folder has one.
    pub fn key_of(path: &Path) -> Option<&str> {
        path.file_name()?.to_str()?.strip_suffix(SUFFIX)
    }

    /// Waits for the lock within the limits, and calls `on_wait` once before it waits. Returns `None` if another holds it.
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

    /// Tries to take the lock. Returns `None` if another holds it.
    pub fn try_acquire(root: &Path, key: &str, access: Access) -> io::Result<Option<Self>> {
        let path = access.file(root, key);
        let kind = match access {
            Access::Use => LockKind::Shared,
            Access::Content | Access::NoUse => LockKind::Alone,
        };
        Ok(galatea_system::try_lock(&path, kind)?.map(|file| Self { path, file }))
    }

    /// Removes the lock file, once the folder is gone.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    fn touch(&self) {
        // Fails on a file system that is read-only now. Then nothing is removed from it either.
        let _ = self.file.set_modified(SystemTime::now());
    }
}

const SUFFIX: &str = ".lock";

/// A lease that keeps a folder in the cache: nobody removes it while a clone of this exists. Empty for an environment
/// outside the cache.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentLease {
    _in_use: Option<Arc<LeaseCount>>,
}

impl EnvironmentLease {
    /// Makes a lease from the [`Access::Use`] lock of a complete folder.
    pub(super) fn new(lock: FolderLock) -> Self {
        lock.touch();
        Self { _in_use: Some(Arc::new(LeaseCount(lock))) }
    }
}

/// Leases are equal: it does not matter which of several keeps a folder.
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
