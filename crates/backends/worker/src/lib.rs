//! Models in processes of their own: the parts that are the same for every kind of worker.
//!
//! Server and worker communicate over two sockets and two pieces of anonymous shared memory: see `PROTOCOL.md`. A [`Worker`]
//! is the server's side of one process, a [`WorkerInstance`] executes batches in it. [`Services`] is the rest of what a
//! server does for a worker. A [`ServerConnection`] is the other side, for workers in Rust.
//!
//! # Invariants
//! - No worker can end the server: every message is checked, and a worker's end is an error of its requests.
//! - No worker outlives its instance, nor the server however that ends: process group, descriptors and
//!   memory are released with it.
//! - A worker that does not respond is replaced. Nothing waits for it for ever.
//! - A large tensor is copied once when sent to the worker, and once when it comes back: there is no slice over memory
//!   that a worker can write.

#![warn(missing_docs)]

mod batch_encoder;
mod connection;
mod event_thread;
mod events;
mod exception;
mod execution;
mod execution_times;
mod inputs;
mod instance;
mod lifecycle;
mod log_levels;
mod memory;
mod outputs;
pub mod parameters;
mod printed_lines;
mod process;
mod process_tree;
mod program;
mod requests;
mod reshape;
mod sandbox;
mod secret_variables;
mod sent_executions;
mod server_connection;
mod spawn;
mod spin;
mod transport;
mod waker;
mod watchdog;
pub mod wire;
mod worker;
mod worker_list;

pub use connection::{Connection, Services};
pub use inputs::received_request;
pub use instance::WorkerInstance;
pub use lifecycle::{Lifecycle, WorkerIdentity};
pub use log_levels::LogLevels;
pub use memory::{ArenaLimits, BlockAllocation, MemoryRules, SharedMemory};
pub use outputs::ReportedOutputs;
pub use process::{ExitReason, Process};
pub use program::Program;
pub use requests::{ActiveRequests, ResponseContent};
pub use sandbox::{IsolationLevel, KernelSupport, Sandbox, secret_files};
pub use secret_variables::is_secret_variable;
pub use server_connection::ServerConnection;
pub use transport::{Channels, Message};
pub use watchdog::{TimeLimit, WorkLimits};
pub use worker::{Worker, WorkerOptions};
pub use worker_list::WorkerList;
