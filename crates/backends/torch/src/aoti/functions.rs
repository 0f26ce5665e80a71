//! The two C interfaces: libtorch's functions on tensors (`aoti_torch/c/shim.h`), and the functions of a compiled
//! model (`aoti_runtime/interface.h`). Both only grow from version to version.

use std::ffi::{c_char, c_int, c_void};

use libloading::os::unix::Library as Handle;

/// `AtenTensorOpaque`.
#[repr(C)]
pub(super) struct RawTensor {
    _private: [u8; 0],
}

/// `AOTInductorModelContainerOpaque`.
#[repr(C)]
pub(super) struct RawContainer {
    _private: [u8; 0],
}

pub(super) type TensorHandle = *mut RawTensor;
pub(super) type ContainerHandle = *mut RawContainer;

/// Declares functions of one interface and the loader that finds each by its name.
macro_rules! functions {
    (
        $(#[$doc:meta])* $functions:ident, $prefix:literal:
        $($name:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl $functions {
            /// # Errors
            /// The name of the first function that is missing.
            ///
            /// # Safety
            /// `handle` must be a library whose functions of these names are those of the interface, and it must
            /// stay open as long as the result is used.
            pub(super) unsafe fn find(handle: &Handle) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        const NAME: &str = concat!($prefix, $symbol);
                        // SAFETY: the caller guarantees that the library has the types of this interface.
                        *unsafe { handle.get(NAME) }.map_err(|_| NAME)?
                    },)*
                })
            }
        }
    };
}

functions! {
    /// libtorch's functions on tensors. Those that return a status return 0 on success.
    TensorFunctions, "aoti_torch_":
    from_blob = "create_tensor_from_blob":
        fn(*mut c_void, i64, *const i64, *const i64, i64, i32, i32, i32, *mut TensorHandle) -> c_int;
    empty = "empty_strided":
        fn(i64, *const i64, *const i64, i32, i32, i32, *mut TensorHandle) -> c_int;
    copy = "copy_": fn(TensorHandle, TensorHandle, i32) -> c_int;
    delete = "delete_tensor_object": fn(TensorHandle) -> c_int;
    data = "get_data_ptr": fn(TensorHandle, *mut *mut c_void) -> c_int;
    rank = "get_dim": fn(TensorHandle, *mut i64) -> c_int;
    sizes = "get_sizes": fn(TensorHandle, *mut *mut i64) -> c_int;
    strides = "get_strides": fn(TensorHandle, *mut *mut i64) -> c_int;
    scalar_type = "get_dtype": fn(TensorHandle, *mut i32) -> c_int;
    device_type = "get_device_type": fn(TensorHandle, *mut i32) -> c_int;
    cpu = "device_type_cpu": fn() -> i32;
    cuda = "device_type_cuda": fn() -> i32;
}

functions! {
    /// Functions of a compiled model.
    ModelFunctions, "AOTInductorModelContainer":
    create = "CreateWithDevice":
        fn(*mut ContainerHandle, usize, *const c_char, *const c_char) -> c_int;
    delete = "Delete": fn(ContainerHandle) -> c_int;
    run = "Run":
        fn(ContainerHandle, *mut TensorHandle, usize, *mut TensorHandle, usize, *mut c_void, *mut c_void) -> c_int;
    input_count = "GetNumInputs": fn(ContainerHandle, *mut usize) -> c_int;
    output_count = "GetNumOutputs": fn(ContainerHandle, *mut usize) -> c_int;
    call_spec = "GetCallSpec":
        fn(ContainerHandle, *mut *const c_char, *mut *const c_char) -> c_int;
    constant_count = "GetNumConstants": fn(ContainerHandle, *mut usize) -> c_int;
    constant_type = "GetConstantType": fn(ContainerHandle, usize, *mut i32) -> c_int;
}

/// `ConstantType` of something a model may write to, as against weights.
pub(super) const BUFFER: i32 = 2;

/// Of compiled models since PyTorch 2.13 or so: why the last call on this thread failed.
pub(super) type LastError = unsafe extern "C" fn(*mut *const c_char) -> c_int;
pub(super) const LAST_ERROR: &str = "AOTInductorGetLastError";

/// Of newer libtorch: what the last exception on this thread said.
pub(super) type LastException = unsafe extern "C" fn() -> *const c_char;
pub(super) const LAST_EXCEPTION: &str = "torch_exception_get_what_without_backtrace";
