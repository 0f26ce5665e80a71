//! Functions in place of the driver's, whose GPU memory is a table. Each test takes a GPU of its own, so that tests can run
//! at the same time.

use std::{
    cell::RefCell,
    collections::HashMap,
    ffi::{c_int, c_uint, c_void},
    slice,
    sync::{LazyLock, Mutex},
};

use galatea_types::LockExt;

use super::super::{
    IpcHandle, Library,
    functions::{CuContext, CuDevicePtr, CuIpcMemHandle, CuStream, Functions},
};
use crate::driver::{CuDevice, CuResult, Driver, SUCCESS};

const INVALID_VALUE: CuResult = 1;
const INVALID_CONTEXT: CuResult = 201;
const ALREADY_MAPPED: CuResult = 208;
const ILLEGAL_ADDRESS: CuResult = 700;

/// Bytes of the allocation that lie before the memory of a handle.
pub const BEFORE: u64 = 256;

/// The state of one GPU.
#[derive(Clone, Debug, Default)]
pub struct FakeGpu {
    /// Who keeps the context.
    pub contexts: usize,
    pub streams: usize,
    /// The content of each allocation, by the first byte of its handle.
    pub content: HashMap<u8, Vec<u8>>,
    /// Open handles.
    pub open: Vec<u8>,
    /// Handles that were opened since the start.
    pub openings: usize,
    /// Copies that no stream was synchronised after.
    pub unfinished: usize,
    /// The result of the next synchronisation.
    pub next_result: CuResult,
    /// The result of creating streams.
    pub stream_result: CuResult,
}

static GPUS: LazyLock<Mutex<HashMap<usize, FakeGpu>>> = LazyLock::new(Mutex::default);

