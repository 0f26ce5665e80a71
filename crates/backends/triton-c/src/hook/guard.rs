//! Calls a function of a library so that an exception that leaves it comes back as a value.
//!
//! Rust cannot catch exceptions of other languages. The call goes through a few instructions whose frame has a personality of
//! its own: a function that the unwinder asks for each frame on the way of an exception. It says that the frame catches all, and
//! names the place where the frame goes on.

use std::{ffi::c_void, ptr::NonNull};

use super::MOST;
use crate::abi;

/// The header that each exception begins with, whatever language it is of.
#[repr(C)]
pub(super) struct UnwindException {
    /// The vendor and the language.
    pub class: u64,
    _private: [u8; 0],
}

/// Calls a function with these arguments, and returns its result, or the exception that has left it.
///
/// # Safety
/// The function has so many arguments or fewer, each of which fits a register, and returns an error. The arguments are those that it
/// may get.
pub(super) unsafe fn call(
    function: *const (),
    arguments: [*mut c_void; MOST],
) -> Result<*mut abi::Error, NonNull<UnwindException>> {
    let [a, b, c, d] = arguments;
    let mut thrown = None;
    // SAFETY: the caller's word, and a place for an exception.
    let error = unsafe { platform::call(function, a, b, c, d, &mut thrown) };
    thrown.map_or(Ok(error), Err)
}

/// Frees an exception.
///
/// # Safety
/// An exception that was caught, which is not used afterwards.
pub(super) unsafe fn delete(exception: NonNull<UnwindException>) {
    // SAFETY: the caller's word.
    unsafe { platform::delete(exception) };
}

