//! The functions that make and read errors.

use std::ffi::c_char;

use galatea_types::{Code, Error};

use super::errors::{ERRORS, TOO_MANY, TOO_MANY_TEXT, code_number, code_of, give};
use crate::{abi, call, text};

pub(super) unsafe extern "C" fn error_new(code: u32, message: *const c_char) -> *mut abi::Error {
    call::value("TRITONSERVER_ErrorNew", TOO_MANY, || {
        // SAFETY: the caller gives a terminated text, or null.
        let message = unsafe { text::read_if_any(message) }.unwrap_or_default();
        Ok(give(&Error::new(code_of(code), message)))
    })
}

pub(super) unsafe extern "C" fn error_delete(error: *mut abi::Error) {
    call::value("TRITONSERVER_ErrorDelete", (), || {
        if error == TOO_MANY { Ok(()) } else { ERRORS.delete(error) }
    });
}

pub(super) unsafe extern "C" fn error_code(error: *mut abi::Error) -> u32 {
    call::value("TRITONSERVER_ErrorCode", 0, || match error == TOO_MANY {
        true => Ok(code_number(Code::Internal)),
        false => Ok(code_number(ERRORS.get(error)?.error.code())),
    })
}

pub(super) unsafe extern "C" fn error_code_string(error: *mut abi::Error) -> *const c_char {
    let name = call::value("TRITONSERVER_ErrorCodeString", c"<invalid code>", || {
        let code = if error == TOO_MANY { Code::Internal } else { ERRORS.get(error)?.error.code() };
        Ok(match code {
            Code::Unknown => c"Unknown",
            Code::Internal => c"Internal",
            Code::NotFound => c"Not found",
            Code::InvalidArg => c"Invalid argument",
            Code::Unavailable | Code::Exhausted => c"Unavailable",
            Code::Unsupported => c"Unsupported",
            Code::AlreadyExists => c"Already exists",
            Code::Cancelled => c"Cancelled",
        })
    });
    name.as_ptr()
}

/// Returns a text that lives until the error is deleted.
pub(super) unsafe extern "C" fn error_message(error: *mut abi::Error) -> *const c_char {
    call::value("TRITONSERVER_ErrorMessage", c"".as_ptr(), || match error == TOO_MANY {
        true => Ok(TOO_MANY_TEXT.as_ptr()),
        false => Ok(ERRORS.get(error)?.message.as_ptr()),
    })
}

#[cfg(test)]
mod tests {
    use std::{ffi::CStr, ptr};

    use super::*;

    #[test]
    fn an_error_lives_until_it_is_deleted_once() {
        // SAFETY: a terminated text; the handles are checked.
        unsafe {
            let handle = error_new(2, c"no such thing".as_ptr());
            assert_eq!(error_code(handle), 2);
            assert_eq!(CStr::from_ptr(error_message(handle)), c"no such thing");
            assert_eq!(CStr::from_ptr(error_code_string(handle)), c"Not found");
            error_delete(handle);
            error_delete(handle);
            assert_eq!(error_code(handle), 0);
            assert_eq!(CStr::from_ptr(error_message(handle)), c"");
            assert_eq!(error_code(ptr::null_mut()), 0);
        }
    }
}
