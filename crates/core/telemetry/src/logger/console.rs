//! The standard output and the standard error of this program.

use std::sync::OnceLock;

use super::lost_lines;
use crate::lines::{LineWriter, Pace};

/// What is written to stdout, after what was written there before.
pub fn stdout() -> &'static LineWriter {
    &console().out
}

/// What is written to stderr. Where both lead to the same place, as on a terminal, it is the writer of stdout: lines come
/// in the order in which they were written.
pub fn stderr() -> &'static LineWriter {
    &console().err
}

struct Console {
    out: LineWriter,
    err: LineWriter,
}

fn console() -> &'static Console {
    static CONSOLE: OnceLock<Console> = OnceLock::new();
    CONSOLE.get_or_init(|| {
        let out = LineWriter::stdout(Pace::Prompt, lost_lines);
        let err = LineWriter::stderr(Pace::Prompt, lost_lines);
        let err = if err.is_same_place(&out) { out.clone() } else { err };
        Console { out, err }
    })
}
