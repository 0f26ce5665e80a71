//! Attributes of buffers: where one lies, and its size (`TRITONSERVER_BufferAttributes`).

use std::{
    ffi::c_void,
    ptr,
    sync::{Arc, Mutex, OnceLock},
};

use galatea_types::{LockExt as _, Result};

use crate::{Kind, Table, abi, call};

/// Length of a handle by which another process opens memory of a GPU.
const IPC_HANDLE: usize = 64;

/// The attributes of one buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The kind of memory: see [`abi::memory`].
    pub memory_type: u32,
    /// The number of the memory among those of its kind.
    pub memory_type_id: i64,
    /// The size in bytes.
    pub byte_size: usize,
}

#[derive(Default)]
struct HeldAttributes {
    attributes: Mutex<Attributes>,
    /// Set at most once: libraries may keep its address.
    ipc_handle: OnceLock<Box<[u8; IPC_HANDLE]>>,
}

const KIND: Kind = Kind { number: 4, name: "TRITONSERVER_BufferAttributes" };
static ATTRIBUTES: Table<abi::BufferAttributes, HeldAttributes> = Table::new(KIND, 1 << 20);

/// Makes attributes for a library. Whoever gets the handle deletes it, by [`remove`] or `TRITONSERVER_BufferAttributesDelete`.
///
/// # Errors
/// `Unavailable` if libraries hold too many.
pub fn give(attributes: Attributes) -> Result<*mut abi::BufferAttributes> {
    let held = HeldAttributes { attributes: Mutex::new(attributes), ..HeldAttributes::default() };
    ATTRIBUTES.insert(Arc::new(held))
}

/// Attributes of the server's own, which are deleted when this is dropped. Libraries read them.
#[derive(Debug)]
pub struct OwnAttributes(*mut abi::BufferAttributes);

// SAFETY: the pointer is a number of a table, which all threads may use.
unsafe impl Send for OwnAttributes {}
// SAFETY: as above.
unsafe impl Sync for OwnAttributes {}

impl OwnAttributes {
    /// Makes the attributes.
    ///
    /// # Errors
    /// Those of [`give`].
    pub fn new(attributes: Attributes) -> Result<Self> {
        give(attributes).map(Self)
    }

    /// Returns their handle.
    pub fn handle(&self) -> *mut abi::BufferAttributes {
        self.0
    }
}

impl Drop for OwnAttributes {
    fn drop(&mut self) {
        remove(self.0);
    }
}

/// Returns the attributes of a handle.
///
/// # Errors
/// The handle is none of attributes.
pub fn read(handle: *const abi::BufferAttributes) -> Result<Attributes> {
    Ok(*ATTRIBUTES.get(handle)?.attributes.lock_unpoisoned())
}

/// Sets the attributes of a handle that a library has made.
///
/// # Errors
/// The handle is none of attributes.
pub fn write(handle: *const abi::BufferAttributes, attributes: Attributes) -> Result<()> {
    *ATTRIBUTES.get(handle)?.attributes.lock_unpoisoned() = attributes;
    Ok(())
}

/// Deletes attributes. A handle that is deleted already is left alone.
pub fn remove(handle: *const abi::BufferAttributes) {
    let _ = ATTRIBUTES.remove(handle);
}

fn change(
    function: &'static str,
    handle: *mut abi::BufferAttributes,
    change: impl FnOnce(&mut Attributes),
) -> *mut abi::Error {
    call::answer(function, || {
        change(&mut ATTRIBUTES.get(handle)?.attributes.lock_unpoisoned());
        Ok(())
    })
}

/// # Safety
/// Null, or a place that may be written.
unsafe fn answer<T>(
    function: &'static str,
    handle: *mut abi::BufferAttributes,
    place: *mut T,
    get: impl FnOnce(Attributes) -> T,
) -> *mut abi::Error {
    call::answer(function, || {
        let value = get(read(handle)?);
        // SAFETY: the caller's word.
        unsafe { call::put(place, value, "the result") }
    })
}

pub(super) unsafe extern "C" fn attributes_new(
    attributes: *mut *mut abi::BufferAttributes,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_BufferAttributesNew", || {
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(attributes, give(Attributes::default())?, "the attributes") }
    })
}

pub(super) unsafe extern "C" fn attributes_delete(
    attributes: *mut abi::BufferAttributes,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_BufferAttributesDelete", || ATTRIBUTES.delete(attributes))
}

