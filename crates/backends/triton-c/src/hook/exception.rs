//! Makes an error of an exception that has left a hook.

use std::ptr::NonNull;

use galatea_types::Error;

use super::{
    cxx,
    guard::{self, UnwindException},
};
use crate::Library;

/// Classes of exceptions. The last byte of those of C++ says whether it is the first of its kind.
const GNU_CXX: u64 = u64::from_be_bytes(*b"GNUCC++\0");
const LLVM_CXX: u64 = u64::from_be_bytes(*b"CLNGC++\0");
const RUST: u64 = u64::from_be_bytes(*b"MOZ\0RUST");

/// Returns the error of an exception that has left `function` of a library, and frees the exception.
pub(super) fn error(
    exception: NonNull<UnwindException>,
    function: &str,
    library: &Library,
) -> Error {
    // SAFETY: the header of an exception that was caught.
    let class = unsafe { exception.as_ref() }.class;
    let is_cxx = [GNU_CXX, LLVM_CXX].contains(&(class & !0xff));
    let thrown = match is_cxx {
        // SAFETY: an exception of C++ that was caught, once.
        true => unsafe { cxx::take(exception, library) },
        false => None,
    };
    if thrown.is_none() && class != RUST {
        // SAFETY: an exception that was caught, and is used no more. A panic of another program of Rust cannot be freed here.
        unsafe { guard::delete(exception) };
    }
    let kind = match &thrown {
        Some(thrown) => thrown.kind.as_str(),
        None if class == RUST => "a panic of Rust",
        None => "an exception of an unknown type",
    };
    let file = library.path().file_name().unwrap_or_default().display();
    let mut text = format!("'{file}' has thrown {kind} out of {function}");
    if let Some(said) = thrown.as_ref().and_then(|thrown| thrown.text.as_deref()) {
        text.push_str(": ");
        text.push_str(said);
    }
    log::error!("{text} (the library is '{}')", library.path().display());
    Error::internal(text)
}
