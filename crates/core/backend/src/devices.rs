//! Devices with their own memory.

use std::sync::Arc;

use galatea_types::{Device, DeviceAllocator};

/// The devices whose memory models may allocate. By default there are none, and models have only host memory.
#[derive(Clone, Debug, Default)]
pub struct Devices(Arc<[Arc<dyn DeviceAllocator>]>);

impl Devices {
    /// Creates the devices of these allocators.
    pub fn new(allocators: Vec<Arc<dyn DeviceAllocator>>) -> Self {
        Self(allocators.into())
    }

    /// Returns the allocator of this device's memory, if it may be allocated.
    pub fn allocator_of(&self, device: Device) -> Option<&Arc<dyn DeviceAllocator>> {
        self.0.iter().find(|allocator| allocator.device() == device)
    }
}