pub(super) unsafe extern "C" fn set_memory_type_id(
    attributes: *mut abi::BufferAttributes,
    id: i64,
) -> *mut abi::Error {
    let name = "TRITONSERVER_BufferAttributesSetMemoryTypeId";
    change(name, attributes, |attributes| attributes.memory_type_id = id)
}

pub(super) unsafe extern "C" fn set_memory_type(
    attributes: *mut abi::BufferAttributes,
    memory_type: u32,
) -> *mut abi::Error {
    let name = "TRITONSERVER_BufferAttributesSetMemoryType";
    change(name, attributes, |attributes| attributes.memory_type = memory_type)
}

pub(super) unsafe extern "C" fn set_byte_size(
    attributes: *mut abi::BufferAttributes,
    byte_size: usize,
) -> *mut abi::Error {
    let name = "TRITONSERVER_BufferAttributesSetByteSize";
    change(name, attributes, |attributes| attributes.byte_size = byte_size)
}

/// Copies the handle; only the first one of a buffer is kept.
pub(super) unsafe extern "C" fn set_cuda_ipc_handle(
    attributes: *mut abi::BufferAttributes,
    handle: *mut c_void,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_BufferAttributesSetCudaIpcHandle", || {
        let held = ATTRIBUTES.get(attributes)?;
        if !handle.is_null() {
            // SAFETY: the caller gives a handle of this length.
            let bytes = unsafe { handle.cast::<[u8; IPC_HANDLE]>().read_unaligned() };
            held.ipc_handle.get_or_init(|| Box::new(bytes));
        }
        Ok(())
    })
}

pub(super) unsafe extern "C" fn memory_type_id(
    attributes: *mut abi::BufferAttributes,
    id: *mut i64,
) -> *mut abi::Error {
    let name = "TRITONSERVER_BufferAttributesMemoryTypeId";
    // SAFETY: the caller gives a place for the result.
    unsafe { answer(name, attributes, id, |attributes| attributes.memory_type_id) }
}

pub(super) unsafe extern "C" fn memory_type(
    attributes: *mut abi::BufferAttributes,
    memory_type: *mut u32,
) -> *mut abi::Error {
    let name = "TRITONSERVER_BufferAttributesMemoryType";
    // SAFETY: the caller gives a place for the result.
    unsafe { answer(name, attributes, memory_type, |attributes| attributes.memory_type) }
}

pub(super) unsafe extern "C" fn byte_size(
    attributes: *mut abi::BufferAttributes,
    byte_size: *mut usize,
) -> *mut abi::Error {
    let name = "TRITONSERVER_BufferAttributesByteSize";
    // SAFETY: the caller gives a place for the result.
    unsafe { answer(name, attributes, byte_size, |attributes| attributes.byte_size) }
}

/// Returns an address that lives as long as the attributes; null if no handle was set.
pub(super) unsafe extern "C" fn cuda_ipc_handle(
    attributes: *mut abi::BufferAttributes,
    handle: *mut *mut c_void,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_BufferAttributesCudaIpcHandle", || {
        let held = ATTRIBUTES.get(attributes)?;
        let address = held.ipc_handle.get().map_or(ptr::null(), |bytes| bytes.as_ptr());
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(handle, address.cast_mut().cast(), "the handle") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::errors;

    #[test]
    fn attributes_keep_the_values_that_were_set() {
        let mut handle = ptr::null_mut();
        let ok = |error| assert!(errors::take(error).is_none());
        let (mut id, mut kind, mut size, mut ipc) = (0, 0, 0, ptr::null_mut());
        // SAFETY: valid places; the handle is checked.
        unsafe {
            ok(attributes_new(&mut handle));
            ok(set_memory_type(handle, 2));
            ok(set_memory_type_id(handle, 3));
            ok(set_byte_size(handle, 400));
            ok(memory_type(handle, &mut kind));
            ok(memory_type_id(handle, &mut id));
            ok(byte_size(handle, &mut size));
            assert_eq!((kind, id, size), (2, 3, 400));
            ok(cuda_ipc_handle(handle, &mut ipc));
            assert!(ipc.is_null());
            let mut given = [7_u8; IPC_HANDLE];
            ok(set_cuda_ipc_handle(handle, given.as_mut_ptr().cast()));
            ok(cuda_ipc_handle(handle, &mut ipc));
            assert_eq!(ipc.cast::<[u8; IPC_HANDLE]>().read(), given);
            ok(attributes_delete(handle));
            assert!(errors::take(byte_size(handle, &mut size)).is_some());
        }
    }
}
