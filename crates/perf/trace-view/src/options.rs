//! The command line of `galatea trace`.

use std::path::PathBuf;

use galatea_command_line::{Group, Kind, OptionRow, OptionSet, options};

use crate::error::TraceError;

/// The requests that are shown on a terminal.
const ON_TERMINAL: usize = 10;
/// The requests that are shown on a page.
const ON_PAGE: usize = 50;

#[derive(Debug, Default)]
pub(crate) struct TraceOptions {
    pub files: Vec<PathBuf>,
    pub model: Option<String>,
    pub id: Option<String>,
    pub slowest: Option<usize>,
    pub is_json: bool,
    pub page: Option<PathBuf>,
}

pub(crate) const USAGE: &str = "\
Usage: galatea trace <file>... [options]

Shows how long each traced request spent in which part of the server: reading it, in the queue, in the model and its
steps, sending the answer. <file> is a trace file of this server or of Triton (--trace-config triton,file=...); its
FILE.0, FILE.1 and so on are read too. Prints times by model, and the slowest requests as bars. The exit code is 0, 1
if a file cannot be read or has no such request, 2 if the command line is wrong.

";

type Row = OptionRow<TraceOptions>;

const ROWS: &[Row] = options! {
    /// Show only requests to this model, also as steps and calls of others.
    "model" => Row::of(Kind::Name).short('m').fills(|o| &mut o.model),
    /// Show the request with this request id, or the trace with this number, with all its events.
    "id" => Row::of(Kind::Name).fills(|o| &mut o.id),
    /// Number of slowest requests to show: 10 if it is not given, 50 on a page.
    "slowest" => Row::of(Kind::Integer { min: 1, max: 1000 }).fills(|o| &mut o.slowest),
    /// Print one JSON object, with everything in it.
    "json" => Row::of(Kind::Switch).fills(|o| &mut o.is_json),
    /// Write a page for a browser into this file; it needs no network.
    "html" => Row::of(Kind::Name).fills(|o| &mut o.page),
    /// Print this text.
    "help" => Row::help(""),
};

impl OptionSet for TraceOptions {
    type Error = TraceError;

    fn groups() -> &'static [Group<Self>] {
        &[Group { title: "", rows: ROWS, is_own: false }]
    }

    fn word(&mut self, word: String) -> Result<(), TraceError> {
        self.files.push(PathBuf::from(word));
        Ok(())
    }
}

impl TraceOptions {
    /// Returns the most requests that are shown one by one.
    pub fn most(&self) -> usize {
        self.slowest.unwrap_or(if self.page.is_some() { ON_PAGE } else { ON_TERMINAL })
    }
}
