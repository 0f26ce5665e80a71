//! Makes room for another entry: entries unused for longest are removed first, and none in use.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use galatea_system::{LockKind, try_lock};

use super::{Cache, CacheKey, MANIFEST, manifest::Manifest};
use crate::error::{FailureKind, RemoteError};

/// Bytes left free on the disk beside fetched files.
const RESERVE: u64 = 16 << 20;

/// Most bytes in the cache. Entries in use stay even above it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CacheLimit {
    /// A number of bytes.
    Bytes(u64),
    /// A share of the free space in the folder's file system, including the cache itself, from 0 to 1.
    ShareOfFree(f64),
}

/// An entry, complete or not.
struct Entry {
    key: String,
    bytes: u64,
    used: SystemTime,
}

/// Room for an entry whose size is not known before it is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EntryRoom {
    /// The cache's limit in bytes.
    pub limit: u64,
    /// Bytes of other entries that are in use.
    pub in_use: u64,
}

impl EntryRoom {
    /// Returns the bytes for the entry.
    pub fn bytes(self) -> u64 {
        self.limit.saturating_sub(self.in_use)
    }
}

impl Cache {
    /// Returns the room for this entry if all idle entries are removed. Removes none yet: see [`Cache::make_room`].
    pub fn room_for(&self, key: &CacheKey) -> EntryRoom {
        let entries = self.entries();
        let limit = self.limit_now(entries.iter().map(|entry| entry.bytes).sum());
        let others = entries.iter().filter(|entry| entry.key != key.as_str());
        let in_use = others.filter(|entry| !self.is_idle(&entry.key)).map(|entry| entry.bytes);
        EntryRoom { limit, in_use: in_use.sum() }
    }

    fn is_idle(&self, key: &str) -> bool {
        let lock = try_lock(&self.folder.join("locks").join(key), LockKind::Alone);
        matches!(lock, Ok(Some(_)))
    }

    /// Removes entries until another of `size` bytes fits.
    pub fn make_room(&self, key: &CacheKey, what: &str, size: u64) -> Result<(), RemoteError> {
        let mut entries = self.entries();
        let own = entries.iter().position(|entry| entry.key == key.as_str());
        let fetched = own.map_or(0, |at| entries.swap_remove(at).bytes);
        let missing = size.saturating_sub(fetched);
        entries.sort_by_key(|entry| entry.used);
        let mut held: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let limit = self.limit_now(held + fetched);
        let mut idle = entries.iter();
        while held + size > limit || self.free().is_some_and(|free| free < missing + RESERVE) {
            let Some(entry) = idle.next() else { break };
            if self.evict(&entry.key) {
                log::info!("removed {} from the cache of models: least recently used", entry.key);
                held -= entry.bytes;
            }
        }
        if held + size > limit {
            log::warn!(
                "{what}: the cache of models holds more than its {limit} bytes, all of it in use"
            );
        }
        match self.free() {
            Some(free) if free < missing => Err(self.no_room(what, missing, free)),
            _ => Ok(()),
        }
    }

    fn limit_now(&self, held: u64) -> u64 {
        match self.limit {
            CacheLimit::Bytes(bytes) => bytes,
            CacheLimit::ShareOfFree(share) => {
                let all = self.free().unwrap_or(u64::MAX / 2).saturating_add(held);
                (all as f64 * share) as u64
            }
        }
    }

    /// Returns the free bytes, or `None` if the system does not report them.
    fn free(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(&self.folder).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn no_room(&self, what: &str, missing: u64, free: u64) -> RemoteError {
        let text = format!(
            "{what}: {missing} bytes must be fetched, and '{}' has {free} left: free some, or name another folder \
             with --repository-cache-directory",
            self.folder.display()
        );
        RemoteError::new(FailureKind::Local, text)
    }

    fn entries(&self) -> Vec<Entry> {
        let models = names(&self.folder.join("models")).into_iter().map(|(key, path)| {
            let bytes = Manifest::read(&path.join(MANIFEST)).map_or(0, |manifest| manifest.bytes);
            (key, bytes)
        });
        let partial = names(&self.folder.join("partial")).into_iter();
        let partial = partial.map(|(key, path)| (key, size_of(&path).unwrap_or(0)));
        models
            .chain(partial)
            .map(|(key, bytes)| Entry { used: self.used(&key), key, bytes })
            .collect()
    }

    fn used(&self, key: &str) -> SystemTime {
        let lock = fs::metadata(self.folder.join("locks").join(key));
        lock.and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// Removes an entry. Returns true if it was removed; entries in use stay.
    fn evict(&self, key: &str) -> bool {
        let path = self.folder.join("locks").join(key);
        let Ok(Some(_lock)) = try_lock(&path, LockKind::Alone) else { return false };
        let entry = self.folder.join("models").join(key);
        // Removed first: without the manifest, files left after a crash are not an entry.
        let _ = fs::remove_file(entry.join(MANIFEST));
        self.remove(&entry);
        self.remove(&self.folder.join("partial").join(key));
        let _ = fs::remove_file(&path);
        true
    }
}

fn names(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect()
}

fn size_of(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        bytes += if found.is_dir() { size_of(&entry.path())? } else { found.len() };
    }
    Ok(bytes)
}
