//! The two C interfaces: libtorch's functions on tensors (`aoti_torch/c/shim.h`), and the functions of a compiled
//! model (`aoti_runtime/interface.h`). Both only grow from version to version.

use std::ffi::{c_char, c_int, c_void};

use galatea_native_library::{functions, objects};

// `AtenTensorOpaque` and `AOTInductorModelContainerOpaque`.
objects!(pub(super) RawTensor RawContainer);

pub(super) type TensorHandle = *mut RawTensor;
pub(super) type ContainerHandle = *mut RawContainer;

functions! {
    /// libtorch's functions on tensors. Those that return a status return 0 on success.
    pub(super) struct TensorFunctions;
    from_blob = "aoti_torch_create_tensor_from_blob":
        fn(*mut c_void, i64, *const i64, *const i64, i64, i32, i32, i32, *mut TensorHandle) -> c_int;
    empty = "aoti_torch_empty_strided":
        fn(i64, *const i64, *const i64, i32, i32, i32, *mut TensorHandle) -> c_int;
    copy = "aoti_torch_copy_": fn(TensorHandle, TensorHandle, i32) -> c_int;
    delete = "aoti_torch_delete_tensor_object": fn(TensorHandle) -> c_int;
    data = "aoti_torch_get_data_ptr": fn(TensorHandle, *mut *mut c_void) -> c_int;
    rank = "aoti_torch_get_dim": fn(TensorHandle, *mut i64) -> c_int;
    sizes = "aoti_torch_get_sizes": fn(TensorHandle, *mut *mut i64) -> c_int;
    strides = "aoti_torch_get_strides": fn(TensorHandle, *mut *mut i64) -> c_int;
    scalar_type = "aoti_torch_get_dtype": fn(TensorHandle, *mut i32) -> c_int;
    device_type = "aoti_torch_get_device_type": fn(TensorHandle, *mut i32) -> c_int;
    cpu = "aoti_torch_device_type_cpu": fn() -> i32;
    cuda = "aoti_torch_device_type_cuda": fn() -> i32;
}

functions! {
    /// Functions of a compiled model.
    pub(super) struct ModelFunctions;
    create = "AOTInductorModelContainerCreateWithDevice":
        fn(*mut ContainerHandle, usize, *const c_char, *const c_char) -> c_int;
    delete = "AOTInductorModelContainerDelete": fn(ContainerHandle) -> c_int;
    run = "AOTInductorModelContainerRun":
        fn(ContainerHandle, *mut TensorHandle, usize, *mut TensorHandle, usize, *mut c_void, *mut c_void) -> c_int;
    input_count = "AOTInductorModelContainerGetNumInputs": fn(ContainerHandle, *mut usize) -> c_int;
    output_count = "AOTInductorModelContainerGetNumOutputs": fn(ContainerHandle, *mut usize) -> c_int;
    call_spec = "AOTInductorModelContainerGetCallSpec":
        fn(ContainerHandle, *mut *const c_char, *mut *const c_char) -> c_int;
    constant_count = "AOTInductorModelContainerGetNumConstants": fn(ContainerHandle, *mut usize) -> c_int;
    constant_type = "AOTInductorModelContainerGetConstantType": fn(ContainerHandle, usize, *mut i32) -> c_int;
}

/// `ConstantType` of a buffer, which a model may write to, unlike weights.
pub(super) const BUFFER: i32 = 2;

/// Reports why the last call on this thread failed. Compiled models have it since about PyTorch 2.13.
pub(super) type LastError = unsafe extern "C" fn(*mut *const c_char) -> c_int;
pub(super) const LAST_ERROR: &str = "AOTInductorGetLastError";

/// Reports the last exception on this thread. Newer versions of libtorch have it.
pub(super) type LastException = unsafe extern "C" fn() -> *const c_char;
pub(super) const LAST_EXCEPTION: &str = "torch_exception_get_what_without_backtrace";
