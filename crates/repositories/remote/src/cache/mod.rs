//! The folder of fetched models, shared by all servers of a user on this machine.
//!
//! ```text
//! v1/models/KEY/manifest.json   the files that the entry must have; an entry appears as a whole, by one rename
//! v1/models/KEY/NAME/...        the files
//! v1/partial/KEY/...            an entry that is being fetched, or whose broken fetch can be resumed
//! v1/locks/KEY                  held shared by users of the entry, alone while it is made or removed
//! ```
//!
//! A key depends on everything that determines the content, so that an entry never changes. The time of a lock is the time
//! of the last use. An entry is made again if its files differ from its manifest, after a crash of the machine or because
//! somebody wrote into it.

mod key;
mod manifest;
mod room;

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use galatea_system::{LockKind, try_lock};

use self::manifest::Manifest;
pub use self::{
    key::CacheKey,
    room::{CacheLimit, EntryRoom},
};
use crate::error::{FailureKind, RemoteError};

/// The layout of this module. Another layout gets another name, so that servers of both can share the folder.
const LAYOUT: &str = "v1";

const MANIFEST: &str = "manifest.json";

/// Attempts to get an entry that others make, remove or use meanwhile, and the time between two attempts.
const TURNS: usize = 10;
const PAUSE: Duration = Duration::from_millis(200);

/// The cache of fetched models.
#[derive(Debug)]
pub struct Cache {
    /// Folder that includes the layout.
    folder: PathBuf,
    limit: CacheLimit,
}

impl Cache {
    /// Opens the cache in a folder of this machine, which is created if it is missing.
    ///
    /// # Errors
    /// When it cannot be created, or belongs to another user: who can write into it chooses what this server runs.
    pub fn open(folder: &Path, limit: CacheLimit) -> Result<Arc<Self>, RemoteError> {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let cache = Self { folder: folder.join(LAYOUT), limit };
        fs::create_dir_all(&folder).map_err(|error| cache.unusable(&error))?;
        cache.make_private(&cache.folder)?;
        for part in ["models", "partial", "locks"] {
            cache.make_private(&cache.folder.join(part))?;
        }
        Ok(Arc::new(cache))
    }

