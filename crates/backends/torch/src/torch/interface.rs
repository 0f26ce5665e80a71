//! The shim's plain C interface, as `shim/galatea_torch.h` declares it.

use std::ffi::{c_char, c_int, c_void};

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

#[repr(C)]
pub(super) struct RawModule {
    _private: [u8; 0],
}

#[repr(C)]
pub(super) struct RawAnswer {
    _private: [u8; 0],
}

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

/// Declares the functions of the interface and the loader that finds each by its name.
macro_rules! interface {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Functions of an opened shim.
        #[derive(Clone, Copy)]
        pub(super) struct Interface {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Interface {
            /// # Errors
            /// The name of the first function that is missing.
            ///
            /// # Safety
            /// `handle` must be a library whose functions of these names are those of this interface, and it must
            /// stay open as long as the result is used.
            pub unsafe fn find(handle: &libloading::os::unix::Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        const NAME: &str = concat!("galatea_torch_", stringify!($name));
                        // SAFETY: the caller guarantees that the library has the types of this interface.
                        *unsafe { handle.get(NAME) }.map_err(|_| NAME)?
                    },)*
                })
            }
        }
    };
}

interface! {
    version: fn() -> *const c_char;
    free_text: fn(*mut c_char);
    set_threads: fn(i32, i32, *mut *mut c_char) -> c_int;
    intra_op_threads: fn() -> i32;
    inter_op_threads: fn() -> i32;
    set: fn(i32, i32);
    cuda_device_count: fn() -> i32;
    empty_cache: fn();
    load: fn(*const c_char, i32, i32, *mut *mut RawModule, *mut *mut c_char) -> c_int;
    free_module: fn(*mut RawModule);
    argument_count: fn(*const RawModule) -> usize;
    argument_name: fn(*const RawModule, usize) -> *const c_char;
    argument_type: fn(*const RawModule, usize) -> *const c_char;
    argument_takes: fn(*const RawModule, usize) -> i32;
    argument_has_default: fn(*const RawModule, usize) -> i32;
    module_writes: fn(*const RawModule) -> i32;
    run: fn(*mut RawModule, *const RawInput, usize, i32, i32, *mut *mut RawAnswer, *mut *mut c_char) -> c_int;
    output_count: fn(*const RawAnswer) -> usize;
    output_at: fn(*const RawAnswer, usize) -> *const RawOutput;
    free_answer: fn(*mut RawAnswer);
}
