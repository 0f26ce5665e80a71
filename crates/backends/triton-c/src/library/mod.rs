//! Opens libraries that were compiled against the C interface.

mod inspect;
mod open;
mod stand_in;
mod stand_ins;

pub use self::{
    inspect::{LibraryFile, LibraryFileError, Requirements},
    open::Library,
};
