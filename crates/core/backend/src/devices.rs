//! Devices with memory of their own.

use std::sync::Arc;

use galatea_types::{Device, DeviceAllocator};

/// The devices whose memory models may allocate. By default there is none, and models have host memory alone.
#[derive(Clone, Debug, Default)]
pub struct Devices(Arc<[Arc<dyn DeviceAllocator>]>);

impl Devices {
    /// The devices of these allocators.
    pub fn new(allocators: Vec<Arc<dyn DeviceAllocator>>) -> Self {
        Self(allocators.into())
    }

    /// Returns what allocates memory of this device, if it may be allocated.
    pub fn allocator_of(&self, device: Device) -> Option<&Arc<dyn DeviceAllocator>> {
        self.0.iter().find(|allocator| allocator.device() == device)
    }
}
