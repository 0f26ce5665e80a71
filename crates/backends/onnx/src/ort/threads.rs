//! The threads that ONNX Runtime computes on: made here in its place, so that an integer division that one of them
//! cannot do is known to be one of the sessions they work for.

use std::{
    ffi::c_void,
    ptr,
    sync::Arc,
    thread::{self, JoinHandle},
};

use galatea_division_faults::FaultDomain;
use ort_sys::{OrtCustomHandleType, OrtCustomThreadHandle, OrtThreadWorkerFn};

/// As large as the system makes the stacks of threads that ONNX Runtime makes itself.
const STACK_BYTES: usize = 8 << 20;

/// What [`create`] is to be given: it must live as long as what has threads.
pub(super) fn creation_options(faults: &Arc<FaultDomain>) -> *mut c_void {
    Arc::as_ptr(faults).cast_mut().cast()
}

/// What ONNX Runtime gives a thread to do: called by that thread alone.
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

/// Starts a thread whose faults are those of `domain`. Null where there is none to be had, which the library reports as
/// an error of the load.
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
    // A thread of the library's that panicked has nobody to tell.
    let _ = thread.join();
}
