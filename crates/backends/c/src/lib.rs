//! Models of backends that were compiled against Triton's C interface: `libtriton_NAME.so`.
//!
//! The library calls functions of this program ([`BACKEND`] and those of `galatea-triton-c`), and this program calls its hooks.
//!
//! # Invariants
//! - Hooks are called in Triton's order. An instance is made and ended on its own thread. It executes there, or on the thread that
//!   brings a request, never on two at a time.
//! - A request is the library's until it releases it, once. Its responses may come before and after that, from any thread.
//! - No lock is held while a library runs, but that which makes others wait until it is initialised.
//! - Callers of other models get their requests back when nobody reads their inputs any more.

#![warn(missing_docs)]

mod attributes;
mod backend;
mod backend_object;
mod call_flight;
mod call_input;
mod call_parts;
mod call_request;
mod call_response;
mod call_target;
mod hooks;
mod input;
mod inspector;
mod instance;
mod instance_object;
mod memory;
mod model;
mod model_object;
mod offer;
mod outlet;
mod output;
mod request;
mod response;
mod search;
mod server;
mod state;
mod state_draft;
mod statistics;
mod trace;

pub use backend::{CBackend, CBackendOptions};
pub use inspector::LibraryInspector;
pub use offer::BACKEND;
pub use search::{LIBRARIES, find_library};

/// The number that says that a backend or model is a folder of files.
const FILE_SYSTEM: u32 = 0;
