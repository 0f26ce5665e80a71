//! Objects of a library that are ours to release.

use std::ptr::NonNull;

/// A function of a library that releases an object.
pub trait Release<T>: Copy {
    /// Releases the object.
    ///
    /// # Safety
    /// The function is for objects of this kind, and the caller's object is used by nobody afterwards.
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

/// An object of a library that stays open for good. Released when dropped.
pub struct Owned<T, R: Release<T> = unsafe extern "C" fn(*mut T)> {
    object: NonNull<T>,
    release: R,
}

impl<T, R: Release<T>> Owned<T, R> {
    /// Takes an object over. `None`: it is null.
    ///
    /// # Safety
    /// `object` is null, or one that `release` is for and that nobody else releases.
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
