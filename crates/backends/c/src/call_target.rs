//! The functions and data of a library that a request to another model comes back to.

use std::ffi::c_void;

use galatea_triton_c::abi;

/// Data of a library that its callbacks get.
#[derive(Clone, Copy)]
pub(crate) struct UserData(pub *mut c_void);

// SAFETY: passed back to the library, which expects its callbacks on any thread.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

/// The function that takes a request back.
#[derive(Clone, Copy)]
pub(crate) struct ReleaseCallback {
    pub function: abi::RequestReleaseFn,
    pub data: UserData,
}

/// The function that takes responses, and the allocator of their outputs.
#[derive(Clone, Copy)]
pub(crate) struct Destination {
    pub allocator: UserData,
    pub allocator_data: UserData,
    pub respond: abi::ResponseCompleteFn,
    pub data: UserData,
}
