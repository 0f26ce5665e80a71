//! The program: it reads the command line, runs [`galatea_serve`], and ends with an exit code.
//!
//! **Invariants.** Nothing here knows a wire format.

mod advice;
mod auth_command;
mod cache_command;
mod check;
mod client_credential;
mod command;
mod deploy;
mod flags;
mod options;
mod runtime;
mod sagemaker;
mod serve;
mod terminal;
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
