//! Finds mistakes in the layout of a model repository. They explain failed loads, and the inspection of a repository reports
//! them before a server is started.
//!
//! This code does not decide if a model is served: the load does. It names the user's mistake and how to correct it.

mod content;
mod file_type;
mod files;
mod mistake;
mod model;
mod root;

pub use self::file_type::{ForeignFile, foreign_file};
pub(crate) use self::{mistake::PlacedMistake, model::ModelLayout, root::inspect_root};
