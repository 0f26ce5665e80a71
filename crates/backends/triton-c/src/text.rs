//! Texts from and for libraries.

use std::{
    borrow::Cow,
    ffi::{CStr, CString, c_char},
};

use galatea_types::{Error, Result};

/// Returns a text of a library; bytes that are no UTF-8 are replaced.
///
/// # Errors
/// The text is null; `name` says which it is.
///
/// # Safety
/// Null, or a text that ends with a zero byte and does not change while the result is used.
pub unsafe fn read<'a>(text: *const c_char, name: &str) -> Result<Cow<'a, str>> {
    // SAFETY: the caller's word.
    let text = unsafe { read_if_any(text) };
    text.ok_or_else(|| Error::invalid_arg(format!("{name} is null")))
}

/// Returns a text of a library like [`read`]; `None` if it is null.
///
/// # Safety
/// The condition of [`read`].
pub unsafe fn read_if_any<'a>(text: *const c_char) -> Option<Cow<'a, str>> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's word.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_str().map_or_else(|_| text.to_string_lossy(), Cow::Borrowed))
}

/// Makes a text for a library. It ends where the text has a zero byte.
pub fn to_c(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(text.get(..end).unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_a_zero_byte_and_null_has_a_name() {
        assert_eq!(to_c("a\0b").as_c_str(), c"a");
        assert_eq!(to_c("ä").as_c_str(), c"ä");
        // SAFETY: null, and a terminated text.
        let (null, bytes) =
            unsafe { (read(std::ptr::null(), "the name"), read(c"a\xff".as_ptr(), "the name")) };
        assert_eq!(null.expect_err("null").message(), "the name is null");
        assert_eq!(bytes.expect("a text"), "a\u{fffd}");
    }
}
