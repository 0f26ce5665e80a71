//! Opens libraries that were compiled against the C interface.

mod inspect;
mod kind;
mod open;
mod stand_in;
mod stand_ins;

pub use self::{
    inspect::{LibraryFile, LibraryFileError, Requirements},
    kind::{LibraryFacts, LibraryKind},
    open::Library,
};
