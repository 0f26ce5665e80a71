//! Regions in the memory of NVIDIA GPUs. None can be registered: this build does not open them.

use galatea_types::{Error, Result, RwLockExt};

use super::RegionTable;

impl RegionTable {
    /// Returns the error for a region of CUDA shared memory, whose handle was checked.
    ///
    /// # Errors
    /// Always `InvalidArg`.
    pub fn register_cuda(&self, name: &str) -> Result<()> {
        let text =
            format!("failed to register CUDA shared memory region: '{name}', GPUs not supported");
        Err(Error::invalid_arg(text))
    }

    /// Returns the error for the status of a region of CUDA shared memory.
    ///
    /// # Errors
    /// Always `NotFound`; its text says if a region of the system has that name.
    pub fn cuda_status(&self, name: &str) -> Result<()> {
        let text = match self.regions.read_unpoisoned().contains_key(name) {
            true => format!(
                "The region named '{name}' is registered as system shared memory, not CUDA shared memory"
            ),
            false => format!("Unable to find cuda shared memory region: '{name}'"),
        };
        Err(Error::not_found(text))
    }
}
