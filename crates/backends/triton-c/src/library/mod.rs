//! Opens libraries that were compiled against the C interface.

mod inspect;
#[cfg(target_os = "linux")]
mod open;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
mod open;
#[cfg(target_os = "linux")]
mod stand_in;
#[cfg(target_os = "linux")]
mod stand_ins;

pub use self::{
    inspect::{LibraryFile, LibraryFileError, Requirements},
    open::Library,
};
