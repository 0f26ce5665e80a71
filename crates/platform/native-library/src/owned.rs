//! Objects of a library that must be released.

use std::ptr::NonNull;

/// A function of a library that releases an object.
pub trait Release<T>: Copy {
    /// Releases the object.
    ///
    /// # Safety
    /// The function must be for objects of this kind, and nobody may use the object afterwards.
    unsafe fn release(self, object: *mut T);
}

impl<T> Release<T> for unsafe extern "C" fn(*mut T) {
    unsafe fn release(self, object: *mut T) {
        // SAFETY: the caller's word.
        unsafe { self(object) }
    }
}

impl<T> Release<T> for unsafe extern "system" fn(*mut T) {
    unsafe fn release(self, object: *mut T) {
        // SAFETY: the caller's word.
        unsafe { self(object) }
    }
}

/// An object of a library that is never closed. It is released when this is dropped.
pub struct Owned<T, R: Release<T> = unsafe extern "C" fn(*mut T)> {
    object: NonNull<T>,
    release: R,
}

impl<T, R: Release<T>> Owned<T, R> {
    /// Takes over an object. Returns `None` if it is null.
    ///
    /// # Safety
    /// `object` is null, or `release` is for it and nobody else releases it.
    pub unsafe fn new(object: *mut T, release: R) -> Option<Self> {
        Some(Self { object: NonNull::new(object)?, release })
    }

    /// Returns the object, for calls of the library.
    pub fn as_ptr(&self) -> *mut T {
        self.object.as_ptr()
    }
}

impl<T, R: Release<T>> Drop for Owned<T, R> {
    fn drop(&mut self) {
        // SAFETY: taken over by `new`, and released here alone.
        unsafe { self.release.release(self.object.as_ptr()) };
    }
}
