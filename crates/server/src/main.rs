//! The program. It reads the command line, puts the crates together, and ends them in order.
//!
//! **Invariants.** The only crate that names concrete backends. Nothing here knows a wire format.

mod advice;
mod auth_command;
mod check;
mod client_credential;
mod command;
mod flags;
mod memory;
mod options;
mod panic_hook;
mod runtime;
mod sagemaker;
mod serve;
mod table;
mod texts;
mod tune;
mod up;

use std::{env, process::ExitCode};

#[global_allocator]
static ALLOCATOR: galatea_process_memory::Allocator = galatea_process_memory::ALLOCATOR;

fn main() -> ExitCode {
    galatea_backend_tensorflow::quiet();
    command::run(env::args_os().map(|argument| argument.to_string_lossy().into_owned()))
}
