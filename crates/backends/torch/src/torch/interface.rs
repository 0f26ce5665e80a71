//! The shim's plain C interface, as `shim/galatea_torch.h` declares it.

use std::ffi::{c_char, c_int, c_void};

use galatea_native_library::{functions, objects};

/// `GALATEA_TORCH_INTERFACE_VERSION` of the header.
pub(super) const INTERFACE_VERSION: i32 = 2;

pub(super) const STRINGS: i32 = 1000;
pub(super) const ON_CPU: i32 = -1;
pub(super) const AS_SAVED: i32 = -2;
pub(super) const POSITIONAL: i32 = 0;
pub(super) const DICTIONARY: i32 = 1;
pub(super) const INFERENCE_MODE: i32 = 1;
pub(super) const NO_OPTIMIZATION: i32 = 2;
pub(super) const TAKES_TENSOR: i32 = 0;
pub(super) const TAKES_STRINGS: i32 = 1;
pub(super) const TAKES_DICTIONARY: i32 = 2;

objects!(pub(super) RawModule RawAnswer);

#[repr(C)]
pub(super) struct RawInput {
    pub name: *const c_char,
    pub scalar_type: i32,
    pub rank: usize,
    pub shape: *const i64,
    pub data: *mut c_void,
    pub string_count: usize,
    pub strings: *const *const c_char,
    pub lengths: *const usize,
    pub release: Option<unsafe extern "C" fn(*mut c_void)>,
    pub owner: *mut c_void,
}

#[repr(C)]
pub(super) struct RawOutput {
    pub name: *const c_char,
    pub scalar_type: i32,
    pub rank: usize,
    pub shape: *const i64,
    pub data: *const c_void,
    pub byte_size: usize,
    pub strings: *const *const c_char,
    pub lengths: *const usize,
}

functions! {
    /// Functions of an opened shim.
    pub(super) struct Interface;
    version = "galatea_torch_version": fn() -> *const c_char;
    free_text = "galatea_torch_free_text": fn(*mut c_char);
    set_threads = "galatea_torch_set_threads": fn(i32, i32, *mut *mut c_char) -> c_int;
    intra_op_threads = "galatea_torch_intra_op_threads": fn() -> i32;
    inter_op_threads = "galatea_torch_inter_op_threads": fn() -> i32;
    set = "galatea_torch_set": fn(i32, i32);
    cuda_device_count = "galatea_torch_cuda_device_count": fn() -> i32;
    empty_cache = "galatea_torch_empty_cache": fn();
    load = "galatea_torch_load": fn(*const c_char, i32, i32, *mut *mut RawModule, *mut *mut c_char) -> c_int;
    free_module = "galatea_torch_free_module": fn(*mut RawModule);
    argument_count = "galatea_torch_argument_count": fn(*const RawModule) -> usize;
    argument_name = "galatea_torch_argument_name": fn(*const RawModule, usize) -> *const c_char;
    argument_type = "galatea_torch_argument_type": fn(*const RawModule, usize) -> *const c_char;
    argument_takes = "galatea_torch_argument_takes": fn(*const RawModule, usize) -> i32;
    argument_has_default = "galatea_torch_argument_has_default": fn(*const RawModule, usize) -> i32;
    module_writes = "galatea_torch_module_writes": fn(*const RawModule) -> i32;
    run = "galatea_torch_run": fn(*mut RawModule, *const RawInput, usize, i32, i32, *mut *mut RawAnswer, *mut *mut c_char) -> c_int;
    output_count = "galatea_torch_output_count": fn(*const RawAnswer) -> usize;
    output_at = "galatea_torch_output_at": fn(*const RawAnswer, usize) -> *const RawOutput;
    free_answer = "galatea_torch_free_answer": fn(*mut RawAnswer);
}
