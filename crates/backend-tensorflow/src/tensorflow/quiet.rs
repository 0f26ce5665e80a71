//! TensorFlow writes what it does to stderr, past the log, a dozen lines for each model. How much of it is asked of the
//! environment alone.

use std::{env, fs};

/// Levels from 0, everything, to 3, nothing but what ends the process.
const LEVEL: &str = "TF_CPP_MIN_LOG_LEVEL";

/// Has TensorFlow tell warnings no more, unless the user says what it is to tell: errors of a load or run are ours to
/// tell. To be called when the program begins: once it has threads, nothing is done.
pub fn quiet() {
    if env::var_os(LEVEL).is_none() && has_one_thread() {
        // SAFETY: no thread reads the environment meanwhile, as the caller is the only one there is.
        unsafe { env::set_var(LEVEL, "2") };
    }
}

/// The allocator may have a thread of its own by then, which reads nothing of the environment.
fn has_one_thread() -> bool {
    fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() <= 2)
}
