//! Native models in processes of their own: a decorator for backends, and the program of such a process.
//!
//! [`ProcessBackend`] stands before a backend. Models whose configuration asks for `isolation` run in a child process
//! per instance, which is this program again and constructs the same backend there ([`child::serve`]); all others run
//! in the server as before. What an isolated model does to its process, it does to its own requests only.
//!
//! # Invariants
//! - Of an isolated model nothing is read in the server's process, its file included.
//! - What a child sends is checked; its end is an error of the requests it had.

#![warn(missing_docs)]

mod backend;
pub mod child;
mod isolation;
mod messages;
mod model;
mod start;
mod variables;

pub use backend::{OpenBackend, ProcessBackend};
pub use isolation::Isolation;
pub use start::ChildProgram;
