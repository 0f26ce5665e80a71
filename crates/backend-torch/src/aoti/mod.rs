//! AOTInductor packages (`model.pt2`): compiled code that calls libtorch through its stable C functions.
//!
//! # Invariants
//! - What is unsafe is in `functions`, `tensor`, `container` and `object`.
//! - Code stays mapped as long as any tensor that it made.
//! - Bytes of a request are never given to compiled code, which may write to its inputs: it gets a copy.

mod archive;
mod call_spec;
mod checks;
mod container;
mod elf;
mod functions;
mod instance;
mod model;
mod naming;
mod object;
mod shared_package;
mod target;
mod tensor;

pub(crate) use model::PackageModel;
pub(crate) use object::Runtime;
pub(crate) use shared_package::SharedPackage;

/// Reads a package as a load does before it opens the library in it: for fuzzing.
#[doc(hidden)]
pub fn read_package(path: &std::path::Path) -> Result<(), String> {
    archive::Package::unpack(path).map(drop).map_err(|error| error.to_string())
}

/// What is done to a library before it is opened: for fuzzing.
#[doc(hidden)]
pub fn make_unloadable(path: &std::path::Path) -> std::io::Result<()> {
    elf::make_unloadable(path)
}

/// Reads what a model says that it takes and returns: for fuzzing.
#[doc(hidden)]
pub fn read_call_spec(text: &str) {
    call_spec::CallSpec::read(text, text, 1, 1);
}
