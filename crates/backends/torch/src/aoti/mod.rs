//! AOTInductor packages (`model.pt2`): compiled code that calls libtorch through its stable C functions.
//!
//! # Invariants
//! - The unsafe code is in `functions`, `tensor`, `container` and `object`.
//! - Code stays mapped as long as any tensor that it made.
//! - Compiled code gets copies of a request's bytes, because it may write to its inputs.

mod archive;
mod call_spec;
mod checks;
mod container;
mod elf;
mod functions;
mod instance;
mod model;
mod object;
mod target;
mod tensor;
mod tensor_names;

#[doc(hidden)]
pub use archive::read_package;
#[doc(hidden)]
pub use call_spec::read_call_spec;
#[doc(hidden)]
pub use elf::make_unloadable;
pub(crate) use instance::SharedPackage;
pub(crate) use model::PackageModel;
pub(crate) use object::Runtime;
