//! Allocators of the memory for outputs, which callers of other models bring (`TRITONSERVER_ResponseAllocator`).

use std::sync::{Arc, Mutex};

use galatea_types::{Error, LockExt as _, Result};

use crate::{
    Kind, Table,
    abi::{self, AllocateFn, AttributesFn, QueryFn, ReleaseFn, StartFn},
    call,
};

/// The functions of an allocator.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    /// Allocates the memory of an output.
    pub allocate: AllocateFn,
    /// Releases it.
    pub release: ReleaseFn,
    /// Called before the outputs of each response.
    pub start: Option<StartFn>,
    /// Tells the preferred memory.
    pub query: Option<QueryFn>,
    /// Tells the attributes of allocated memory.
    pub attributes: Option<AttributesFn>,
}

const KIND: Kind = Kind { number: 5, name: "TRITONSERVER_ResponseAllocator" };
static ALLOCATORS: Table<abi::ResponseAllocator, Mutex<Functions>> = Table::new(KIND, 1 << 18);

/// Returns the functions of an allocator.
///
/// # Errors
/// The handle is no allocator.
pub fn read(handle: *const abi::ResponseAllocator) -> Result<Functions> {
    Ok(*ALLOCATORS.get(handle)?.lock_unpoisoned())
}

pub(super) unsafe extern "C" fn allocator_new(
    allocator: *mut *mut abi::ResponseAllocator,
    allocate: Option<AllocateFn>,
    release: Option<ReleaseFn>,
    start: Option<StartFn>,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_ResponseAllocatorNew", || {
        let missing = |name| Error::invalid_arg(format!("an allocator must have a {name}"));
        let functions = Functions {
            allocate: allocate.ok_or_else(|| missing("function to allocate"))?,
            release: release.ok_or_else(|| missing("function to release"))?,
            start,
            query: None,
            attributes: None,
        };
        let handle = ALLOCATORS.insert(Arc::new(Mutex::new(functions)))?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(allocator, handle, "the allocator") }
    })
}

pub(super) unsafe extern "C" fn set_query_function(
    allocator: *mut abi::ResponseAllocator,
    query: Option<QueryFn>,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_ResponseAllocatorSetQueryFunction", || {
        ALLOCATORS.get(allocator)?.lock_unpoisoned().query = query;
        Ok(())
    })
}

pub(super) unsafe extern "C" fn set_attributes_function(
    allocator: *mut abi::ResponseAllocator,
    attributes: Option<AttributesFn>,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction", || {
        ALLOCATORS.get(allocator)?.lock_unpoisoned().attributes = attributes;
        Ok(())
    })
}

pub(super) unsafe extern "C" fn allocator_delete(
    allocator: *mut abi::ResponseAllocator,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_ResponseAllocatorDelete", || ALLOCATORS.delete(allocator))
}
