//! Memory that a backend asks the server for: `TRITONBACKEND_MemoryManager`.

use std::{
    collections::HashMap,
    ffi::c_void,
    sync::{Arc, Mutex},
};

use galatea_triton_c::{Kind, Registered, Table, abi, call};
use galatea_types::{AlignedBlock, Error, LockExt as _, Result};

/// The blocks that a backend holds, by their addresses.
#[derive(Default)]
struct Blocks(Mutex<HashMap<usize, AlignedBlock>>);

const KIND: Kind = Kind { number: 29, name: "TRITONBACKEND_MemoryManager" };
static MANAGERS: Table<abi::MemoryManager, Blocks> = Table::new(KIND, 1 << 10);

/// The memory manager of one backend. Blocks that it does not free are freed with it.
pub(crate) struct Manager(Registered<abi::MemoryManager, Blocks>);

impl Manager {
    pub fn new() -> Result<Self> {
        Ok(Self(MANAGERS.register(Arc::default())?))
    }

    pub fn handle(&self) -> *mut abi::MemoryManager {
        self.0.handle()
    }
}

/// Makes a block of zeros.
///
/// # Errors
/// There is not so much memory.
pub(crate) fn block(byte_size: u64) -> Result<AlignedBlock> {
    let too_much =
        || Error::unavailable(format!("{byte_size} bytes of memory cannot be allocated"));
    let size = usize::try_from(byte_size).map_err(|_| too_much())?;
    let mut block = AlignedBlock::try_with_capacity(size).map_err(|_| too_much())?;
    block.extend_zeroed(size);
    Ok(block)
}

pub(crate) unsafe extern "C" fn allocate(
    manager: *mut abi::MemoryManager,
    buffer: *mut *mut c_void,
    memory_type: u32,
    _memory_type_id: i64,
    byte_size: u64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_MemoryManagerAllocate", || {
        let blocks = MANAGERS.get(manager)?;
        if memory_type != abi::memory::CPU {
            return Err(Error::unsupported(
                "this server gives backends no memory but the host's: pinned memory and that of GPUs is the backend's to allocate",
            ));
        }
        let mut block = block(byte_size.max(1))?;
        let address = block.as_mut_slice().as_mut_ptr();
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(buffer, address.cast(), "the buffer") }?;
        blocks.0.lock_unpoisoned().insert(address.addr(), block);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn free(
    manager: *mut abi::MemoryManager,
    buffer: *mut c_void,
    _memory_type: u32,
    _memory_type_id: i64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_MemoryManagerFree", || {
        let blocks = MANAGERS.get(manager)?;
        let block = blocks.0.lock_unpoisoned().remove(&buffer.addr());
        block.map(drop).ok_or_else(|| {
            Error::invalid_arg("the buffer is none of this memory manager, or was freed before")
        })
    })
}