#[cfg(all(target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod platform {
    use std::{
        arch::naked_asm,
        ffi::{c_int, c_void},
        ptr::NonNull,
    };

    use super::UnwindException;
    use crate::abi;

    /// Answers of a personality.
    const HANDLER_FOUND: c_int = 6;
    const INSTALL_CONTEXT: c_int = 7;
    const CONTINUE_UNWIND: c_int = 8;
    /// Reasons to ask it.
    const SEARCH: c_int = 1;
    const HANDLER_FRAME: c_int = 4;
    const FORCED: c_int = 8;
    /// The number of the register where the frame finds the exception: `rax` or `x0`.
    const EXCEPTION_REGISTER: c_int = 0;

    #[repr(C)]
    struct Context {
        _private: [u8; 0],
    }

    // SAFETY: the declarations of the unwinder of the platform, which every program of Rust has.
    unsafe extern "C" {
        fn _Unwind_SetGR(context: *mut Context, register: c_int, value: usize);
        fn _Unwind_SetIP(context: *mut Context, place: usize);
        fn _Unwind_DeleteException(exception: *mut UnwindException);
    }

    pub(super) unsafe fn delete(exception: NonNull<UnwindException>) {
        // SAFETY: the caller's word.
        unsafe { _Unwind_DeleteException(exception.as_ptr()) };
    }

    /// Catches every exception, but lets threads end that are cancelled.
    unsafe extern "C" fn personality(
        _version: c_int,
        actions: c_int,
        _class: u64,
        exception: *mut UnwindException,
        context: *mut Context,
    ) -> c_int {
        if actions & FORCED != 0 {
            return CONTINUE_UNWIND;
        }
        if actions & SEARCH != 0 {
            return HANDLER_FOUND;
        }
        if actions & HANDLER_FRAME == 0 {
            return CONTINUE_UNWIND;
        }
        // SAFETY: the unwinder's own context, of the frame of `call`.
        unsafe {
            _Unwind_SetGR(context, EXCEPTION_REGISTER, exception.expose_provenance());
            _Unwind_SetIP(context, end_of_call as *const () as usize);
        }
        INSTALL_CONTEXT
    }

    /// Calls `function` with four arguments. Writes an exception that leaves it to `thrown`.
    #[cfg(target_arch = "x86_64")]
    #[unsafe(naked)]
    pub(super) unsafe extern "C" fn call(
        function: *const (),
        a: *mut c_void,
        b: *mut c_void,
        c: *mut c_void,
        d: *mut c_void,
        thrown: &mut Option<NonNull<UnwindException>>,
    ) -> *mut abi::Error {
        naked_asm!(
            ".cfi_startproc",
            // Its address is relative to its place, of 4 bytes.
            ".cfi_personality 0x1b, {personality}",
            "push rbp",
            ".cfi_def_cfa_offset 16",
            ".cfi_offset rbp, -16",
            "mov rbp, rsp",
            ".cfi_def_cfa_register rbp",
            "push r9",
            "sub rsp, 8",
            "mov rax, rdi",
            "mov rdi, rsi",
            "mov rsi, rdx",
            "mov rdx, rcx",
            "mov rcx, r8",
            "call rax",
            "leave",
            ".cfi_def_cfa rsp, 8",
            "ret",
            ".cfi_endproc",
            personality = sym personality,
        )
    }

    /// The end of `call` if an exception has left the function. The registers of the frame are as they were during the call.
    #[cfg(target_arch = "x86_64")]
    #[unsafe(naked)]
    unsafe extern "C" fn end_of_call() {
        naked_asm!(
            ".cfi_startproc",
            ".cfi_def_cfa rbp, 16",
            ".cfi_offset rbp, -16",
            "mov rcx, [rbp - 8]",
            "mov [rcx], rax",
            "xor eax, eax",
            "leave",
            ".cfi_def_cfa rsp, 8",
            "ret",
            ".cfi_endproc",
        )
    }

    /// Calls `function` with four arguments. Writes an exception that leaves it to `thrown`.
    #[cfg(target_arch = "aarch64")]
    #[unsafe(naked)]
    pub(super) unsafe extern "C" fn call(
        function: *const (),
        a: *mut c_void,
        b: *mut c_void,
        c: *mut c_void,
        d: *mut c_void,
        thrown: &mut Option<NonNull<UnwindException>>,
    ) -> *mut abi::Error {
        naked_asm!(
            ".cfi_startproc",
            // Its address is relative to its place, of 4 bytes.
            ".cfi_personality 0x1b, {personality}",
            "stp x29, x30, [sp, #-32]!",
            ".cfi_def_cfa_offset 32",
            ".cfi_offset x29, -32",
            ".cfi_offset x30, -24",
            "mov x29, sp",
            "str x5, [sp, #16]",
            "mov x9, x0",
            "mov x0, x1",
            "mov x1, x2",
            "mov x2, x3",
            "mov x3, x4",
            "blr x9",
            "ldp x29, x30, [sp], #32",
            ".cfi_def_cfa_offset 0",
            ".cfi_restore x29",
            ".cfi_restore x30",
            "ret",
            ".cfi_endproc",
            personality = sym personality,
        )
    }

    /// The end of `call` if an exception has left the function. The registers of the frame are as they were during the call.
    #[cfg(target_arch = "aarch64")]
    #[unsafe(naked)]
    unsafe extern "C" fn end_of_call() {
        naked_asm!(
            ".cfi_startproc",
            ".cfi_def_cfa sp, 32",
            ".cfi_offset x29, -32",
            ".cfi_offset x30, -24",
            "ldr x9, [sp, #16]",
            "str x0, [x9]",
            "mov x0, xzr",
            "ldp x29, x30, [sp], #32",
            ".cfi_def_cfa_offset 0",
            ".cfi_restore x29",
            ".cfi_restore x30",
            "ret",
            ".cfi_endproc",
        )
    }
}

/// Elsewhere an exception that leaves the function ends the process.
#[cfg(not(all(target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod platform {
    use std::{ffi::c_void, ptr::NonNull};

    use super::UnwindException;
    use crate::abi;

    type Function =
        unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, *mut c_void) -> *mut abi::Error;

    pub(super) unsafe fn call(
        function: *const (),
        a: *mut c_void,
        b: *mut c_void,
        c: *mut c_void,
        d: *mut c_void,
        _thrown: &mut Option<NonNull<UnwindException>>,
    ) -> *mut abi::Error {
        // SAFETY: the address of such a function, which does not read arguments that it does not have.
        unsafe { std::mem::transmute::<*const (), Function>(function)(a, b, c, d) }
    }

    pub(super) unsafe fn delete(_exception: NonNull<UnwindException>) {}
}
