//! The process of one isolated model: the running program, started again by the server.

use std::process::ExitCode;

use galatea_backend_process::{ChildProgram, child};
use galatea_types::Result;
use serde_json::Value;

use super::native::NativeBackend;
use crate::{options::RuntimeOptions, panic_hook};

/// The command. It is in no help: only a server can start it.
pub const COMMAND: &str = "model-worker";

/// Returns the program and its arguments for a child.
pub(super) fn program(runtimes: &RuntimeOptions) -> ChildProgram {
    ChildProgram::new(
        galatea_system::own_program(),
        [COMMAND.into()],
        runtimes.environment.variables(),
    )
}

/// Runs one isolated model. `words`: the arguments after the command.
pub fn run(words: &[String]) -> ExitCode {
    panic_hook::install();
    let open = |description: &Value| -> Result<_> { NativeBackend::from_json(description)?.open() };
    match child::serve(words, open) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
