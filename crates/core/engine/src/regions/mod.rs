//! The shared memory regions that clients have registered, by name.

mod bounds;
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

use galatea_gpu::{IpcHandle, IpcMemory};
use galatea_types::{Error, MemoryBudget, Region, Regions, Result, RwLockExt};
use rustix::process::{Resource, getrlimit};

pub use self::cuda::CudaRegionDescription;
use self::{cuda::CudaRegion, file::FileRegion};

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

/// The registered regions of the system and of GPUs. Names are unique among both.
///
/// An unregistered region is not found any more. Requests that have found it still use it; its descriptor or handle is closed
/// with the last of them.
pub struct RegionTable {
    folder: PathBuf,
    gpus: Option<Arc<dyn IpcMemory>>,
    memory: Arc<MemoryBudget>,
    regions: RwLock<BTreeMap<String, RegisteredRegion>>,
}

/// A region with the kind of its memory.
#[derive(Clone, Debug)]
enum RegisteredRegion {
    System(Arc<FileRegion>),
    Cuda(Arc<CudaRegion>),
}

impl RegionTable {
    /// Creates an empty table for the shared memory in `folder`. Copies of data that is read count to `memory`.
    pub fn new(folder: impl Into<PathBuf>, memory: Arc<MemoryBudget>) -> Self {
        Self { folder: folder.into(), gpus: None, memory, regions: RwLock::default() }
    }

    /// Adds memory of GPUs; `None` if the machine has no CUDA driver.
    #[must_use]
    pub fn with_gpus(self, gpus: Option<Arc<dyn IpcMemory>>) -> Self {
        Self { gpus, ..self }
    }

    /// Opens the described memory, and registers it.
    ///
    /// # Errors
    /// `AlreadyExists` for a name that is taken; `InvalidArg` for a name or key that is too long, a key or a range that the
    /// memory does not have; `Internal` if the memory cannot be opened; `Exhausted` if there are too many regions.
    pub fn register(&self, description: RegionDescription) -> Result<()> {
        self.check_name(&description.name)?;
        check_length("key", &description.key)?;
        let region = FileRegion::open(&self.folder, description, self.memory.clone())?;
        self.insert_file(region)
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
        let memory = self.memory.clone();
        self.insert_file(FileRegion::of_descriptor(description, descriptor, memory)?)
    }

    fn insert_file(&self, region: FileRegion) -> Result<()> {
        let name = region.description.name.clone();
        self.insert(name, RegisteredRegion::System(Arc::new(region)))
    }

    /// Opens the memory of a GPU behind `handle`, which is a `cudaIpcMemHandle_t`, and registers it.
    ///
    /// # Errors
    /// `AlreadyExists` for a name that is taken; `InvalidArg` for a name that is too long, a handle or a GPU that the driver
    /// does not know, a size that the memory does not have, and everything without a driver; `Exhausted` if there are too
    /// many regions.
    pub fn register_cuda(&self, description: CudaRegionDescription, handle: &[u8]) -> Result<()> {
        let handle = IpcHandle::from_bytes(handle).ok_or_else(cuda::not_accepted)?;
        let gpus = self.gpus.as_deref().ok_or_else(|| cuda::not_supported(&description.name))?;
        self.check_name(&description.name)?;
        let region = CudaRegion::open(gpus, description, handle, self.memory.clone())?;
        let name = region.description.name.clone();
        self.insert(name, RegisteredRegion::Cuda(Arc::new(region)))
    }

    /// Checks that a region of this name may be registered, before anything is opened for it.
    fn check_name(&self, name: &str) -> Result<()> {
        let regions = self.regions.read_unpoisoned();
        if regions.contains_key(name) {
            return Err(name_is_taken(name));
        }
        check_length("name", name)?;
        check_count(regions.len())
    }

    fn insert(&self, name: String, region: RegisteredRegion) -> Result<()> {
        let mut regions = self.regions.write_unpoisoned();
        check_count(regions.len())?;
        match regions.entry(name) {
            Entry::Vacant(entry) => _ = entry.insert(region),
            Entry::Occupied(entry) => return Err(name_is_taken(entry.key())),
        }
        Ok(())
    }

    /// Unregisters the region of the system called `name`, if there is one.
    pub fn unregister(&self, name: &str) {
        self.remove(name, RegisteredRegion::is_system);
    }

    /// Unregisters the region of a GPU called `name`, if there is one.
    pub fn unregister_cuda(&self, name: &str) {
        self.remove(name, RegisteredRegion::is_cuda);
    }

