//! The functions that libraries define for this server.

mod cxx;
mod exception;
mod guard;

use std::{ffi::c_void, fmt, marker::PhantomData, ptr};

use galatea_types::Result;

use crate::{Library, objects::errors};

/// A function of a library that returns an error. An exception that leaves it is an error too, where the platform allows it:
/// Linux on x86-64 and AArch64.
pub struct Hook<A> {
    function: *const (),
    name: &'static str,
    library: Library,
    arguments: PhantomData<fn(A)>,
}

// SAFETY: the address of code, which never changes and is never unloaded.
unsafe impl<A> Send for Hook<A> {}
// SAFETY: as above.
unsafe impl<A> Sync for Hook<A> {}

impl<A> Clone for Hook<A> {
    fn clone(&self) -> Self {
        Self { library: self.library.clone(), ..*self }
    }
}

impl<A> fmt::Debug for Hook<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hook({})", self.name)
    }
}

impl<A: HookArguments> Hook<A> {
    /// Returns the function of this name; `None` if the library has none.
    ///
    /// # Safety
    /// The library's function has arguments of the types `A`, and returns an error.
    pub unsafe fn find(library: &Library, name: &'static str) -> Option<Self> {
        // SAFETY: the address is only kept.
        let function = unsafe { library.function::<*const ()>(name) }?;
        let arguments = PhantomData;
        Some(Self { function, name, library: library.clone(), arguments })
    }

    /// Calls it.
    ///
    /// # Errors
    /// The error that it returns, or one that describes the exception that has left it.
    ///
    /// # Safety
    /// The arguments are those that the interface allows now.
    pub unsafe fn call(&self, arguments: A) -> Result<()> {
        // SAFETY: the word of the caller, and of that of `find`.
        match unsafe { guard::call(self.function, arguments.words()) } {
            Ok(error) => errors::result(error),
            Err(thrown) => Err(exception::error(thrown, self.name, &self.library)),
        }
    }
}

/// The most arguments that a hook has.
const MOST: usize = 4;

/// The arguments of a hook, each in a register.
pub trait HookArguments {
    /// Returns them as words. Those that are not there are null.
    fn words(self) -> [*mut c_void; MOST];
}

/// A type that an argument of a hook can have.
pub trait HookArgument {
    /// Returns it as a word.
    fn word(self) -> *mut c_void;
}

impl<T> HookArgument for *mut T {
    fn word(self) -> *mut c_void {
        self.cast()
    }
}

impl<T> HookArgument for *const T {
    fn word(self) -> *mut c_void {
        self.cast_mut().cast()
    }
}

impl HookArgument for u32 {
    fn word(self) -> *mut c_void {
        ptr::without_provenance_mut(self as usize)
    }
}

macro_rules! arguments {
    ($($name:ident: $kind:ident),*; $($missing:expr),*) => {
        impl<$($kind: HookArgument),*> HookArguments for ($($kind,)*) {
            fn words(self) -> [*mut c_void; MOST] {
                let ($($name,)*) = self;
                [$($name.word(),)* $($missing),*]
            }
        }
    };
}

arguments!(a: A; ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
arguments!(a: A, b: B; ptr::null_mut(), ptr::null_mut());
arguments!(a: A, b: B, c: C; ptr::null_mut());
arguments!(a: A, b: B, c: C, d: D;);
