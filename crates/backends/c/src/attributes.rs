//! The wishes of a backend: `TRITONBACKEND_BackendAttribute`.

use std::sync::{Arc, Mutex};

use galatea_config::{InstanceKind, PreferredGroup};
use galatea_triton_c::{
    Kind, Table,
    abi::{self, instance_kind},
    call,
};
use galatea_types::{Error, LockExt as _, Result};

use crate::hooks::Hooks;

/// The wishes of a backend. Instances are loaded one after another whatever it wishes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    preferred_groups: Vec<PreferredGroup>,
    loads_in_parallel: bool,
}

const KIND: Kind = Kind { number: 30, name: "TRITONBACKEND_BackendAttribute" };
static ATTRIBUTES: Table<abi::BackendAttribute, Mutex<Attributes>> = Table::new(KIND, 1 << 10);
/// Most preferred groups, and most devices of one.
const MOST_GROUPS: usize = 64;
const MOST_DEVICES: usize = 1024;

/// Asks a backend for its wishes, and returns the instance groups that it prefers.
pub(crate) fn read(hooks: &Hooks, backend: *mut abi::Backend) -> Result<Vec<PreferredGroup>> {
    let attributes = Arc::new(Mutex::new(Attributes::default()));
    let registered = ATTRIBUTES.register(attributes.clone())?;
    hooks.read_attributes(backend, registered.handle())?;
    let told = attributes.lock_unpoisoned().clone();
    log::debug!("a backend wishes {told:?}");
    Ok(told.preferred_groups)
}

pub(crate) unsafe extern "C" fn add_preferred_group(
    attributes: *mut abi::BackendAttribute,
    kind: u32,
    count: u64,
    devices: *const u64,
    device_count: u64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup", || {
        let held = ATTRIBUTES.get(attributes)?;
        // SAFETY: the caller gives that many numbers.
        let devices = unsafe { call::list(devices, device_count, MOST_DEVICES, "devices") }?;
        let mut attributes = held.lock_unpoisoned();
        if attributes.preferred_groups.len() == MOST_GROUPS {
            let text = format!("a backend may prefer at most {MOST_GROUPS} instance groups");
            return Err(Error::invalid_arg(text));
        }
        let kind = kind_of(kind)?;
        let gpus = devices.iter().filter_map(|&device| u32::try_from(device).ok()).collect();
        attributes.preferred_groups.push(PreferredGroup { kind, count, gpus });
        Ok(())
    })
}

/// Returns the device of a number of `TRITONSERVER_InstanceGroupKind`; `None` is AUTO.
fn kind_of(kind: u32) -> Result<Option<InstanceKind>> {
    match kind {
        instance_kind::AUTO => Ok(None),
        instance_kind::CPU => Ok(Some(InstanceKind::Cpu)),
        instance_kind::GPU => Ok(Some(InstanceKind::Gpu)),
        instance_kind::MODEL => Ok(Some(InstanceKind::Model)),
        _ => Err(Error::invalid_arg(format!("{kind} is no kind of instance group"))),
    }
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
