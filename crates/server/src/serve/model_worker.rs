//! `galatea model-worker`: this program as the process of one isolated model. Started by the server only.

use std::process::ExitCode;

use galatea_backend_process::{ChildProgram, child};
use galatea_types::Result;
use serde_json::Value;

use super::native::NativeBackend;
use crate::{flags::RuntimeOptions, panic_hook};

/// The command. It is in no help: only a server can start it.
pub const COMMAND: &str = "model-worker";

/// The running program itself, also where its file was replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";

/// How the server starts it.
pub fn program(runtimes: &RuntimeOptions) -> ChildProgram {
    ChildProgram::new(PROGRAM, [COMMAND.into()], runtimes.environment.variables())
}

/// Runs one isolated model. `words`: what follows the command.
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
