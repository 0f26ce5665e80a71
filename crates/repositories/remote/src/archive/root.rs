//! An archive as a repository. It is fetched and unpacked into the cache folder once, and is then a folder of this machine.

use std::{
    fmt, fs, io,
    path::Path,
    sync::{Arc, Mutex, OnceLock},
};

use galatea_engine::{FolderLease, FolderSnapshot, RepositoryRoot};
use galatea_types::{LockExt, Result};
use galatea_web_client::WebClient;

use super::{
    address::ArchiveAddress,
    download::Download,
    unpacking::{ArchiveFailure, Unpacking},
};
use crate::{
    cache::{Cache, CacheKey, CacheLease, not_written},
    error::{FailureKind, RemoteError},
    last_contact::LastContact,
};

/// Opens the repository in a folder on this machine: a model repository, the folder of one model, or a folder with a model
/// file. The first argument names it in messages. An error is a text for users.
pub type OpenFolder = fn(&str, &Path) -> std::result::Result<Arc<dyn RepositoryRoot>, String>;

/// The repository in an archive.
pub struct ArchiveRoot {
    address: ArchiveAddress,
    network: Arc<WebClient>,
    cache: Arc<Cache>,
    open_folder: OpenFolder,
    reach: LastContact,
    unpacked: OnceLock<Arc<UnpackedArchive>>,
    /// Held during a fetch: other callers meanwhile want the same archive.
    fetching: Mutex<()>,
}

/// The unpacked content of an archive, kept while it is used.
struct UnpackedArchive {
    root: Arc<dyn RepositoryRoot>,
    _lease: CacheLease,
}

struct ModelLease {
    folder: FolderLease,
    _unpacked: Arc<UnpackedArchive>,
}

impl AsRef<Path> for ModelLease {
    fn as_ref(&self) -> &Path {
        self.folder.path()
    }
}

impl ArchiveRoot {
    /// Makes the repository. Fetches nothing yet.
    pub fn new(
        address: ArchiveAddress,
        network: Arc<WebClient>,
        cache: Arc<Cache>,
        open_folder: OpenFolder,
    ) -> Self {
        let (unpacked, fetching) = (OnceLock::new(), Mutex::default());
        Self {
            address,
            network,
            cache,
            open_folder,
            reach: LastContact::default(),
            unpacked,
            fetching,
        }
    }

    fn unpacked(&self) -> std::result::Result<&Arc<UnpackedArchive>, RemoteError> {
        if let Some(unpacked) = self.unpacked.get() {
            return Ok(unpacked);
        }
        let _fetching = self.fetching.lock_unpoisoned();
        if let Some(unpacked) = self.unpacked.get() {
            return Ok(unpacked);
        }
        let made = self.make();
        self.reach.note(&self.address.place, &made);
        let made = made.map_err(|error| error.within(format!("'{}'", self.address.place)))?;
        Ok(self.unpacked.get_or_init(|| Arc::new(made)))
    }

    fn make(&self) -> std::result::Result<UnpackedArchive, RemoteError> {
        let lease = self.lease_of_archive()?;
        let root = (self.open_folder)(&self.address.place, lease.as_ref());
        let root = root.map_err(|text| RemoteError::new(FailureKind::Invalid, text))?;
        Ok(UnpackedArchive { root, _lease: lease })
    }

    fn lease_of_archive(&self) -> std::result::Result<CacheLease, RemoteError> {
        let address = &self.address;
        let key = CacheKey::of(&address.name, ["archive", &address.digest]);
        if let Some(lease) = self.cache.find(&key)? {
            return Ok(lease);
        }
        let first = Download::start(&self.network, address)?;
        let size = first.length.unwrap_or(0);
        let what = format!("'{}'", address.place);
        let mut first = Some(first);
        self.cache.get(&key, &what, size, &mut |folder| {
            let download = match first.take() {
                Some(download) => download,
                None => Download::start(&self.network, address)?,
            };
            let unpacking = Unpacking::new(&self.cache, &key, &what);
            self.unpack(download, unpacking, folder, &folder.join(key.name()))
        })
    }

    fn unpack(
        &self,
        mut download: Download,
        unpacking: Unpacking<'_>,
        cache: &Path,
        folder: &Path,
    ) -> std::result::Result<(), RemoteError> {
        // The files of an earlier attempt are useless: an archive is read from its start.
        fs::remove_dir_all(folder).map_err(|error| not_written(cache, &error))?;
        let place = &self.address.place;
        let size = download.length.map(|length| format!(": {length} bytes")).unwrap_or_default();
        log::info!("fetching '{place}'{size}");
        let unpacked = unpacking.unpack(&mut download, folder);
        // If an archive was changed on the way, the digest's error counts before any fault in the content.
        let failure = download.failure.take();
        let damaged = match (failure, unpacked) {
            (Some(failure), _) => return Err(failure),
            // After an error of this machine the rest of the archive is not requested.
            (None, Err(ArchiveFailure::Here(error))) => return Err(error),
            (None, Err(ArchiveFailure::Damaged(error))) => Some(error),
            (None, Ok(())) => None,
        };
        download.check(&self.address)?;
        match damaged {
            None => Ok(()),
            Some(error) => {
                Err(RemoteError::new(FailureKind::Invalid, format!("the archive {error}")))
            }
        }
    }
}

impl RepositoryRoot for ArchiveRoot {
    fn check(&self) -> Result<()> {
        self.unpacked()?.root.check()
    }

    fn place(&self) -> String {
        self.address.place.clone()
    }

    fn new_name(&self) -> Option<&str> {
        self.unpacked.get()?.root.new_name()
    }

    fn problem(&self) -> Option<String> {
        self.reach.problem()
    }

    fn model_names(&self) -> io::Result<Vec<String>> {
        self.unpacked()?.root.model_names()
    }

    fn holds(&self, model: &str) -> bool {
        self.unpacked().is_ok_and(|unpacked| unpacked.root.holds(model))
    }

    fn read_text(&self, model: &str, file: &str) -> io::Result<String> {
        self.unpacked()?.root.read_text(model, file)
    }

    fn snapshot(&self, model: &str) -> io::Result<FolderSnapshot> {
        self.unpacked()?.root.snapshot(model)
    }

    fn lease(&self, model: &str) -> Result<FolderLease> {
        let unpacked = self.unpacked()?;
        let folder = unpacked.root.lease(model)?;
        Ok(FolderLease::new(ModelLease { folder, _unpacked: unpacked.clone() }))
    }
}

impl fmt::Debug for ArchiveRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArchiveRoot").field(&self.address.place).finish()
    }
}