thread_local! {
    /// The contexts that the thread has entered.
    static ENTERED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Changes or reads the GPU with the handle `device`.
pub fn with<R>(device: usize, f: impl FnOnce(&mut FakeGpu) -> R) -> R {
    f(GPUS.lock_unpoisoned().entry(device).or_default())
}

/// Returns the number of contexts that this thread has entered.
pub fn entered() -> usize {
    ENTERED.with_borrow(Vec::len)
}

/// Makes the handle of an allocation with this content.
pub fn allocate(device: usize, name: u8, content: &[u8]) -> IpcHandle {
    with(device, |gpu| gpu.content.insert(name, content.to_vec()));
    IpcHandle([name; IpcHandle::LENGTH])
}

pub fn library() -> Library {
    Library { driver: Driver::fake(), functions: FAKE }
}

/// Answers a call in the context that this thread has entered.
fn in_context(answer: impl FnOnce(&mut FakeGpu) -> CuResult) -> CuResult {
    match ENTERED.with_borrow(|entered| entered.last().copied()) {
        Some(context) => with(context, answer),
        None => INVALID_CONTEXT,
    }
}

unsafe extern "C" fn retain_context(context: *mut CuContext, device: CuDevice) -> CuResult {
    with(device as usize, |gpu| gpu.contexts += 1);
    // SAFETY: the caller's out pointer.
    unsafe { *context = CuContext(device as usize) };
    SUCCESS
}
unsafe extern "C" fn release_context(device: CuDevice) -> CuResult {
    with(device as usize, |gpu| gpu.contexts -= 1);
    SUCCESS
}
unsafe extern "C" fn push_context(context: CuContext) -> CuResult {
    ENTERED.with_borrow_mut(|entered| entered.push(context.0));
    SUCCESS
}
unsafe extern "C" fn pop_context(context: *mut CuContext) -> CuResult {
    let Some(left) = ENTERED.with_borrow_mut(Vec::pop) else { return INVALID_CONTEXT };
    // SAFETY: the caller's out pointer.
    unsafe { *context = CuContext(left) };
    SUCCESS
}
unsafe extern "C" fn create_stream(stream: *mut CuStream, flags: c_uint) -> CuResult {
    in_context(|gpu| {
        if flags != 1 {
            return INVALID_VALUE;
        }
        if gpu.stream_result != SUCCESS {
            return gpu.stream_result;
        }
        gpu.streams += 1;
        // SAFETY: the caller's out pointer.
        unsafe { *stream = CuStream(7) };
        SUCCESS
    })
}
unsafe extern "C" fn synchronize_stream(_: CuStream) -> CuResult {
    in_context(|gpu| {
        gpu.unfinished = 0;
        std::mem::replace(&mut gpu.next_result, SUCCESS)
    })
}
unsafe extern "C" fn destroy_stream(_: CuStream) -> CuResult {
    in_context(|gpu| {
        gpu.streams -= 1;
        SUCCESS
    })
}
/// Refuses to open a handle twice, as old drivers do.
unsafe extern "C" fn open_handle(
    address: *mut CuDevicePtr,
    handle: CuIpcMemHandle,
    flags: c_uint,
) -> CuResult {
    let name = handle.bytes()[0];
    in_context(|gpu| {
        if flags != 1 || !gpu.content.contains_key(&name) {
            return INVALID_VALUE;
        }
        if gpu.open.contains(&name) {
            return ALREADY_MAPPED;
        }
        gpu.open.push(name);
        gpu.openings += 1;
        // SAFETY: the caller's out pointer.
        unsafe { *address = start_of(name) };
        SUCCESS
    })
}
unsafe extern "C" fn close_handle(address: CuDevicePtr) -> CuResult {
    in_context(|gpu| match gpu.open.iter().position(|name| start_of(*name) == address) {
        Some(at) => {
            gpu.open.remove(at);
            SUCCESS
        }
        None => INVALID_VALUE,
    })
}
/// Allocations begin before the memory of their handle. An allocation without bytes has no range.
unsafe extern "C" fn address_range(
    base: *mut CuDevicePtr,
    length: *mut usize,
    address: CuDevicePtr,
) -> c_int {
    in_context(|gpu| {
        let content = gpu.content.get(&name_at(address)).filter(|content| !content.is_empty());
        let Some(content) = content else { return ILLEGAL_ADDRESS };
        // SAFETY: the caller's out pointers.
        unsafe {
            *base = address - BEFORE;
            *length = BEFORE as usize + content.len();
        }
        SUCCESS
    })
}
unsafe extern "C" fn copy_to_host(
    target: *mut c_void,
    address: CuDevicePtr,
    length: usize,
    _: CuStream,
) -> CuResult {
    // SAFETY: the caller's memory.
    let target = unsafe { slice::from_raw_parts_mut(target.cast::<u8>(), length) };
    copy(address, length, |bytes| target.copy_from_slice(bytes))
}
unsafe extern "C" fn copy_to_device(
    address: CuDevicePtr,
    source: *const c_void,
    length: usize,
    _: CuStream,
) -> CuResult {
    // SAFETY: the caller's memory.
    let source = unsafe { slice::from_raw_parts(source.cast::<u8>(), length) };
    copy(address, length, |bytes| bytes.copy_from_slice(source))
}

fn copy(address: CuDevicePtr, length: usize, copy: impl FnOnce(&mut [u8])) -> CuResult {
    in_context(|gpu| {
        let name = name_at(address);
        let start = (address - start_of(name)) as usize;
        let content = gpu.content.get_mut(&name).filter(|_| gpu.open.contains(&name));
        let Some(bytes) = content.and_then(|content| content.get_mut(start..start + length)) else {
            return ILLEGAL_ADDRESS;
        };
        gpu.unfinished += 1;
        copy(bytes);
        SUCCESS
    })
}

fn start_of(name: u8) -> CuDevicePtr {
    u64::from(name) << 32
}

fn name_at(address: CuDevicePtr) -> u8 {
    (address >> 32) as u8
}

const FAKE: Functions = Functions {
    retain_context,
    release_context,
    push_context,
    pop_context,
    create_stream,
    synchronize_stream,
    destroy_stream,
    open_handle,
    close_handle,
    address_range,
    copy_to_host,
    copy_to_device,
};
