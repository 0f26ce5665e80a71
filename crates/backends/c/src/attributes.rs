//! The wishes of a backend: `TRITONBACKEND_BackendAttribute`.

use std::sync::{Arc, Mutex};

use galatea_triton_c::{Kind, Table, abi, call};
use galatea_types::{LockExt as _, Result};

use crate::hooks::Hooks;

/// The wishes of a backend. Instances are loaded one after another whatever it wishes, and groups are those of the
/// configuration: they are kept to be logged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    /// Kinds of instances, the preferred one first.
    preferred_kinds: Vec<u32>,
    loads_in_parallel: bool,
}

const KIND: Kind = Kind { number: 30, name: "TRITONBACKEND_BackendAttribute" };
static ATTRIBUTES: Table<abi::BackendAttribute, Mutex<Attributes>> = Table::new(KIND, 1 << 10);
/// Most preferred groups, and most devices of one.
const MOST_GROUPS: usize = 64;
const MOST_DEVICES: usize = 1024;

/// Asks a backend for its wishes.
pub(crate) fn read(hooks: &Hooks, backend: *mut abi::Backend) -> Result<()> {
    let attributes = Arc::new(Mutex::new(Attributes::default()));
    let registered = ATTRIBUTES.register(attributes.clone())?;
    hooks.read_attributes(backend, registered.handle())?;
    log::debug!("a backend wishes {:?}", attributes.lock_unpoisoned());
    Ok(())
}

pub(crate) unsafe extern "C" fn add_preferred_group(
    attributes: *mut abi::BackendAttribute,
    kind: u32,
    _count: u64,
    devices: *const u64,
    device_count: u64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup", || {
        let held = ATTRIBUTES.get(attributes)?;
        // SAFETY: the caller gives that many numbers.
        unsafe { call::list(devices, device_count, MOST_DEVICES, "devices") }?;
        let mut attributes = held.lock_unpoisoned();
        if attributes.preferred_kinds.len() < MOST_GROUPS {
            attributes.preferred_kinds.push(kind);
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn set_parallel_loading(
    attributes: *mut abi::BackendAttribute,
    is_enabled: bool,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading", || {
        ATTRIBUTES.get(attributes)?.lock_unpoisoned().loads_in_parallel = is_enabled;
        Ok(())
    })
}
