//! Texts on the terminal: what commands print, why they fail, and how wide it is.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use galatea_types::Environment;

/// Columns of the help texts of commands.
pub const HELP_WIDTH: usize = 80;

/// Prints to stdout; a reader that went away (`| head`) is no error.
pub fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    ExitCode::SUCCESS
}

/// Says on stderr why a command has failed.
pub fn fail(error: impl Display) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::FAILURE
}

/// Says on stderr why a command line is refused, and where to read on.
pub fn refuse(error: impl Display, usage: impl Display) -> ExitCode {
    fail(format_args!("{error}\nUsage: {usage}"))
}

/// Columns, as `COLUMNS` says, else as the terminal does. `None` where stdout is none, or does not know: programs that
/// read a pipe want whole lines.
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
