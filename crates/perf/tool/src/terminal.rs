//! The console of a real run.

use std::io::{self, IsTerminal, Write};

use galatea_perf_types::console::Console;

/// The report goes to stdout. Progress shows only on a terminal, on one line that the next text erases.
#[derive(Default)]
pub struct Terminal {
    /// Stdout is taken by a file of the tool.
    pub reports_to_stderr: bool,
    line_is_shown: bool,
}

/// Return to the line's start and erase it (ECMA-48 EL).
const ERASE_LINE: &str = "\r\x1b[2K";

impl Terminal {
    fn erase_progress(&mut self) {
        if std::mem::take(&mut self.line_is_shown) {
            let _ = io::stderr().write_all(ERASE_LINE.as_bytes());
        }
    }
}

// A reader that is gone (`| head`) is not an error.
impl Console for Terminal {
    fn out(&mut self, text: &str) {
        self.erase_progress();
        if self.reports_to_stderr {
            let _ = io::stderr().write_all(text.as_bytes());
        } else {
            let mut stdout = io::stdout().lock();
            let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        }
    }

    fn err(&mut self, text: &str) {
        self.erase_progress();
        let _ = io::stderr().write_all(text.as_bytes());
    }

    fn progress(&mut self, text: &str) {
        if io::stderr().is_terminal() && io::stdout().is_terminal() {
            self.line_is_shown = true;
            let _ = io::stderr().write_all(format!("{ERASE_LINE}{text}").as_bytes());
        }
    }
}
