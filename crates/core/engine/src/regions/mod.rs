//! The shared memory regions that clients have registered, by name.

mod cuda;
mod file;
mod passed;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    os::fd::BorrowedFd,
    path::PathBuf,
    sync::{Arc, RwLock},
};

use galatea_types::{Error, MemoryBudget, Region, Regions, Result, RwLockExt};
use rustix::process::{Resource, getrlimit};

use self::file::FileRegion;

/// The folder of the system's shared memory.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";
/// The largest number of regions at a time, for a process that may open many descriptors.
const MOST_REGIONS: usize = 4096;
/// The part of the process's descriptors that regions may take, because each holds one.
const DESCRIPTORS_SHARE: u64 = 8;
/// The longest name or key in bytes. File names have at most 255, but clients may write any number of slashes before.
const LONGEST_NAME: usize = 1024;

/// A region of system shared memory as a client describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionDescription {
    /// The name used in requests.
    pub name: String,
    /// The name of the memory in the system, as the client wrote it; empty for memory that a client has passed.
    pub key: String,
    /// The first byte of the memory in the region.
    pub offset: u64,
    /// Number of bytes.
    pub byte_size: u64,
}

/// The registered regions. Names are unique.
///
/// An unregistered region is not found any more. Requests that have found it still use it; its descriptor is closed with the
/// last of them.
pub struct RegionTable {
    folder: PathBuf,
    memory: Arc<MemoryBudget>,
    regions: RwLock<BTreeMap<String, Arc<FileRegion>>>,
}

impl RegionTable {
    /// Creates an empty table for the shared memory in `folder`. Copies of data that is read count to `memory`.
    pub fn new(folder: impl Into<PathBuf>, memory: Arc<MemoryBudget>) -> Self {
        Self { folder: folder.into(), memory, regions: RwLock::default() }
    }

    /// Opens the described memory, and registers it.
    ///
    /// # Errors
    /// `AlreadyExists` for a name that is taken; `InvalidArg` for a name or key that is too long, a key or a range that the
    /// memory does not have; `Internal` if the memory cannot be opened; `Exhausted` if there are too many regions.
    pub fn register(&self, description: RegionDescription) -> Result<()> {
        self.check_name(&description.name)?;
        check_length("key", &description.key)?;
        self.insert(FileRegion::open(&self.folder, description, self.memory.clone())?)
    }

    /// Registers the memory of a descriptor that a client has passed, as the described region, which has no key. The caller
    /// keeps the descriptor.
    ///
    /// # Errors
    /// `AlreadyExists` for a name that is taken; `InvalidArg` for a name that is too long, a descriptor that is no memory to
    /// read and write, or a range that it does not have; `Exhausted` if there are too many regions.
    pub fn register_descriptor(
        &self,
        description: RegionDescription,
        descriptor: BorrowedFd<'_>,
    ) -> Result<()> {
        self.check_name(&description.name)?;
        self.insert(FileRegion::of_descriptor(description, descriptor, self.memory.clone())?)
    }

    fn check_name(&self, name: &str) -> Result<()> {
        match self.regions.read_unpoisoned().contains_key(name) {
            true => Err(name_is_taken(name)),
            false => check_length("name", name),
        }
    }

    fn insert(&self, region: FileRegion) -> Result<()> {
        let most = most_regions();
        let mut regions = self.regions.write_unpoisoned();
        if regions.len() >= most {
            let text = format!(
                "{most} shared memory regions are registered, as many as may be: unregister some first"
            );
            return Err(Error::new(galatea_types::Code::Exhausted, text));
        }
        match regions.entry(region.description.name.clone()) {
            Entry::Vacant(entry) => _ = entry.insert(Arc::new(region)),
            Entry::Occupied(entry) => return Err(name_is_taken(entry.key())),
        }
        Ok(())
    }

    /// Unregisters the region called `name`, if there is one.
    pub fn unregister(&self, name: &str) {
        // The descriptor may be closed here, without the lock.
        let region = self.regions.write_unpoisoned().remove(name);
        drop(region);
    }

    /// Unregisters all regions.
    pub fn unregister_all(&self) {
        let regions = std::mem::take(&mut *self.regions.write_unpoisoned());
        drop(regions);
    }

    /// Returns the description of the region called `name`.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    pub fn status(&self, name: &str) -> Result<RegionDescription> {
        let regions = self.regions.read_unpoisoned();
        regions.get(name).map(|region| region.description.clone()).ok_or_else(|| {
            Error::not_found(format!("Unable to find system shared memory region: '{name}'"))
        })
    }

    /// Returns the descriptions of all regions, sorted by name.
    pub fn list(&self) -> Vec<RegionDescription> {
        let regions = self.regions.read_unpoisoned();
        regions.values().map(|region| region.description.clone()).collect()
    }
}

/// An empty table for the shared memory of the system, without a bound on copies.
impl Default for RegionTable {
    fn default() -> Self {
        Self::new(SHARED_MEMORY, MemoryBudget::unlimited())
    }
}

impl Regions for RegionTable {
    fn find(&self, name: &str) -> Result<Arc<dyn Region>> {
        match self.regions.read_unpoisoned().get(name) {
            Some(region) => Ok(region.clone()),
            None => Err(Error::not_found(format!("Unable to find shared memory region: '{name}'"))),
        }
    }
}

/// Returns the largest number of regions that leaves descriptors for connections and models.
fn most_regions() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(descriptors / DESCRIPTORS_SHARE).map_or(MOST_REGIONS, |n| n.min(MOST_REGIONS))
}

fn check_length(what: &str, text: &str) -> Result<()> {
    match text.len() <= LONGEST_NAME {
        true => Ok(()),
        false => Err(Error::invalid_arg(format!(
            "the {what} of a shared memory region is {} bytes long, but may have {LONGEST_NAME}",
            text.len()
        ))),
    }
}

fn name_is_taken(name: &str) -> Error {
    let text = format!("shared memory region '{name}' already in manager");
    Error::new(galatea_types::Code::AlreadyExists, text)
}
