//! Triton's C interfaces for libraries that were compiled against them: backends, caches, repository agents.
//!
//! [`abi`] has the declarations. [`objects`] are the parts of the interface that need no engine: errors, messages, metrics.
//! [`Library`] opens a library after it has looked into the file, and offers it [functions](Offer).
//!
//! # Invariants
//! - A handle that a library gets is no address. It is looked up in a [`Table`], so a handle that was released, or never was
//!   one, gives an error.
//! - No panic leaves a function that libraries call ([`call`]), and no exception leaves a [`Hook`] of a library.

#![warn(missing_docs)]

pub mod abi;
pub mod call;
mod hook;
mod library;
mod misuse;
pub mod objects;
mod offer;
mod since;
mod table;
pub mod text;

pub use hook::{Hook, HookArgument, HookArguments};
pub use library::{
    Library, LibraryFacts, LibraryFile, LibraryFileError, LibraryKind, Requirements,
};
pub use offer::{Address, Function, Offer};
pub use since::{CalledVersion, Version, newer_version};
pub use table::{Kind, Registered, Table};
