//! The frame of every function that libraries call.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

use galatea_types::{Error, Result};

pub use crate::misuse::Misuse;
use crate::{abi, objects::errors};

/// Runs the body of `function`, which a library calls, and returns its error as a handle, or null. A panic is an error. A
/// [`Misuse`] is logged, and the error says in which function it was.
pub fn answer(function: &'static str, body: impl FnOnce() -> Result<()>) -> *mut abi::Error {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => ptr::null_mut(),
        Ok(Err(error)) => errors::give(&named(function, error)),
        Err(panic) => errors::give(&panicked(function, &*panic)),
    }
}

/// Does the same for a function without an error as its result: it returns `otherwise` if the body fails.
pub fn value<T>(function: &'static str, otherwise: T, body: impl FnOnce() -> Result<T>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => {
            named(function, error);
            otherwise
        }
        Err(panic) => {
            panicked(function, &*panic);
            otherwise
        }
    }
}

fn named(function: &'static str, error: Error) -> Error {
    let is_misuse = std::error::Error::source(&error).is_some_and(|cause| cause.is::<Misuse>());
    if !is_misuse {
        return error;
    }
    let error = error.prefixed(format_args!("{function}: "));
    log::warn!("a library breaks the rules of Triton's C interface: {error}");
    error
}

fn panicked(function: &'static str, panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let error = Error::internal(format!("{function} failed unexpectedly: {text}"));
    log::error!("{error}");
    error
}

/// Writes a result to the place that a library gives for it.
///
/// # Errors
/// The place is null; `name` says which it is.
///
/// # Safety
/// Null, or a place that may be written.
#[inline]
pub unsafe fn put<T>(place: *mut T, value: T, name: &str) -> Result<()> {
    if place.is_null() {
        return Err(null_place(name));
    }
    // SAFETY: the caller's word.
    unsafe { place.write(value) };
    Ok(())
}

#[cold]
fn null_place(name: &str) -> Error {
    let text = format!("the place for {name} is null");
    Error::invalid_arg(text.clone()).with_source(Misuse(text))
}

/// Writes a result to the place that a library gives for it, if it gives one.
///
/// # Safety
/// The condition of [`put`].
pub unsafe fn put_if_wanted<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller's word.
        unsafe { place.write(value) };
    }
}

/// Returns the elements of an array of a library.
///
/// # Errors
/// It is null although it has elements, or has more than `most`; `name` says which array it is.
///
/// # Safety
/// Null, or `count` elements that do not change while the result is used.
pub unsafe fn list<'a, T>(first: *const T, count: u64, most: usize, name: &str) -> Result<&'a [T]> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count == 0 {
        return Ok(&[]);
    }
    let text = match () {
        () if first.is_null() => format!("the list of {name} is null"),
        () if count > most => {
            format!("the list of {name} has {count} elements, at most {most} are allowed")
        }
        // SAFETY: the caller's word.
        () => return Ok(unsafe { std::slice::from_raw_parts(first, count) }),
    };
    Err(Error::invalid_arg(text.clone()).with_source(Misuse(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_of_the_call() {
        let handle = answer("TRITONBACKEND_Some", || panic!("so be it"));
        let error = errors::take(handle).expect("an error");
        assert_eq!(error.message(), "TRITONBACKEND_Some failed unexpectedly: so be it");
        assert_eq!(value("TRITONBACKEND_Some", 5, || panic!("so be it")), 5);
        assert_eq!(value("TRITONBACKEND_Some", 5, || Ok(6)), 6);
        assert!(answer("TRITONBACKEND_Some", || Ok(())).is_null());
    }

    #[test]
    fn a_null_place_is_a_misuse_that_names_the_function() {
        // SAFETY: null.
        let handle =
            answer("TRITONBACKEND_Some", || unsafe { put(ptr::null_mut(), 1, "the count") });
        let error = errors::take(handle).expect("an error");
        assert_eq!(error.message(), "TRITONBACKEND_Some: the place for the count is null");
        // SAFETY: null, and an array of two elements.
        let (null, long) = unsafe {
            (
                list::<i64>(ptr::null(), 2, 9, "dimensions"),
                list([1_i64, 2].as_ptr(), 2, 1, "dimensions"),
            )
        };
        assert_eq!(null.expect_err("null").message(), "the list of dimensions is null");
        assert!(long.expect_err("long").message().contains("at most 1"));
    }
}
