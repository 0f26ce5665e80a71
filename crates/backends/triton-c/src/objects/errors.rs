//! Errors: `TRITONSERVER_Error`.

use std::{
    ffi::{CStr, CString},
    ptr,
    sync::Arc,
};

use galatea_types::{Code, Error, Result};

use crate::{Kind, Table, abi, text};

/// An error that a library holds.
pub(super) struct HeldError {
    pub error: Error,
    pub message: CString,
}

const KIND: Kind = Kind { number: 1, name: "TRITONSERVER_Error" };
pub(super) static ERRORS: Table<abi::Error, HeldError> = Table::new(KIND, 1 << 16);

/// The handle of the error that there are too many errors. It belongs to no table and is never released.
pub(super) const TOO_MANY: *mut abi::Error = ptr::without_provenance_mut(1);
pub(super) const TOO_MANY_TEXT: &CStr = c"too many errors are held by libraries";

/// Returns the handle of an error, which the receiver must delete.
pub fn give(error: &Error) -> *mut abi::Error {
    let message = text::to_c(error.message());
    ERRORS.insert(Arc::new(HeldError { error: error.clone(), message })).unwrap_or(TOO_MANY)
}

/// Returns the handle of the error that `function` is not supported.
pub fn refuse(function: &'static str) -> *mut abi::Error {
    give(&Error::unsupported(format!("{function} is not supported by this server")))
}

/// Deletes an error that a library has returned, and returns it; `None` if the handle is null, which means success.
pub fn take(handle: *mut abi::Error) -> Option<Error> {
    let error = read(handle)?;
    let _ = ERRORS.remove(handle);
    Some(error)
}

/// Returns an error that a library keeps; `None` if the handle is null.
pub fn read(handle: *const abi::Error) -> Option<Error> {
    if handle.is_null() {
        return None;
    }
    if handle == TOO_MANY {
        return Some(Error::internal(TOO_MANY_TEXT.to_string_lossy().into_owned()));
    }
    Some(match ERRORS.get(handle) {
        Ok(held) => held.error.clone(),
        Err(error) => Error::internal(format!("the library returned an error, but {error}")),
    })
}

/// Returns the result of a hook of a library, whose error is deleted.
///
/// # Errors
/// The error of the hook.
pub fn result(handle: *mut abi::Error) -> Result<()> {
    take(handle).map_or(Ok(()), Err)
}

/// Returns the number of errors that libraries hold.
pub fn count() -> usize {
    ERRORS.len()
}

/// Returns the number of a class of errors. Clients of Triton know no class for exhausted resources.
pub fn code_number(code: Code) -> u32 {
    match code {
        Code::Unknown => 0,
        Code::Internal => 1,
        Code::NotFound => 2,
        Code::InvalidArg => 3,
        Code::Unavailable | Code::Exhausted => 4,
        Code::Unsupported => 5,
        Code::AlreadyExists => 6,
        Code::Cancelled => 7,
    }
}

/// Returns the class of a number; unknown numbers are [`Code::Unknown`].
pub fn code_of(number: u32) -> Code {
    match number {
        1 => Code::Internal,
        2 => Code::NotFound,
        3 => Code::InvalidArg,
        4 => Code::Unavailable,
        5 => Code::Unsupported,
        6 => Code::AlreadyExists,
        7 => Code::Cancelled,
        _ => Code::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_have_the_numbers_of_the_interface() {
        for number in 0..8 {
            assert_eq!(code_number(code_of(number)), number);
        }
        assert_eq!(code_of(99), Code::Unknown);
    }

    #[test]
    fn a_hook_that_returns_a_foreign_pointer_has_failed() {
        let foreign = 5_u64;
        let error = read((&raw const foreign).cast()).expect("an error");
        assert!(error.message().contains("the pointer is no TRITONSERVER_Error"), "{error}");
        assert!(result(ptr::null_mut()).is_ok());
    }
}
