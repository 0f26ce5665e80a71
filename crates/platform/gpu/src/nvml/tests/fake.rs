//! NVML of a machine with one GPU at `0000:0a:00.0` that reports everything, and one at `0000:0b:00.0` that
//! reports its memory only.

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::*;

/// What the GPU has used since its driver was loaded; grows with each reading.
static ENERGY: AtomicU64 = AtomicU64::new(5_000);
const NOT_SUPPORTED: NvmlReturn = 3;
const NOT_FOUND: NvmlReturn = 6;
const FULL: usize = 1;
const LIMITED: usize = 2;

fn answer<T>(device: Device, out: *mut T, value: T) -> NvmlReturn {
    if device.0 as usize != FULL {
        return NOT_SUPPORTED;
    }
    // SAFETY: the caller's out pointer.
    unsafe { *out = value };
    SUCCESS
}

unsafe extern "C" fn nothing() -> NvmlReturn {
    SUCCESS
}
unsafe extern "C" fn refuse() -> NvmlReturn {
    9
}
unsafe extern "C" fn error_text(result: NvmlReturn) -> *const c_char {
    match result {
        NOT_SUPPORTED => c"Not Supported".as_ptr(),
        NOT_FOUND => c"Not Found".as_ptr(),
        _ => std::ptr::null(),
    }
}
unsafe extern "C" fn by_pci_bus_id(id: *const c_char, device: *mut Device) -> NvmlReturn {
    // SAFETY: the caller's terminated text.
    let found = match unsafe { CStr::from_ptr(id) }.to_bytes() {
        b"0000:0a:00.0" => FULL,
        b"0000:0b:00.0" => LIMITED,
        _ => return NOT_FOUND,
    };
    // SAFETY: the caller's out pointer.
    unsafe { *device = Device(found as *mut c_void) };
    SUCCESS
}
unsafe extern "C" fn uuid(device: Device, text: *mut c_char, length: c_uint) -> NvmlReturn {
    let id = format!("GPU-{}\0", device.0 as usize);
    assert!(id.len() <= length as usize);
    // SAFETY: the caller's buffer is long enough.
    unsafe { std::ptr::copy_nonoverlapping(id.as_ptr().cast(), text, id.len()) };
    SUCCESS
}
unsafe extern "C" fn utilization(device: Device, out: *mut Utilization) -> NvmlReturn {
    answer(device, out, Utilization { gpu: 37, memory: 12 })
}
unsafe extern "C" fn memory(_: Device, out: *mut Memory) -> NvmlReturn {
    // SAFETY: the caller's out pointer.
    unsafe { *out = Memory { total: 1000, free: 300, used: 700 } };
    SUCCESS
}
unsafe extern "C" fn memory_v2(device: Device, out: *mut MemoryV2) -> NvmlReturn {
    // SAFETY: the caller's structure.
    let version = unsafe { (*out).version };
    if version != MEMORY_V2 {
        return 25;
    }
    answer(device, out, MemoryV2 { version, total: 1000, reserved: 100, free: 300, used: 600 })
}
unsafe extern "C" fn power_usage(device: Device, out: *mut c_uint) -> NvmlReturn {
    answer(device, out, 101_500)
}
unsafe extern "C" fn power_limit(device: Device, out: *mut c_uint) -> NvmlReturn {
    answer(device, out, 700_000)
}
unsafe extern "C" fn energy(device: Device, out: *mut u64) -> NvmlReturn {
    answer(device, out, ENERGY.fetch_add(250, Ordering::Relaxed))
}

pub(crate) const FAKE: Functions = Functions {
    init: nothing,
    shutdown: nothing,
    error_text,
    by_pci_bus_id,
    uuid,
    utilization,
    memory,
    memory_v2: Some(memory_v2),
    power_usage,
    power_limit,
    energy,
};

pub(super) const OLD: Functions = Functions { memory_v2: None, ..FAKE };
pub(super) const BROKEN: Functions = Functions { init: refuse, ..FAKE };
