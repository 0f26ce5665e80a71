//! The functions of `libcuda.so.1` for contexts and for memory of other processes.
//!
//! Types and numbers are those of the CUDA driver API reference (`cuda.h`).

use std::ffi::{c_int, c_uint, c_void};

use super::IpcHandle;
use crate::{
    driver::{CuDevice, CuResult},
    error::GpuError,
    shared_library::SharedLibrary,
};

/// The driver's pointer to a context, which only the driver follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct CuContext(pub usize);

/// The driver's pointer to a stream, which only the driver follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct CuStream(pub usize);

/// An address in the memory of a GPU.
pub(super) type CuDevicePtr = u64;

/// `CUipcMemHandle`, which is passed by value.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct CuIpcMemHandle {
    reserved: [u8; IpcHandle::LENGTH],
}

impl CuIpcMemHandle {
    pub fn of(handle: IpcHandle) -> Self {
        Self { reserved: handle.0 }
    }

    #[cfg(test)]
    pub fn bytes(&self) -> [u8; IpcHandle::LENGTH] {
        self.reserved
    }
}

/// A stream that does not wait for the default stream, on which models may run.
pub(super) const NON_BLOCKING: c_uint = 1;
/// Access between GPUs is enabled when it is needed. The driver accepts no other value.
pub(super) const LAZY_PEER_ACCESS: c_uint = 1;

#[derive(Clone, Copy)]
pub(super) struct Functions {
    pub retain_context: unsafe extern "C" fn(*mut CuContext, CuDevice) -> CuResult,
    pub release_context: unsafe extern "C" fn(CuDevice) -> CuResult,
    pub push_context: unsafe extern "C" fn(CuContext) -> CuResult,
    pub pop_context: unsafe extern "C" fn(*mut CuContext) -> CuResult,
    pub create_stream: unsafe extern "C" fn(*mut CuStream, c_uint) -> CuResult,
    pub synchronize_stream: unsafe extern "C" fn(CuStream) -> CuResult,
    pub destroy_stream: unsafe extern "C" fn(CuStream) -> CuResult,
    pub open_handle: unsafe extern "C" fn(*mut CuDevicePtr, CuIpcMemHandle, c_uint) -> CuResult,
    pub close_handle: unsafe extern "C" fn(CuDevicePtr) -> CuResult,
    pub address_range: unsafe extern "C" fn(*mut CuDevicePtr, *mut usize, CuDevicePtr) -> c_int,
    pub copy_to_host: unsafe extern "C" fn(*mut c_void, CuDevicePtr, usize, CuStream) -> CuResult,
    pub copy_to_device:
        unsafe extern "C" fn(CuDevicePtr, *const c_void, usize, CuStream) -> CuResult,
}

impl Functions {
    pub fn find(library: &SharedLibrary) -> Result<Self, GpuError> {
        // SAFETY: each has the type the reference gives the function of that name.
        unsafe {
            Ok(Self {
                retain_context: library.function("cuDevicePrimaryCtxRetain")?,
                release_context: library.function("cuDevicePrimaryCtxRelease_v2")?,
                push_context: library.function("cuCtxPushCurrent_v2")?,
                pop_context: library.function("cuCtxPopCurrent_v2")?,
                create_stream: library.function("cuStreamCreate")?,
                synchronize_stream: library.function("cuStreamSynchronize")?,
                destroy_stream: library.function("cuStreamDestroy_v2")?,
                open_handle: library.function("cuIpcOpenMemHandle_v2")?,
                close_handle: library.function("cuIpcCloseMemHandle")?,
                address_range: library.function("cuMemGetAddressRange_v2")?,
                copy_to_host: library.function("cuMemcpyDtoHAsync_v2")?,
                copy_to_device: library.function("cuMemcpyHtoDAsync_v2")?,
            })
        }
    }
}
