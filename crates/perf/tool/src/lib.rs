//! The load tool: perf_analyzer's command lines and method, wired together.
//!
//! [`run`] is the whole program: [`options`] reads the command line, [`profiler`] measures, and the rest of the crate connects
//! both to a real server, a real clock and a terminal.
//!
//! **Invariants.** The measurement (`profiler`) uses only the traits of `galatea-perf-types`. Only `run.rs` names the code that
//! uses sockets, signals and files.

#![warn(missing_docs)]

mod gpu_metrics;
pub mod options;
pub mod probe;
pub mod profiler;
mod run;
mod server_link;
mod shared_memory;
mod system_clock;
mod target;
mod terminal;

pub use galatea_perf_types::failure::Exit;
pub use run::run;
