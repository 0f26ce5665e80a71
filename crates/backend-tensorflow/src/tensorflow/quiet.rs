//! TensorFlow writes what it does to stderr, past the log, a dozen lines for each model. How much of it can be asked for in
//! one way alone: by a variable of the environment.

use std::{ffi::CStr, fs};

/// Levels from 0, everything, to 3, nothing but what ends the process.
const LEVEL: &CStr = c"TF_CPP_MIN_LOG_LEVEL";

/// Has TensorFlow tell warnings no more, unless the user says what it is to tell: errors of a load or run are ours to
/// tell. To be called when the program begins: once it has threads, nothing is done.
pub fn quiet() {
    const KEEP: i32 = 0;
    if has_one_thread() {
        // SAFETY: both texts are terminated, and no thread reads the environment meanwhile, as the caller is the only
        // one that could. A value that is there stays.
        unsafe { libc::setenv(LEVEL.as_ptr(), c"2".as_ptr(), KEEP) };
    }
}

/// The allocator may have a thread of its own by then, which reads nothing of the environment.
fn has_one_thread() -> bool {
    fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() <= 2)
}
