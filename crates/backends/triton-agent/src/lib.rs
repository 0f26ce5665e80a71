//! Repository agents in libraries that were made for Triton's C interface (`libtritonrepoagent_NAME.so`).
//!
//! [`AgentLibraries`] finds and opens the library of an agent when the first model names it. Each load of a model has an
//! `AgentModel`, which the library knows by a handle, from its first call to its last one.
//!
//! # Invariants
//! - A library is called on the threads of loads and unloads, for which no request waits.
//! - No lock that a function of the interface takes is held while a function of a library runs.
//! - A folder that a library replaces is kept until no version of the model reads it.

#![warn(missing_docs)]

mod agent;
mod functions;
mod libraries;
mod library;
mod model;
mod state;

pub use self::{
    libraries::{AgentLibraries, UncalledAgent},
    library::LIBRARIES,
};
