//! Tensors in shared memory.

mod memory;

use std::process;

use galatea_client::{Admin, RegionSlice};
use galatea_perf_types::{console::Console, failure::Result, settings::SharedMemory};
use rustix::shm;

use self::memory::RegionMemory;
use super::{
    batch::{known_byte_size, tensor},
    dataset::bad_requests,
    requests::{Requests, Slices},
};

/// A shared memory region for each input of each step, and for each output.
///
/// Their memory has a name only until the server has it, so nothing stays in the file system however the program ends. The server
/// keeps the memory until [`Regions::unregister`].
pub struct Regions {
    kind: SharedMemory,
    regions: Vec<Region>,
    slices: Slices,
}

struct Region {
    /// The name of the registration, and of the memory after a slash.
    name: String,
    byte_size: usize,
    /// Input, stream and step of the content; `None`: it is for an output.
    content: Option<(usize, usize, usize)>,
    is_registered: bool,
}

/// The names of all regions of a run, for its hasty end.
#[derive(Clone, Debug)]
pub struct RegionNames(Vec<String>);

impl Regions {
    /// Decides about names and sizes. An output of unknown size gets `output_size` bytes for each element of the batch.
    pub fn plan(requests: &Requests, kind: SharedMemory, output_size: usize) -> Self {
        let mut regions = Self { kind, regions: Vec::new(), slices: Slices::default() };
        let mark = format!("{}_{:08x}", process::id(), fastrand::u32(..));
        for output in &requests.model.outputs {
            let byte_size = known_byte_size(output).unwrap_or(output_size);
            let byte_size = byte_size.saturating_mul(requests.batch_size);
            let slice = regions.add(&output.name, &mark, byte_size, None);
            regions.slices.outputs.insert(output.name.clone(), slice);
        }
        for (stream, steps) in requests.data.streams.iter().enumerate() {
            for (step, data) in steps.iter().enumerate() {
                for (index, input) in requests.model.inputs.iter().enumerate() {
                    if tensor(data, index).is_none() {
                        continue;
                    }
                    let name = format!("{}_{stream}_{step}", input.name);
                    let content = (index, stream, step);
                    let byte_size = requests.input_byte_size(index, stream, step);
                    let slice = regions.add(&name, &mark, byte_size, Some(content));
                    regions.slices.inputs.insert(content, slice);
                }
            }
        }
        regions
    }

    /// Makes the memory of each region, fills that of the inputs and registers it with the server.
    pub async fn register(&mut self, requests: &Requests, admin: &mut Admin) -> Result<()> {
        let register = async |name: &str, memory: &RegionMemory, byte_size| match memory.key() {
            Some(key) => admin.register_system_region(name, key, byte_size).await,
            None => admin.register_passed_region(name, memory.descriptor(), byte_size).await,
        };
        self.register_each(requests, register).await
    }

    /// Unregisters every region and continues after errors; returns the first one.
    pub async fn unregister(&mut self, admin: &mut Admin) -> galatea_types::Result<()> {
        self.unregister_each(async |name: &str| admin.unregister_system_region(name).await).await
    }

    async fn register_each<F>(&mut self, requests: &Requests, mut register: F) -> Result<()>
    where
        F: AsyncFnMut(&str, &RegionMemory, usize) -> galatea_types::Result<()>,
    {
        for region in &mut self.regions {
            let memory = region.memory(self.kind, requests)?;
            // Set before the call: one that fails half-way may have registered.
            region.is_registered = true;
            register(&region.name, &memory, region.byte_size).await.map_err(bad_requests)?;
        }
        Ok(())
    }

    async fn unregister_each<F>(&mut self, mut unregister: F) -> galatea_types::Result<()>
    where
        F: AsyncFnMut(&str) -> galatea_types::Result<()>,
    {
        let mut result = Ok(());
        for region in self.regions.iter_mut().filter(|region| region.is_registered) {
            region.is_registered = false;
            result = result.and(unregister(&region.name).await);
        }
        result
    }

    /// Puts the tensors of the requests into these regions. Expected outputs are then not checked, and `console` gets a warning:
    /// the responses to concurrent requests overwrite each other.
    pub fn use_for(&self, requests: &mut Requests, console: &mut dyn Console) {
        requests.use_slices(&self.slices, console);
    }

    /// Returns the names of all regions, registered or not.
    pub fn names(&self) -> RegionNames {
        RegionNames(self.regions.iter().map(|region| region.name.clone()).collect())
    }

    fn add(
        &mut self,
        tensor: &str,
        mark: &str,
        byte_size: usize,
        content: Option<(usize, usize, usize)>,
    ) -> RegionSlice {
        let name = region_name(tensor, mark, self.regions.len());
        let slice = RegionSlice { region: name.clone(), offset: 0, byte_size };
        // An empty file cannot be mapped.
        let byte_size = byte_size.max(1);
        self.regions.push(Region { name, byte_size, content, is_registered: false });
        slice
    }
}

impl RegionNames {
    /// Removes what a run has left of its regions when it cannot end in order: names in the file system, then registrations. A
    /// region that is not there is no error.
    pub async fn remove(&self, admin: &mut Admin) {
        self.unlink();
        for name in &self.0 {
            // Nobody is left to report to.
            let _ = admin.unregister_system_region(name).await;
        }
    }

    /// Removes the names in the file system.
    pub fn unlink(&self) {
        for name in &self.0 {
            // Most are unlinked already.
            let _ = shm::unlink(format!("/{name}"));
        }
    }
}

impl Region {
    fn memory(&self, kind: SharedMemory, requests: &Requests) -> Result<RegionMemory> {
        let content = self.content.map(|(index, stream, step)| {
            // The data of all steps of a batch.
            requests.input_bytes(index, stream, step)
        });
        let content = content.unwrap_or_default();
        let byte_size = u64::try_from(self.byte_size).unwrap_or(u64::MAX);
        let memory = match kind {
            SharedMemory::Memfd => RegionMemory::unnamed(&self.name, byte_size, &content),
            _ => RegionMemory::named(&self.name, byte_size, &content),
        };
        memory.map_err(|error| {
            bad_requests(format!(
                "unable to create shared memory region '{}' of {byte_size} bytes: {error}",
                self.name
            ))
        })
    }
}

/// Makes a name that begins with the tensor's, for readers of the server's list, and is unique.
fn region_name(tensor: &str, mark: &str, number: usize) -> String {
    let readable = tensor.chars().filter(|letter| !matches!(letter, '/' | '\\' | '\0')).take(40);
    format!("{}_{mark}_{number}", readable.collect::<String>())
}

#[cfg(test)]
mod tests;
