//! Terminal output of commands: their texts, their errors, and its width.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use galatea_types::Environment;

/// Width of the commands' help texts, in columns.
pub const HELP_WIDTH: usize = 80;

/// Prints to stdout; a reader that is gone (`| head`) is not an error.
pub fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    ExitCode::SUCCESS
}

/// Prints the error of a command to stderr.
pub fn fail(error: impl Display) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::FAILURE
}

/// Prints the refusal of a command line to stderr, with its usage.
pub fn refuse(error: impl Display, usage: impl Display) -> ExitCode {
    fail(format_args!("{error}\nUsage: {usage}"))
}

/// Returns the columns of `COLUMNS`, else of the terminal. `None` if stdout is not a terminal, or does not know: programs that
/// read a pipe need whole lines.
pub fn width(environment: &Environment) -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let named = environment.text("COLUMNS").and_then(|text| text.trim().parse().ok());
    named.filter(|&columns| columns > 0).or_else(|| {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        (size.ws_col > 0).then_some(size.ws_col.into())
    })
}
