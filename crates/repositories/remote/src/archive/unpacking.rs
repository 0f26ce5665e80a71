//! Unpacks an archive into the cache, which stays within its limit meanwhile. The length of an archive says little about its
//! unpacked size.

use std::{
    io::{self, Read},
    path::Path,
};

use galatea_tar_archive::{Bounds, UnpackError, Watch};

use crate::{
    cache::{Cache, CacheKey, EntryRoom, not_written},
    error::{FailureKind, RemoteError},
};

/// Most files, folders and links in an archive.
const MAX_FILES: u64 = 100_000;
/// Bytes that even the shortest file takes on a disk.
const LEAST_FILE: u64 = 4 << 10;
/// Bytes for which room is made in advance.
const STEP: u64 = 64 << 20;

/// An archive that becomes an entry of the cache.
pub(super) struct Unpacking<'a> {
    cache: &'a Cache,
    key: &'a CacheKey,
    /// Name for messages.
    what: &'a str,
    room: EntryRoom,
    /// Bytes for which room was made.
    made: u64,
    failure: Option<RemoteError>,
}

pub(super) enum ArchiveFailure {
    /// There is no room for it, or it could not be written.
    Here(RemoteError),
    /// The archive is damaged.
    Damaged(UnpackError),
}

impl<'a> Unpacking<'a> {
    pub fn new(cache: &'a Cache, key: &'a CacheKey, what: &'a str) -> Self {
        let room = cache.room_for(key);
        Self { cache, key, what, room, made: 0, failure: None }
    }

    /// Unpacks the archive into `folder`, a part of its entry.
    pub fn unpack(mut self, archive: impl Read, folder: &Path) -> Result<(), ArchiveFailure> {
        let bytes = self.room.bytes();
        let files = MAX_FILES.min(bytes / LEAST_FILE + 1);
        let bounds = Bounds { bytes, files };
        let unpacked = galatea_tar_archive::unpack_gzip(archive, folder, bounds, &mut self);
        unpacked.map_err(|error| match (error, self.failure.take()) {
            (_, Some(failure)) => ArchiveFailure::Here(failure),
            (UnpackError::TooManyBytes(_), None) => ArchiveFailure::Here(self.too_large()),
            (UnpackError::TooManyFiles(most), None) if most < MAX_FILES => {
                ArchiveFailure::Here(self.too_large())
            }
            (UnpackError::Write { error, .. }, None) => {
                ArchiveFailure::Here(not_written(folder, &error))
            }
            (error, None) => ArchiveFailure::Damaged(error),
        })
    }

    fn too_large(&self) -> RemoteError {
        let EntryRoom { limit, in_use } = self.room;
        let text = format!(
            "the archive unpacks to more than the {} bytes available: the cache of models may hold {limit} bytes, \
             and models in use take {in_use}; allow more with --repository-cache-size",
            self.room.bytes()
        );
        RemoteError::new(FailureKind::Local, text)
    }
}

impl Watch for Unpacking<'_> {
    fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        if bytes <= self.made {
            return Ok(());
        }
        let made = bytes.saturating_add(STEP).min(self.room.bytes()).max(bytes);
        if let Err(failure) = self.cache.make_room(self.key, self.what, made) {
            self.failure = Some(failure.clone());
            return Err(io::Error::other(failure));
        }
        self.made = made;
        Ok(())
    }

    fn show_progress(&mut self, bytes: u64) {
        log::info!("fetching {}: {bytes} bytes unpacked", self.what);
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc};

    use flate2::{Compression, write::GzEncoder};

    use super::*;
    use crate::cache::{CacheLease, CacheLimit};

    /// An archive of files of these sizes, all zeros.
    fn archive(sizes: &[u64]) -> Vec<u8> {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (size, number) in sizes.iter().zip(0..) {
            let mut header = tar::Header::new_gnu();
            header.set_size(*size);
            header.set_mode(0o644);
            let content = io::repeat(0).take(*size);
            archive.append_data(&mut header, format!("{number}"), content).expect("packed");
        }
        archive.into_inner().and_then(GzEncoder::finish).expect("packed")
    }

    fn key(name: &str) -> CacheKey {
        CacheKey::of(name, ["archive"])
    }

    fn get(cache: &Cache, name: &str, sizes: &[u64]) -> Result<CacheLease, RemoteError> {
        let (key, archive) = (key(name), archive(sizes));
        cache.get(&key, name, archive.len() as u64, &mut |folder| {
            let unpacked = Unpacking::new(cache, &key, name)
                .unpack(archive.as_slice(), &folder.join(key.name()));
            unpacked.map_err(|error| match error {
                ArchiveFailure::Here(error) => error,
                ArchiveFailure::Damaged(error) => panic!("{error}"),
            })
        })
    }

    fn open(folder: &Path, limit: u64) -> Arc<Cache> {
        Cache::open(folder, CacheLimit::Bytes(limit)).expect("usable")
    }

    /// Bytes of all files below a folder.
    fn held(folder: &Path) -> u64 {
        let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("read"));
        entries
            .map(|entry| match entry.metadata().expect("there") {
                found if found.is_dir() => held(&entry.path()),
                _ if entry.file_name() == "manifest.json" => 0,
                found => found.len(),
            })
            .sum()
    }

    #[test]
    fn an_archive_that_unpacks_beyond_the_limit_is_refused_and_removed() {
        let home = tempfile::tempdir().expect("folder");
        let cache = open(home.path(), 100_000);
        for sizes in [&[60_000, 60_000][..], &[1 << 26], &[1; 60]] {
            assert!(archive(sizes).len() < 3 << 20, "short as it comes");
            let error = get(&cache, "bomb", sizes).expect_err("too large").to_string();
            for part in ["100000 bytes", "--repository-cache-size"] {
                assert!(error.contains(part), "{error}");
            }
            assert_eq!(held(home.path()), 0, "what was written is gone");
        }
        drop(get(&cache, "small", &[60_000]).expect("it fits"));
        assert_eq!(held(home.path()), 60_000);
    }

    #[test]
    fn unpacking_evicts_entries_that_are_not_in_use() {
        let home = tempfile::tempdir().expect("folder");
        let cache = open(home.path(), 100_000);
        let used = get(&cache, "used", &[50_000]).expect("it fits");
        drop(get(&cache, "idle", &[40_000]).expect("it fits"));
        let error = get(&cache, "new", &[30_000, 30_000]).expect_err("too large").to_string();
        assert!(error.contains("models in use take 50000"), "{error}");
        assert!(held(home.path()) <= 100_000);
        drop(get(&cache, "new", &[20_000, 25_000]).expect("it fits when the idle one goes"));
        assert!(cache.find(&key("idle")).expect("usable").is_none());
        assert_eq!(held(home.path()), 95_000);
        drop(used);
        drop(get(&cache, "new2", &[90_000]).expect("none is in use"));
        assert_eq!(held(home.path()), 90_000);
    }
}
