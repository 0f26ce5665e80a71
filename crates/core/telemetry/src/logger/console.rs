//! The standard output and the standard error of this program.

use std::sync::OnceLock;

use super::lost_lines;
use crate::lines::{LineWriter, Pace};

/// Returns the writer of stdout. It keeps the order of all its lines.
pub fn stdout() -> &'static LineWriter {
    &console().out
}

/// Returns the writer of stderr. When both lead to the same place, as on a terminal, it is the writer of stdout, so that lines
/// keep their order.
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
