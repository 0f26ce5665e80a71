//! What is not where a model repository has it: said beside the reason why a load failed, and by the inspection of a
//! repository before a server is started.
//!
//! Nothing here decides whether a model is served: that does the load. Here is what a person did, and how to mend it.

mod content;
mod file_type;
mod files;
mod mistake;
mod model;
mod root;

pub use self::file_type::{ForeignFile, foreign_file};
pub(crate) use self::{mistake::PlacedMistake, model::ModelLayout, root::inspect_root};
