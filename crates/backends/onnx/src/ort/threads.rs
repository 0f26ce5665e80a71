//! The threads on which ONNX Runtime computes. They are made here, so that a failed integer division on one of them counts
//! as an error of its sessions.

use std::{
    ffi::c_void,
    ptr,
    sync::Arc,
    thread::{self, JoinHandle},
};

use galatea_division_faults::FaultDomain;
use ort_sys::{OrtCustomHandleType, OrtCustomThreadHandle, OrtThreadWorkerFn};

/// Stack size, the same as the system's for threads that ONNX Runtime makes itself.
const STACK_BYTES: usize = 8 << 20;

/// Returns the argument for [`create`]. It must live as long as the threads.
pub(super) fn creation_options(faults: &Arc<FaultDomain>) -> *mut c_void {
    Arc::as_ptr(faults).cast_mut().cast()
}

/// Work that ONNX Runtime gives to a thread. Only that thread calls it.
struct Work {
    call: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
}

// SAFETY: the library makes the argument for another thread.
unsafe impl Send for Work {}

impl Work {
    fn run(self) {
        // SAFETY: this is the thread that the library asked for, and it does this once.
        unsafe { (self.call)(self.argument) };
    }
}

/// Starts a thread whose faults are those of `domain`. Returns null on failure, which the library reports as an error of the
/// load.
///
/// # Safety
/// `domain` is what [`creation_options`] returned, and lives.
pub(super) unsafe extern "C" fn create(
    domain: *mut c_void,
    call: OrtThreadWorkerFn,
    argument: *mut c_void,
) -> OrtCustomThreadHandle {
    let domain: *const FaultDomain = domain.cast_const().cast();
    // SAFETY: the pointer is that of an `Arc` which lives while threads are made.
    let faults = unsafe {
        Arc::increment_strong_count(domain);
        Arc::from_raw(domain)
    };
    let work = Work { call, argument };
    let builder = thread::Builder::new().name("onnxruntime".to_owned()).stack_size(STACK_BYTES);
    match builder.spawn(move || faults.on_own_thread(|| work.run())) {
        Ok(thread) => Box::into_raw(Box::new(thread)).cast_const().cast::<OrtCustomHandleType>(),
        Err(error) => {
            log::error!("cannot start a thread for ONNX Runtime: {error}");
            ptr::null()
        }
    }
}

/// # Safety
/// `handle` is what [`create`] returned, and is given back once.
pub(super) unsafe extern "C" fn join(handle: OrtCustomThreadHandle) {
    if handle.is_null() {
        return;
    }
    // SAFETY: as the caller says.
    let thread = unsafe { Box::from_raw(handle.cast_mut().cast::<JoinHandle<()>>()) };
    // Nobody can be told that a thread of the library panicked.
    let _ = thread.join();
}
