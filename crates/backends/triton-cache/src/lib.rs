//! Response caches in libraries that were made for Triton's C interface (`libtritoncache_NAME.so`).
//!
//! # Invariants
//! - A library is called on threads of this crate alone ([`LibraryCache`]). A call that takes too long delays no request: its
//!   look-ups find nothing, and the requests are executed.
//! - No lock is held while a function of the library runs.
//! - The bytes that a library returns are checked before they become a response.

#![warn(missing_docs)]

mod cache;
mod entry;
mod lanes;
mod library;

pub use self::{
    cache::LibraryCache,
    library::{CacheSettings, FUNCTIONS, LIBRARIES},
};
