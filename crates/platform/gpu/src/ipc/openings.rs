//! The allocations that are open, by their handles.
//!
//! The driver may refuse to open a handle twice in one process. So each is opened once and shared, and opening it anew waits
//! until it is closed. No lock is held while the driver works.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Condvar, Mutex, Weak},
    time::Duration,
};

use galatea_types::{CondvarExt, LockExt};

use super::{IpcAllocation, IpcHandle, mapping::Mapping};
use crate::error::GpuError;

/// The longest wait for another thread that opens or closes the same handle. The first call for a GPU takes about a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// The number of a GPU, and a handle.
type Key = (u32, IpcHandle);

/// All opened allocations.
#[derive(Default)]
pub(super) struct Openings {
    slots: Mutex<HashMap<Key, Slot>>,
    changed: Condvar,
}

/// The state of one handle.
enum Slot {
    /// A thread is opening it.
    Opening,
    /// It is open, or being closed if nobody has it any more.
    Open(Weak<SharedMapping>),
}

/// An allocation with its registration, in the order in which both are dropped.
struct SharedMapping {
    mapping: Mapping,
    _registration: Registration,
}

/// The entry of a handle, which is removed when this is dropped.
struct Registration {
    openings: Arc<Openings>,
    key: Key,
}

impl Openings {
    /// Returns the open allocation of `key`, or the one that `open` opens.
    pub fn share(
        self: &Arc<Self>,
        key: Key,
        open: impl FnOnce() -> Result<Mapping, GpuError>,
    ) -> Result<Arc<dyn IpcAllocation>, GpuError> {
        if let Some(shared) = self.find_or_reserve(key)? {
            return Ok(shared);
        }
        let registration = Registration { openings: self.clone(), key };
        let shared = Arc::new(SharedMapping { mapping: open()?, _registration: registration });
        let slot = Slot::Open(Arc::downgrade(&shared));
        self.slots.lock_unpoisoned().insert(key, slot);
        self.changed.notify_all();
        Ok(shared)
    }

    /// Returns the open allocation, or `None` after the slot was taken for the caller. Waits for another thread that opens or
    /// closes it.
    fn find_or_reserve(&self, key: Key) -> Result<Option<Arc<SharedMapping>>, GpuError> {
        let mut found = None;
        let slots = self.slots.lock_unpoisoned();
        let (mut slots, is_late) =
            self.changed.wait_timeout_while_unpoisoned(slots, PATIENCE, |slots| {
                match slots.get(&key) {
                    None => false,
                    Some(Slot::Opening) => true,
                    Some(Slot::Open(shared)) => {
                        found = shared.upgrade();
                        found.is_none()
                    }
                }
            });
        if is_late {
            return Err(GpuError::Busy(PATIENCE));
        }
        if found.is_none() {
            slots.insert(key, Slot::Opening);
        }
        Ok(found)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.openings.slots.lock_unpoisoned().remove(&self.key);
        self.openings.changed.notify_all();
    }
}

impl fmt::Debug for SharedMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mapping.fmt(f)
    }
}

impl IpcAllocation for SharedMapping {
    fn byte_size(&self) -> u64 {
        self.mapping.byte_size()
    }

    fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), GpuError> {
        self.mapping.read(offset, target)
    }

    fn write(&self, offset: u64, source: &[u8]) -> Result<(), GpuError> {
        self.mapping.write(offset, source)
    }
}
