//! Names of the numbers of traces. Requests have no traces for libraries.

use std::ffi::c_char;

pub(crate) unsafe extern "C" fn level_string(level: u32) -> *const c_char {
    let name = match level {
        0 => c"DISABLED",
        1 => c"MIN",
        2 => c"MAX",
        4 => c"TIMESTAMPS",
        8 => c"TENSORS",
        _ => c"<unknown>",
    };
    name.as_ptr()
}

pub(crate) unsafe extern "C" fn activity_string(activity: u32) -> *const c_char {
    let name = match activity {
        0 => c"REQUEST_START",
        1 => c"QUEUE_START",
        2 => c"COMPUTE_START",
        3 => c"COMPUTE_INPUT_END",
        4 => c"COMPUTE_OUTPUT_START",
        5 => c"COMPUTE_END",
        6 => c"REQUEST_END",
        7 => c"TENSOR_QUEUE_INPUT",
        8 => c"TENSOR_BACKEND_INPUT",
        9 => c"TENSOR_BACKEND_OUTPUT",
        10 => c"CUSTOM_ACTIVITY",
        _ => c"<unknown>",
    };
    name.as_ptr()
}