    fn make_private(&self, folder: &Path) -> Result<(), RemoteError> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(self.unusable(&error));
            }
            _ => {}
        }
        let found = fs::symlink_metadata(folder).map_err(|error| self.unusable(&error))?;
        let is_own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
        match is_own && found.mode() & 0o022 == 0 {
            true => Ok(()),
            false => {
                let text = format!(
                    "'{}' is not a folder that only this user can write to; name another one with \
                     --repository-cache-directory",
                    folder.display()
                );
                Err(RemoteError::new(FailureKind::Local, text))
            }
        }
    }

    /// Returns the entry of a key. `fill` makes it unless it exists, in the folder that it gets. An attempt that failed with
    /// [`FailureKind::Unavailable`] leaves its files there for the next. `what` names the entry in messages. `size` is its
    /// size in bytes.
    ///
    /// # Errors
    /// Those of `fill`, and lack of room.
    pub fn get(
        &self,
        key: &CacheKey,
        what: &str,
        size: u64,
        fill: &mut dyn FnMut(&Path) -> Result<(), RemoteError>,
    ) -> Result<CacheLease, RemoteError> {
        for _ in 0..TURNS {
            if let Some(lease) = self.find(key)? {
                return Ok(lease);
            }
            match self.lock_alone(key)? {
                Some(_lock) if self.is_whole(key) => {}
                Some(_lock) => self.make(key, what, size, fill)?,
                // Making an entry ends, but using it may last for ever. So this does not wait to be its only user.
                None => {
                    drop(self.lock_shared(key, what)?);
                    pause();
                }
            }
        }
        let text = format!(
            "{what}: others remove it from '{0}' again and again, or use one there that was changed since it was \
             fetched: end the other servers that have '{0}'",
            self.folder.display()
        );
        Err(RemoteError::new(FailureKind::Local, text))
    }

    /// Returns the entry of a key if it exists.
    ///
    /// # Errors
    /// When the folder cannot be used.
    pub fn find(&self, key: &CacheKey) -> Result<Option<CacheLease>, RemoteError> {
        if !self.entry(key).join(MANIFEST).exists() {
            return Ok(None);
        }
        let lock = self.lock_shared(key, key.as_str())?;
        if !self.is_whole(key) {
            return Ok(None);
        }
        // Only the order of removal depends on this time.
        let _ = lock.set_modified(SystemTime::now());
        Ok(Some(CacheLease { folder: self.entry(key).join(key.name()), _lock: lock }))
    }

    fn make(
        &self,
        key: &CacheKey,
        what: &str,
        size: u64,
        fill: &mut dyn FnMut(&Path) -> Result<(), RemoteError>,
    ) -> Result<(), RemoteError> {
        let partial = self.folder.join("partial").join(key.as_str());
        self.make_room(key, what, size)?;
        fs::create_dir_all(partial.join(key.name())).map_err(|error| self.not_written(&error))?;
        if let Err(error) = fill(&partial) {
            if error.kind() != FailureKind::Unavailable {
                self.remove(&partial);
            }
            return Err(error);
        }
        self.complete(key, what, &partial).map_err(|error| self.not_written(&error))
    }

    fn complete(&self, key: &CacheKey, what: &str, partial: &Path) -> io::Result<()> {
        let entry = self.entry(key);
        self.remove(&entry);
        Manifest::of(what, partial, key.name())?.write(&partial.join(MANIFEST))?;
        fs::rename(partial, entry)
    }

    fn is_whole(&self, key: &CacheKey) -> bool {
        let entry = self.entry(key);
        match Manifest::read(&entry.join(MANIFEST)) {
            Ok(manifest) => manifest.problem(&entry.join(key.name())).is_none_or(|problem| {
                log::warn!("'{}' is fetched again: {problem}", entry.display());
                false
            }),
            Err(_) => false,
        }
    }

    fn entry(&self, key: &CacheKey) -> PathBuf {
        self.folder.join("models").join(key.as_str())
    }

    /// Takes the lock alone. Returns `None` if others use it.
    fn lock_alone(&self, key: &CacheKey) -> Result<Option<File>, RemoteError> {
        let path = self.folder.join("locks").join(key.as_str());
        try_lock(&path, LockKind::Alone).map_err(|error| self.not_written(&error))
    }

    /// Waits while somebody makes or removes the entry. That ends: every step of it has a time limit.
    fn lock_shared(&self, key: &CacheKey, what: &str) -> Result<File, RemoteError> {
        let path = self.folder.join("locks").join(key.as_str());
        let mut is_told = false;
        loop {
            let lock =
                try_lock(&path, LockKind::Shared).map_err(|error| self.not_written(&error))?;
            if let Some(lock) = lock {
                return Ok(lock);
            }
            if !std::mem::replace(&mut is_told, true) {
                let folder = self.folder.display();
                log::info!("{what}: waiting for another server that fetches it into '{folder}'");
            }
            pause();
        }
    }

    /// Removes a folder. A remaining part is counted and removed later.
    fn remove(&self, folder: &Path) {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                log::warn!("failed to remove '{}': {error}", folder.display());
            }
            _ => {}
        }
    }

    fn unusable(&self, error: &io::Error) -> RemoteError {
        let text = format!(
            "the cache folder of model repositories '{}' cannot be used: {error}; name another one with \
             --repository-cache-directory",
            self.folder.display()
        );
        RemoteError::new(FailureKind::Local, text)
    }

    /// Describes an error of the file system.
    pub fn not_written(&self, error: &io::Error) -> RemoteError {
        not_written(&self.folder, error)
    }
}

#[expect(clippy::disallowed_methods, reason = "locks of files report nothing to other processes")]
fn pause() {
    thread::sleep(PAUSE);
}

/// Explains why a file below `folder` could not be written.
pub(crate) fn not_written(folder: &Path, error: &io::Error) -> RemoteError {
    let folder = folder.display();
    let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
    let text = match full.contains(&error.kind()) {
        true => format!(
            "no space left for models in '{folder}': free some, or name another folder with \
             --repository-cache-directory"
        ),
        false => format!("failed to write in '{folder}': {error}"),
    };
    RemoteError::new(FailureKind::Local, text)
}

/// An entry that stays in its place for as long as this lives.
#[derive(Debug)]
pub struct CacheLease {
    folder: PathBuf,
    _lock: File,
}

impl AsRef<Path> for CacheLease {
    fn as_ref(&self) -> &Path {
        &self.folder
    }
}

#[cfg(test)]
mod tests;
