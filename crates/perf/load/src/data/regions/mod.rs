//! Tensors in system shared memory.

use std::{fs::File, os::unix::fs::FileExt, process};

use galatea_client::{Admin, RegionSlice};
use galatea_perf_types::{console::Console, failure::Result, model::OutputInfo};
use galatea_types::Shape;
use rustix::{
    fs::{Mode, ftruncate},
    shm,
};

use super::{
    batch::tensor,
    dataset::bad_requests,
    requests::{Requests, Slices},
};

/// A shared memory region for each input of each step, and for each output.
///
/// Their memory is unlinked when this is dropped. A server that still has them registered keeps it mapped until
/// [`Regions::unregister`].
pub struct Regions {
    regions: Vec<Region>,
    slices: Slices,
}

struct Region {
    /// The name of the registration, and of the memory after a slash.
    name: String,
    byte_size: usize,
    is_registered: bool,
}

impl Regions {
    /// Makes the regions and fills those of the inputs. An output of unknown size gets `output_size` bytes for each element of
    /// the batch.
    pub fn create(requests: &Requests, output_size: usize) -> Result<Self> {
        let mut regions = Self { regions: Vec::new(), slices: Slices::default() };
        let mark = format!("{}_{:08x}", process::id(), fastrand::u32(..));
        for output in &requests.model.outputs {
            let byte_size = output_byte_size(output, output_size, requests.batch_size);
            let (_, slice) = regions.add(&output.name, &mark, byte_size)?;
            regions.slices.outputs.insert(output.name.clone(), slice);
        }
        for (stream, steps) in requests.data.streams.iter().enumerate() {
            for (step, data) in steps.iter().enumerate() {
                for (index, input) in requests.model.inputs.iter().enumerate() {
                    if tensor(data, index).is_none() {
                        continue;
                    }
                    let name = format!("{}_{stream}_{step}", input.name);
                    let bytes = requests.input_bytes(index, stream, step);
                    let (file, slice) = regions.add(&name, &mark, bytes.len())?;
                    file.write_all_at(&bytes, 0).map_err(|error| no_memory(&slice, error))?;
                    regions.slices.inputs.insert((index, stream, step), slice);
                }
            }
        }
        Ok(regions)
    }

    /// Registers the regions with the server.
    pub async fn register(&mut self, admin: &mut Admin) -> Result<()> {
        let register = async |name: &str, key: &str, byte_size| {
            admin.register_system_region(name, key, byte_size).await
        };
        self.register_each(register).await
    }

    /// Unregisters every region and continues after errors; returns the first one.
    pub async fn unregister(&mut self, admin: &mut Admin) -> galatea_types::Result<()> {
        self.unregister_each(async |name: &str| admin.unregister_system_region(name).await).await
    }

    async fn register_each<F>(&mut self, mut register: F) -> Result<()>
    where
        F: AsyncFnMut(&str, &str, usize) -> galatea_types::Result<()>,
    {
        for region in &mut self.regions {
            // Set before the call: one that fails half-way may have registered.
            region.is_registered = true;
            let key = region.key();
            register(&region.name, &key, region.byte_size).await.map_err(bad_requests)?;
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

    fn add(&mut self, tensor: &str, mark: &str, byte_size: usize) -> Result<(File, RegionSlice)> {
        let name = region_name(tensor, mark, self.regions.len());
        let slice = RegionSlice { region: name.clone(), offset: 0, byte_size };
        // An empty file cannot be mapped.
        let region = Region { name, byte_size: byte_size.max(1), is_registered: false };
        let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
        let memory = shm::open(region.key(), flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| no_memory(&slice, error))?;
        let size = u64::try_from(region.byte_size).unwrap_or(u64::MAX);
        // Stored first, so that it is unlinked even if the next step fails.
        self.regions.push(region);
        ftruncate(&memory, size).map_err(|error| no_memory(&slice, error))?;
        Ok((File::from(memory), slice))
    }
}

impl Region {
    fn key(&self) -> String {
        format!("/{}", self.name)
    }
}

impl Drop for Regions {
    fn drop(&mut self) {
        for region in &self.regions {
            // It is unlinked already, or nobody is left to report to.
            let _ = shm::unlink(region.key());
        }
    }
}

/// Makes a name that begins with the tensor's, for readers of the server's list, and is unique.
fn region_name(tensor: &str, mark: &str, number: usize) -> String {
    let readable = tensor.chars().filter(|letter| !matches!(letter, '/' | '\\' | '\0')).take(40);
    format!("{}_{mark}_{number}", readable.collect::<String>())
}

fn output_byte_size(output: &OutputInfo, output_size: usize, batch_size: usize) -> usize {
    let known = Shape::from(&output.shape[..]).byte_size(output.data_type);
    known.unwrap_or(output_size).saturating_mul(batch_size)
}

fn no_memory(
    slice: &RegionSlice,
    error: impl std::fmt::Display,
) -> galatea_perf_types::failure::Failure {
    let RegionSlice { region, byte_size, .. } = slice;
    bad_requests(format!(
        "unable to create shared memory region '{region}' of {byte_size} bytes: {error}"
    ))
}

#[cfg(test)]
mod tests;
