//! Native models in their own processes: a decorator for backends, and the program of such a process.
//!
//! [`ProcessBackend`] wraps a backend. Each instance of a model with `isolation` in its configuration runs in a child
//! process. The child is this program again and constructs the same backend ([`child::serve`]). All other models run in the
//! server as before. A crash of an isolated model affects only its own requests.
//!
//! # Invariants
//! - The server's process reads nothing of an isolated model, not even its file.
//! - Messages of a child are checked. Its end is an error of its open requests.

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
