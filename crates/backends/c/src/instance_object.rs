//! An instance as its library sees it: `TRITONBACKEND_ModelInstance`.

use std::{
    ffi::{CString, c_char, c_void},
    sync::{
        Mutex,
        atomic::{AtomicPtr, Ordering},
    },
};

use galatea_backend::InstanceSpec;
use galatea_config::InstanceKind;
use galatea_triton_c::{
    Kind, Table, abi, abi::instance_kind, call, objects::messages::OwnMessage, text,
};
use galatea_types::{Error, Result};
use serde_json::json;

use crate::{model_object::log_memory_usage, outlet::ComputeTimes};

const KIND: Kind = Kind { number: 22, name: "TRITONBACKEND_ModelInstance" };
pub(crate) static INSTANCES: Table<abi::ModelInstance, InstanceObject> = Table::new(KIND, 1 << 16);

/// The data of an instance that its library reads.
pub(crate) struct InstanceObject {
    name: CString,
    kind: InstanceKind,
    device_id: u32,
    is_passive: bool,
    host_policy: OwnMessage,
    /// The handle of its model. The model outlives it.
    model: Handle,
    state: AtomicPtr<c_void>,
    /// The times of the last execution that the library has reported.
    pub times: Mutex<Option<ComputeTimes>>,
}

struct Handle(*mut abi::Model);

// SAFETY: a number of a table, which all threads may use.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl InstanceObject {
    pub fn new(spec: &InstanceSpec, model: *mut abi::Model) -> Result<Self> {
        let device = match spec.kind {
            InstanceKind::Gpu => format!("gpu_{}", spec.device_id),
            InstanceKind::Cpu => "cpu".to_owned(),
            InstanceKind::Model => "model".to_owned(),
        };
        let policy = match spec.group.host_policy.as_str() {
            "" => device,
            named => named.to_owned(),
        };
        Ok(Self {
            name: text::to_c(&spec.name),
            kind: spec.kind,
            device_id: spec.device_id,
            is_passive: spec.group.is_passive,
            host_policy: OwnMessage::new(&json!({ policy: {} }).to_string())?,
            model: Handle(model),
            state: AtomicPtr::default(),
            times: Mutex::default(),
        })
    }
}

pub(crate) unsafe extern "C" fn instance_name(
    instance: *mut abi::ModelInstance,
    name: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceName", || {
        // SAFETY: the caller gives a place for the result; the text lives with the instance.
        unsafe { call::put(name, INSTANCES.get(instance)?.name.as_ptr(), "the name") }
    })
}

pub(crate) unsafe extern "C" fn instance_kind(
    instance: *mut abi::ModelInstance,
    kind: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceKind", || {
        let number = match INSTANCES.get(instance)?.kind {
            InstanceKind::Cpu => instance_kind::CPU,
            InstanceKind::Gpu => instance_kind::GPU,
            InstanceKind::Model => instance_kind::MODEL,
        };
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(kind, number, "the kind") }
    })
}

pub(crate) unsafe extern "C" fn instance_device_id(
    instance: *mut abi::ModelInstance,
    id: *mut i32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceDeviceId", || {
        let number = i32::try_from(INSTANCES.get(instance)?.device_id).unwrap_or(i32::MAX);
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(id, number, "the number") }
    })
}

pub(crate) unsafe extern "C" fn instance_host_policy(
    instance: *mut abi::ModelInstance,
    policy: *mut *mut abi::Message,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceHostPolicy", || {
        // SAFETY: the caller gives a place for the result; the message lives with the instance.
        unsafe { call::put(policy, INSTANCES.get(instance)?.host_policy.handle(), "the policy") }
    })
}

pub(crate) unsafe extern "C" fn instance_is_passive(
    instance: *mut abi::ModelInstance,
    is_passive: *mut bool,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceIsPassive", || {
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(is_passive, INSTANCES.get(instance)?.is_passive, "the result") }
    })
}

/// Gives no optimization profiles.
pub(crate) unsafe extern "C" fn instance_profile_count(
    instance: *mut abi::ModelInstance,
    count: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceProfileCount", || {
        INSTANCES.get(instance)?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(count, 0, "the count") }
    })
}

pub(crate) unsafe extern "C" fn instance_profile_name(
    instance: *mut abi::ModelInstance,
    index: u32,
    _name: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceProfileName", || {
        INSTANCES.get(instance)?;
        Err(Error::invalid_arg(format!("out of bounds index {index}: instance has 0 profiles")))
    })
}

/// Gives no secondary devices.
pub(crate) unsafe extern "C" fn instance_secondary_device_count(
    instance: *mut abi::ModelInstance,
    count: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceSecondaryDeviceCount", || {
        INSTANCES.get(instance)?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(count, 0, "the count") }
    })
}

pub(crate) unsafe extern "C" fn instance_secondary_device(
    instance: *mut abi::ModelInstance,
    index: u32,
    _kind: *mut *const c_char,
    _id: *mut i64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceSecondaryDeviceProperties", || {
        INSTANCES.get(instance)?;
        let text = format!("out of bounds index {index}: instance has 0 secondary devices");
        Err(Error::invalid_arg(text))
    })
}

pub(crate) unsafe extern "C" fn instance_model(
    instance: *mut abi::ModelInstance,
    model: *mut *mut abi::Model,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceModel", || {
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(model, INSTANCES.get(instance)?.model.0, "the model") }
    })
}

pub(crate) unsafe extern "C" fn instance_state(
    instance: *mut abi::ModelInstance,
    state: *mut *mut c_void,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceState", || {
        let held = INSTANCES.get(instance)?.state.load(Ordering::Acquire);
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(state, held, "the state") }
    })
}

pub(crate) unsafe extern "C" fn instance_set_state(
    instance: *mut abi::ModelInstance,
    state: *mut c_void,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceSetState", || {
        INSTANCES.get(instance)?.state.store(state, Ordering::Release);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn instance_report_memory_usage(
    instance: *mut abi::ModelInstance,
    usage: *const *const abi::BufferAttributes,
    count: u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceReportMemoryUsage", || {
        let instance = INSTANCES.get(instance)?;
        // SAFETY: the caller gives that many handles.
        unsafe { log_memory_usage(&instance.name.to_string_lossy(), usage, count) }
    })
}