    /// Removes the region if it is of that kind.
    fn remove(&self, name: &str, is_of_kind: fn(&RegisteredRegion) -> bool) {
        let mut regions = self.regions.write_unpoisoned();
        let region = match regions.entry(name.to_owned()) {
            Entry::Occupied(entry) if is_of_kind(entry.get()) => Some(entry.remove()),
            _ => None,
        };
        // The memory may be closed here, without the lock.
        drop(regions);
        drop(region);
    }

    /// Unregisters all regions of the system.
    pub fn unregister_all(&self) {
        self.remove_all(RegisteredRegion::is_system);
    }

    /// Unregisters all regions of GPUs.
    pub fn unregister_all_cuda(&self) {
        self.remove_all(RegisteredRegion::is_cuda);
    }

    fn remove_all(&self, is_of_kind: fn(&RegisteredRegion) -> bool) {
        let mut regions = self.regions.write_unpoisoned();
        let all = std::mem::take(&mut *regions);
        let (removed, kept) = all.into_iter().partition(|(_, region)| is_of_kind(region));
        *regions = kept;
        drop(regions);
        drop::<BTreeMap<_, _>>(removed);
    }

    /// Returns the description of the region of the system called `name`.
    ///
    /// # Errors
    /// `NotFound` when there is none; the text says if a region of a GPU has that name.
    pub fn status(&self, name: &str) -> Result<RegionDescription> {
        let text = match self.regions.read_unpoisoned().get(name) {
            Some(RegisteredRegion::System(region)) => return Ok(region.description.clone()),
            Some(RegisteredRegion::Cuda(_)) => format!(
                "The region named '{name}' is registered as CUDA shared memory, not system shared memory"
            ),
            None => format!("Unable to find system shared memory region: '{name}'"),
        };
        Err(Error::not_found(text))
    }

    /// Returns the description of the region of a GPU called `name`.
    ///
    /// # Errors
    /// `NotFound` when there is none; the text says if a region of the system has that name.
    pub fn cuda_status(&self, name: &str) -> Result<CudaRegionDescription> {
        let text = match self.regions.read_unpoisoned().get(name) {
            Some(RegisteredRegion::Cuda(region)) => return Ok(region.description.clone()),
            Some(RegisteredRegion::System(_)) => format!(
                "The region named '{name}' is registered as system shared memory, not CUDA shared memory"
            ),
            None => format!("Unable to find cuda shared memory region: '{name}'"),
        };
        Err(Error::not_found(text))
    }

    /// Returns the descriptions of all regions of the system, sorted by name.
    pub fn list(&self) -> Vec<RegionDescription> {
        let description = |region: &RegisteredRegion| match region {
            RegisteredRegion::System(region) => Some(region.description.clone()),
            RegisteredRegion::Cuda(_) => None,
        };
        self.regions.read_unpoisoned().values().filter_map(description).collect()
    }

    /// Returns the descriptions of all regions of GPUs, sorted by name.
    pub fn list_cuda(&self) -> Vec<CudaRegionDescription> {
        let description = |region: &RegisteredRegion| match region {
            RegisteredRegion::Cuda(region) => Some(region.description.clone()),
            RegisteredRegion::System(_) => None,
        };
        self.regions.read_unpoisoned().values().filter_map(description).collect()
    }
}

impl RegisteredRegion {
    fn is_system(&self) -> bool {
        matches!(self, Self::System(_))
    }

    fn is_cuda(&self) -> bool {
        matches!(self, Self::Cuda(_))
    }
}

/// An empty table for the shared memory of the system, without GPUs and without a bound on copies.
impl Default for RegionTable {
    fn default() -> Self {
        Self::new(SHARED_MEMORY, MemoryBudget::unlimited())
    }
}

impl Regions for RegionTable {
    fn find(&self, name: &str) -> Result<Arc<dyn Region>> {
        match self.regions.read_unpoisoned().get(name) {
            Some(RegisteredRegion::System(region)) => Ok(region.clone()),
            Some(RegisteredRegion::Cuda(region)) => Ok(region.clone()),
            None => Err(Error::not_found(format!("Unable to find shared memory region: '{name}'"))),
        }
    }
}

/// Checks that one region more may be registered beside `count`.
fn check_count(count: usize) -> Result<()> {
    let most = most_regions();
    if count < most {
        return Ok(());
    }
    let text = format!(
        "{most} shared memory regions are registered, as many as may be: unregister some first"
    );
    Err(Error::new(galatea_types::Code::Exhausted, text))
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
